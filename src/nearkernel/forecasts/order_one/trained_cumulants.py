r"""Third and fourth cumulants of trained outputs at order 1/n, from the tensors of the start.

With f = g + T1[h, e] + Tm[mu, e, e] + T3[e, e, e], g = M z, m = -y, k_b = E[g_b e], and sums over the different ways to
give the new outputs b, c, .. their places,

    n kappa_bcd  = T1_b[ZH_cd, m] + T1_b T1_c[HH; k_d m] + Tm_b[C_c; k_d m] + T3_b[k_c, k_d, m]
    n kappa_bcde = T1_b[ZH_cd, k_e] + T1_b T1_c[HH; k_d k_e] + Tm_b[C_c; k_d k_e] + T3_b[k_c, k_d, k_e]
                   + M_b M_c M_d M_e V,

each product of two or three vectors in every order. The second-order term in h, the shifts of the mean kernels and mu
that meets its own residual cannot tie three outputs together. So kappa_3 is linear in y, and kappa_4 does not know y.
"""

import itertools
from typing import NamedTuple

import numpy as np

from .trained_moments import Polynomial, Start

Parts = dict[str, np.ndarray]
FOUR_POINT = (
    "four-point"  # fourth cumulants of the outputs at initialization, which `mean` and `cov` do not have
)


class Ties(NamedTuple):
    """What ties new outputs b, c, .. to each other; x, y, z are modes of residuals that are still free."""

    ntk_with_outputs: np.ndarray  # [b, c, d, x]: T1_b[ZH_cd]
    ntk_variance: np.ndarray  # [b, c, x, y]: T1_b T1_c[HH], in both orders of x and y
    dntk: np.ndarray  # [b, c, x, y]: Tm_b[C_c], in both orders
    ddntk: np.ndarray  # [b, x, y, z]: T3_b, in all six orders
    four_point: np.ndarray  # [b, c, d, e]
    with_output: np.ndarray  # [b, x]: k_b


def ties(start: Start, found: Polynomial) -> Ties:
    """`start` in modes of the kernel, and its `polynomial`: all that a choice of `y` leaves as it is."""
    (leading, one, _), quadratic, folded, kg = found
    n = one.shape[-1]
    zz = np.einsum("cz,dw,zwex->cdex", leading, leading, start.ntk_with_outputs[..., :n], optimize=True)
    hh = np.einsum("bex,exfy,cfy->bcxy", one, start.ntk_variance[:, :n, :, :n], one, optimize=True)
    mu = np.einsum("bxyz,cz->bcxy", quadratic, leading)
    four = start.four_point
    for _ in range(4):
        four = np.tensordot(four, leading, axes=(0, 1))  # the contracted axis goes to the end
    return Ties(
        np.einsum("bex,cdex->bcdx", one, zz, optimize=True),
        hh + hh.swapaxes(2, 3),
        mu + mu.swapaxes(2, 3),
        folded + folded.swapaxes(2, 3),
        four,
        kg,
    )


def third_cumulants(found: Ties, y: np.ndarray) -> Parts:
    """What each cause adds to kappa_bcd, times the width; `y` (N,) in modes of the kernel."""
    m, kg = -y, found.with_output
    parts = {
        "ntk with outputs": found.ntk_with_outputs @ m / 2,  # symmetric in c, d
        "ntk variance": np.einsum("bcxy,dx,y->bcd", found.ntk_variance, kg, m, optimize=True) / 2,  # in b, c
        "dntk": np.einsum("bcxy,dx,y->bcd", found.dntk, kg, m, optimize=True),
        "ddntk": np.einsum("bxyz,cx,dy,z->bcd", found.ddntk, kg, kg, m, optimize=True) / 2,  # in c, d
    }
    return {name: _over_places(part) for name, part in parts.items()}


def fourth_cumulants(found: Ties) -> Parts:
    """What each cause adds to kappa_bcde, times the width."""
    kg = found.with_output
    pairs = {"ntk variance": (found.ntk_variance, 4), "dntk": (found.dntk, 2)}  # symmetric in d, e; in b, c
    parts = {
        "ntk with outputs": np.einsum("bcdx,ex->bcde", found.ntk_with_outputs, kg) / 2,
        **{
            name: np.einsum("bcxy,dx,ey->bcde", array, kg, kg, optimize=True) / same
            for name, (array, same) in pairs.items()
        },
        "ddntk": np.einsum("bxyz,cx,dy,ez->bcde", found.ddntk, kg, kg, kg, optimize=True) / 6,
    }
    return {FOUR_POINT: found.four_point, **{name: _over_places(part) for name, part in parts.items()}}


def _over_places(array: np.ndarray) -> np.ndarray:
    """The sum over all orders of the new outputs."""
    return sum(map(array.transpose, itertools.permutations(range(array.ndim))), np.zeros_like(array))
