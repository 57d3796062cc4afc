r"""Kernel parameters by the marginal likelihood of a Gaussian process, and its gradients.

$$\log p(y) = -\frac12 \sum_{\text{columns}} \left[y^\top (K + \text{noise})^{-1} y + \log\det(K + \text{noise})
+ n \log 2\pi\right]$$
"""

import math
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from ..._base.check import inputs, listed, nearest, positive, targets
from ..._base.result import Result
from ..._base.status import Status, StatusKind
from ..._base.types import ArrayLike
from ..._run.memory import require_fits
from ...kernels.base import AbstractKernel, require_kernel
from ...kernels.classical.mapped import ARD

Array: TypeAlias = jax.Array | np.ndarray
LEARNED = ("length", "lengths", "period", "bias", "factor", "weight_var", "bias_var", "qk_var", "ov_var")
_FARTHEST = 12.0  # that the logarithm of a parameter may move
_LEAST_NOISE = 1e-10  # of the mean of k(x, x)
_MOST = 300  # iterations
_FIRST = 0.1  # step of the logarithms: a larger one leaves the hill of a period


class TunedKernel(Result, eqx.Module):
    """A kernel whose parameters maximize the marginal likelihood of a Gaussian process with noise.

    **Fields:** `kernel`, with the learned parameters; `noise`, the variance of the observations, for
    `nk.Ridge(noise)` or `nk.posterior(..., noise=noise)`; `log_marginal_likelihood`, and `before`, its
    value at the given parameters; `parameters`, a dict of the learned values; `iterations`; `status`, an `nk.Status`,
    and its `ok`.
    """

    kernel: AbstractKernel
    noise: float
    log_marginal_likelihood: float
    before: float
    parameters: dict[str, float | np.ndarray]
    iterations: int
    status: Status = eqx.field(static=True)

    @property
    def ok(self) -> bool:
        return self.status.ok


class _Parameters:
    """The leaves of a kernel that are learned, by name, as logarithms in one vector; the noise is the last."""

    def __init__(self, kernel: AbstractKernel, noise: float, fixed: Sequence[str]):
        paths, self.tree = jax.tree_util.tree_flatten_with_path(kernel)
        self.leaves = [leaf for _, leaf in paths]
        named = {i: _name(path) for i, (path, leaf) in enumerate(paths) if _is_learned(kernel, path, leaf)}
        last = [name.rpartition(".")[2] for name in named.values()]
        known = [*named.values(), *last, "noise"]
        for name in fixed:
            if name not in known:
                raise ValueError(
                    f"`fixed` must name parameters of the kernel, any of {', '.join(dict.fromkeys(known))}; "
                    f"got {name!r}.{nearest(name, known)}"
                )
        self.named = {
            i: name for i, name in named.items() if not {name, name.rpartition(".")[2]} & set(fixed)
        }
        self.noise, self.noisy = noise, "noise" not in fixed
        if not self.named and not self.noisy:
            raise ValueError("`fixed` leaves nothing to learn: remove a name from it.")
        self.sizes = [np.size(self.leaves[i]) for i in self.named]

    def start(self) -> np.ndarray:
        parts = [np.log(np.asarray(self.leaves[i], float)).ravel() for i in self.named]
        return np.concatenate([*parts, *([[math.log(self.noise)]] if self.noisy else [])])

    def values(self, logs: Array, xp: ModuleType) -> dict[int, Array]:
        parts = xp.split(xp.exp(logs), np.cumsum(self.sizes).tolist())
        return {i: part.reshape(np.shape(self.leaves[i])) for i, part in zip(self.named, parts, strict=False)}

    def noise_of(self, logs: Array, xp: ModuleType) -> Array | float:
        return xp.exp(logs[-1]) if self.noisy else self.noise

    def kernel(self, values: Mapping[int, Array | float]) -> AbstractKernel:
        leaves = [values.get(i, leaf) for i, leaf in enumerate(self.leaves)]
        return jax.tree.unflatten(self.tree, leaves)


def _name(path: tuple) -> str:
    return jax.tree_util.keystr(path).lstrip(".")


