r"""The mean tangent kernel of relu networks of finite widths, between two inputs.

Let K_l(G) be E[z(x) z(x')] given the covariance G of the preactivations of layer l at the two inputs. These are
Gaussian given G, so that Price's theorem makes the derivative by G_12 an average of derivatives by both,

    dK_l / dG_12 = E[sum_i dz(x)/dh_i dz(x')/dh'_i | G],

and the weights of layer l contribute G_12 dK_l/dG_12 to the tangent kernel. By homogeneity K_l is
sqrt(G_11 G_22) times a function of the angle, and with T of `_gram_step`, for widths n_l and D = cos d/dcos,

    K_l = C_W T_(n_l) K_(l+1),   Theta_l = D K_l + C_W T_(n_l) Theta_(l+1),   K_(L+1) = Theta_(L+1) = cos.
"""

import functools

import numpy as np
from numpy.polynomial import chebyshev

from .gram_operator import ANGLES, SMOOTH, derived_family, family, gram_step

_CUTOFF = 1e-8  # relative, of singular values in a fit


def mean_ntk(widths: tuple[int, ...], left: float, gain: float, angle: np.ndarray) -> np.ndarray:
    """Theta_1 at each `angle` for slopes 1 and `left`, and `gain` = C_W."""
    return chebyshev.chebval(1 - 2 * angle / np.pi, _coefficients(widths, left, gain))


@functools.lru_cache(maxsize=64)
def _coefficients(widths: tuple[int, ...], left: float, gain: float) -> np.ndarray:
    """Theta_1 as a Chebyshev series in 1 - 2 angle / pi."""
    of_kernel, of_ntk = _fits()
    cosine = np.zeros(len(of_kernel))
    cosine[1] = 1.0  # which is in the family itself
    in_kernel = in_ntk = cosine
    for at, width in enumerate(reversed(widths)):
        step = gram_step(width, left)
        kernel, derived = gain * step.value @ in_kernel, gain * step.derived @ in_kernel
        ntk = derived + gain * step.value @ in_ntk
        if at + 1 < len(widths):
            in_kernel, in_ntk = of_kernel @ np.concatenate([kernel, derived]), of_ntk @ ntk
    return np.linalg.solve(_vandermonde(ANGLES), ntk)


@functools.lru_cache(maxsize=1)
def _fits() -> tuple[np.ndarray, np.ndarray]:
    """Matrices that turn values at `ANGLES` into coefficients of `family`: from K and D K, and from Theta alone.

    K is fitted with its derivative, which T maps on; it has no part linear in the angle, unlike Theta.
    """
    of_kernel = np.zeros((len(SMOOTH), 2 * len(ANGLES)))
    of_kernel[SMOOTH] = _inverse(np.concatenate([family(ANGLES), derived_family(ANGLES)])[:, SMOOTH])
    near = np.geomspace(1e-4, np.pi / 4, 200)
    fine = np.concatenate([near, np.linspace(0.0, np.pi, 200), np.pi - near])
    to_fine = _vandermonde(fine) @ np.linalg.inv(_vandermonde(ANGLES))
    return of_kernel, _inverse(family(fine)) @ to_fine


def _inverse(matrix: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(matrix, axis=0)
    return np.linalg.pinv(matrix / norms, rcond=_CUTOFF) / norms[:, None]


def _vandermonde(angle: np.ndarray) -> np.ndarray:
    return chebyshev.chebvander(1 - 2 * angle / np.pi, len(ANGLES) - 1)
