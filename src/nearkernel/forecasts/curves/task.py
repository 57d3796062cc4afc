"""A kernel and a target, given by eigenvalues and coefficients: the input of analytic learning curves."""

import equinox as eqx
import numpy as np
import scipy.special as special

from ..._base.check import inputs, numeric, positive, real_number, shown, whole
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...kernels.base import AbstractKernel
from .effective_ridge import AbstractMoments, Degrees, Moments

_BLOCKS_FROM = 300  # modes of a power law kept one by one


class KernelTask(Result, eqx.Module):
    r"""A kernel and a target in its eigenbasis: the input of `sample_law` and `population_law`.

    $$K(x, x') = \sum_i \lambda_i\, \phi_i(x)\, \phi_i(x'), \qquad y = \sum_i v_i\, \phi_i(x) + \text{noise}, \qquad
    \mathbb{E}\, \phi_i^2 = 1$$

    **Arguments:** `eigenvalues` (k,) > 0; `power` (k,) >= 0, the squares $v_i^2$, summed over the `multiplicity` of
    the eigenvalue; `noise` >= 0, a variance; `multiplicity` (k,), 1 by default; `rest` >= 0, the sum of the truncated
    eigenvalues: high modes act as a ridge, and without them the error at convergence diverges at $m = k$.
    """

    eigenvalues: np.ndarray
    power: np.ndarray
    noise: float = 0.0
    multiplicity: np.ndarray | None = None
    rest: float = 0.0

    def __check_init__(self):
        for name in ("eigenvalues", "power", "multiplicity"):
            given = getattr(self, name)
            if given is None:
                continue
            array = numeric(given, name)
            if array.ndim != 1 or array.shape != np.shape(self.eigenvalues) or not array.size:
                raise ValueError(
                    f"`{name}` must be a vector with one value per eigenvalue; got shape {array.shape}."
                )
            if array.min() < 0 or (name != "power" and array.min() == 0):
                least = "at least 0" if name == "power" else "greater than 0"
                raise ValueError(f"`{name}` must be {least}; got {array.min():g}.")
        positive(self.noise, "noise", zero=True)
        positive(self.rest, "rest", zero=True)


class SpectrumMoments(AbstractMoments):
    """Of a `KernelTask`; theta is kappa."""

    def __init__(self, task: KernelTask):
        self._lam = np.asarray(task.eigenvalues, np.float64)
        self._power = np.asarray(task.power, np.float64)
        self._count = np.ones_like(self._lam) if task.multiplicity is None else numeric(task.multiplicity, "")
        self._noise = float(task.noise)
        self.trace, self.most = float(self._count @ self._lam), float(self._count.sum())

    def at(self, theta: np.ndarray) -> Moments:
        learned = self._lam[:, None] / (self._lam[:, None] + theta)
        left = theta / (self._lam[:, None] + theta)
        return Moments(
            kappa=theta,
            z=self._count @ learned,
            a=self._noise + self._power @ left,
            q=self._count @ learned**2,
            b=self._noise + self._power @ left**2,
        )

    def degrees(self, theta: np.ndarray) -> Degrees:
        inverse = 1.0 / (self._lam[:, None] + theta)
        weights = self._count * self._lam
        return Degrees(theta, weights @ inverse, np.ones_like(theta), -(weights @ inverse**2))