def _is_learned(kernel: AbstractKernel, path: tuple, leaf: object) -> bool:
    """A positive number that is a parameter by its name; a length inside of `ARD` is that of its columns."""
    names = [getattr(entry, "name", None) for entry in path]
    named = next((name for name in reversed(names) if name is not None), None)
    if named not in LEARNED or not np.all(np.asarray(leaf) > 0):
        return False
    here: Any = kernel
    for entry in path:
        if named == "length" and isinstance(here, ARD):
            return False
        if not isinstance(entry, jax.tree_util.GetAttrKey):
            break
        here = getattr(here, entry.name)
    return True


def most_likely(
    problem: Any, x: ArrayLike, y: ArrayLike, noise: float | None, fixed: Sequence[str] | None
) -> TunedKernel:
    """The kernel of the greatest marginal likelihood near `problem`."""
    require_kernel(problem, "problem")
    x = inputs(x, "x", problem.input_dim())
    y = targets(y, len(x))
    require_fits(8 * 8 * len(x) ** 2, f"the likelihood of {len(x)} points", "use fewer points")
    scale = float(problem.diag(x).mean())
    if noise is None:
        noise = 0.1 * float(y.var()) or 0.1 * scale
    names = [] if fixed is None else listed(fixed, "fixed", "['noise']")
    parameters = _Parameters(problem, float(positive(noise, "noise")), names)
    rows, columns = jnp.asarray(x), jnp.asarray(y)

    @jax.jit
    def loss(logs):
        kernel = parameters.kernel(parameters.values(logs, jnp))
        return -_log_likelihood(kernel.traced(rows, None), parameters.noise_of(logs, jnp), columns)

    both = jax.jit(jax.value_and_grad(loss))

    def evaluated(units: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = both(_FIRST * units)
        fine = bool(jnp.isfinite(value) & jnp.isfinite(slope).all())
        return (float(value), _FIRST * np.asarray(slope)) if fine else (1e100, np.zeros_like(units))

    start = parameters.start()
    bounds = [(at - _FARTHEST, at + _FARTHEST) for at in start]
    if parameters.noisy:
        bounds[-1] = (min(start[-1], math.log(max(_LEAST_NOISE * scale, 1e-300))), start[-1] + _FARTHEST)
    before = float(loss(start))
    if not math.isfinite(before):
        raise ValueError(
            f"the marginal likelihood is not finite at noise={noise:g}: the kernel matrix is singular; give a larger "
            "`noise`."
        )
    optimum = scipy.optimize.minimize(
        evaluated,
        start / _FIRST,
        jac=True,
        method="L-BFGS-B",
        bounds=np.array(bounds) / _FIRST,
        options={"maxiter": _MOST},
    )
    return _record(parameters, optimum, before)


def _record(parameters: _Parameters, optimum: scipy.optimize.OptimizeResult, before: float) -> TunedKernel:
    logs = _FIRST * optimum.x
    values = {i: _plain(value) for i, value in parameters.values(logs, np).items()}
    noise = float(parameters.noise_of(logs, np))
    learned = {parameters.named[i]: value for i, value in values.items()}
    if parameters.noisy:
        learned["noise"] = noise
    status = Status(StatusKind.converged, f"converged in {optimum.nit} iterations")
    if not optimum.success and optimum.nit >= _MOST:
        status = Status(StatusKind.not_converged, f"not converged after {optimum.nit} iterations")
    return TunedKernel(
        parameters.kernel(values), noise, -float(optimum.fun), -before, learned, int(optimum.nit), status
    )


def _plain(value: Array) -> float | np.ndarray:
    return float(value) if np.ndim(value) == 0 else np.array(value)


def _log_likelihood(matrix, noise, y):
    n = len(y)
    lower = jnp.linalg.cholesky(matrix + noise * jnp.eye(n))
    white = jax.scipy.linalg.solve_triangular(lower, y, lower=True)
    normal = y.shape[1] * (2 * jnp.sum(jnp.log(jnp.diagonal(lower))) + n * math.log(2 * math.pi))
    return -0.5 * (jnp.sum(white**2) + normal)