def power_law_task(decay: float, source: float, noise: float = 0.0, modes: int = 1_000_000) -> KernelTask:
    r"""A power-law task, $\lambda_i = i^{-a}$ and $v_i^2 = i^{-b}$; modes beyond `modes` act as a ridge and as noise.

    **Arguments:** `decay`, $a > 1$; `source`, $b > 1$; `noise` variance; `modes`, the number of modes; those beyond
    300 are grouped into blocks of nearly equal eigenvalues.
    """
    for value, name in ((decay, "decay"), (source, "source")):
        if not real_number(value, name) > 1:
            raise ValueError(f"`{name}` must be greater than 1 for its sum to converge; got {value:g}.")
    modes = whole(modes, "modes", 1)
    noise = positive(noise, "noise", zero=True)
    single = np.arange(1.0, min(modes, _BLOCKS_FROM) + 1)
    edges = np.unique(np.rint(np.geomspace(_BLOCKS_FROM, max(modes, _BLOCKS_FROM), 400)))
    count = np.diff(edges)
    tails = [special.zeta(value, edges + 1) for value in (decay, source)]
    lam = np.concatenate([single**-decay, -np.diff(tails[0]) / count])
    power = np.concatenate([single**-source, -np.diff(tails[1])])
    beyond = float(special.zeta(source, modes + 1))
    return KernelTask(
        lam,
        power,
        noise + beyond,
        np.concatenate([np.ones_like(single), count]),
        float(special.zeta(decay, modes + 1)),
    )


@in_float64
def sphere_task(
    kernel: AbstractKernel,
    dim: int,
    power: ArrayLike,
    noise: float = 0.0,
    *,
    radius: float | None = None,
    degrees: int = 40,
) -> KernelTask:
    r"""The task of a kernel on inputs uniform on a sphere, whose eigenfunctions are spherical harmonics.

    $\lambda_k = \int k(t)\, P_k(t)\, w(t)\, dt$ by Gauss-Gegenbauer quadrature, with $P_k(1) = 1$ and
    $w \propto (1 - t^2)^{(d - 3)/2}$; its multiplicity is the number of harmonics of degree $k$ in $d$ = `dim`
    dimensions.

    **Arguments:** `kernel`, which depends only on angles on the sphere, e.g. `nk.kernels.NTK(net)`; `dim` >= 3;
    `power` (k,), the mean square of the target's components of degree 0, 1, ...; `noise`; `radius`, $\sqrt d$ by
    default; `degrees`, the highest degree that is resolved.
    """
    if not isinstance(kernel, AbstractKernel):
        raise TypeError(f"`kernel` must be a kernel, e.g. nk.kernels.NTK(net); got {shown(kernel)}.")
    noise = float(positive(noise, "noise", zero=True))
    dim, degrees = whole(dim, "dim", 3, most=100_000), whole(degrees, "degrees", 1, most=200)
    radius = dim**0.5 if radius is None else positive(radius, "radius")
    given = numeric(power, "power")
    if given.ndim != 1 or not given.size or len(given) > degrees + 1 or given.min() < 0:
        raise ValueError(
            f"`power` must be a vector of at most {degrees + 1} nonnegative values, one per degree."
        )
    alpha = dim / 2 - 1
    nodes, weights = special.roots_gegenbauer(400, alpha)
    weights = weights / weights.sum()
    points = np.zeros((len(nodes) + 1, dim))
    points[:-1, 0], points[:-1, 1], points[-1, 0] = nodes, np.sqrt(1 - nodes**2), 1.0
    points = inputs(points, "dim", kernel.input_dim())
    points *= radius
    values = np.asarray(kernel.entries(points[-1:], points), np.float64)[0]
    k = np.arange(degrees + 1)
    legendre = (
        special.eval_gegenbauer(k[:, None], alpha, nodes) / special.eval_gegenbauer(k, alpha, 1.0)[:, None]
    )
    lam = legendre @ (weights * values[:-1])
    count = np.rint(special.binom(k + dim - 1, dim - 1) - special.binom(k + dim - 3, dim - 1))
    kept = lam > 1e-13 * lam.max()
    full = np.zeros(degrees + 1)
    full[: len(given)] = given
    caught = float(count[kept] @ lam[kept])
    lost = float(full[~kept].sum())  # degrees that the kernel cannot see
    return KernelTask(lam[kept], full[kept], noise + lost, count[kept], max(float(values[-1]) - caught, 0.0))
