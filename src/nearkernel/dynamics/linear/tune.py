"""How strong a ridge, how long a training, which kernel? What leave-one-out or the marginal likelihood prefers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, overload

import equinox as eqx
import numpy as np

from ..._base.check import inputs, numeric, one_of, shown, targets
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._base.warning import warn
from ..._run.precision import in_float64
from ..algorithms.spectral import GradientFlow, Ridge, SpectralAlgorithm
from .leave_one_out import LeaveOneOut, left_out
from .marginal_likelihood import TunedKernel, most_likely
from .tangent import Problem, tangent_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KINDS = ("ridge", "flow", "evidence")
_STRENGTHS = np.logspace(-8, 2, 41)  # times the mean of the kernel's diagonal
_TIMES = 41


class Tuned(Result, eqx.Module):
    """The leave-one-out error of every strength or time tried.

    **Fields:** `values` (k,), strengths or times; `error` and its `sem` (k,) for each; `value`, the best one;
    `algorithm` with that value.
    """

    values: np.ndarray
    error: np.ndarray
    sem: np.ndarray
    value: float
    algorithm: SpectralAlgorithm

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the leave-one-out error of the values tried on Matplotlib's `axes`."""
        from ..._plots.lines import draw_lines

        axes = draw_lines(
            self.values, self.error, axes, errors=self.sem, xlabel=f"{type(self.algorithm).__name__}",
            ylabel="leave-one-out error", log="xy",
        )  # fmt: skip
        axes.axvline(self.value, linestyle="--", linewidth=1, color="0.5")
        return axes


@overload
def tune(
    problem: Problem,
    x: ArrayLike,
    y: ArrayLike,
    kind: Literal["ridge", "flow"] = "ridge",
    values: ArrayLike | None = None,
) -> Tuned: ...


@overload
def tune(
    problem: Problem,
    x: ArrayLike,
    y: ArrayLike,
    kind: Literal["evidence"],
    *,
    noise: float | None = None,
    fixed: Sequence[str] | None = None,
) -> TunedKernel: ...


@in_float64
def tune(
    problem: Problem,
    x: ArrayLike,
    y: ArrayLike,
    kind: str = "ridge",
    values: ArrayLike | None = None,
    *,
    noise: float | None = None,
    fixed: Sequence[str] | None = None,
) -> Tuned | TunedKernel:
    r"""Chooses a ridge, a time of gradient flow, or all parameters of a kernel, without held-out data.

    - "ridge", "flow": the strength or time with the smallest leave-one-out error. One eigendecomposition serves all
      values. If the best value is at an end of the list, a warning says so.
    - "evidence": the parameters of a kernel, and the noise, by gradients of the marginal likelihood of the Gaussian
      process: lengths (with `nk.kernels.ARD` one per column), periods, factors, and for `NNGP` and `NTK` the
      `weight_var` and `bias_var` of the layers. A parameter that is 0 stays 0.

    **Arguments:**

    - `problem`, `x` (n, d), `y` (n,) or (n, out): same as `nk.solve`; for "evidence" `problem` is a kernel.
    - `kind`: "ridge", "flow" or "evidence".
    - `values` (k,): the strengths or times to try; by default 41 strengths from 1e-8 to 100 times the mean of k(x,
      x), or 41 times from $0.1/\lambda_{\max}$ to the end of training.
    - `noise`: for "evidence", the initial noise variance, by default a tenth of the variance of y.
    - `fixed`: for "evidence", names of parameters that keep their values, e.g. `["noise", "period"]`.

    **Returns:** a `Tuned`, or for "evidence" a `TunedKernel`: `kernel`, `noise`, `log_marginal_likelihood`.
    """
    if one_of(kind, "kind", _KINDS) == "evidence":
        if values is not None:
            raise ValueError('`values` are for kind="ridge" and "flow"; got kind="evidence".')
        return most_likely(problem, x, y, noise, fixed)
    if noise is not None or fixed is not None:
        raise ValueError(f'`noise` and `fixed` are for kind="evidence"; got kind="{kind}".')
    tangent = tangent_of(problem)
    x = inputs(x, "x", tangent.input_dim())
    y = targets(y, len(x), out=tangent.out_dim(x))
    factor = tangent.spectrum(x)
    right = tangent.flat(y - tangent.start(x, y.shape[1]))
    if factor.rank == 0:
        raise ValueError("the kernel is zero on `x`: there is nothing to tune.")
    if values is None:
        if kind == "ridge":
            tried = _STRENGTHS * (factor.lam.sum() / len(right))
        else:
            last = 10 / max(factor.lam_min, 1e-10 * factor.lam_max)
            tried = np.logspace(np.log10(0.1 / factor.lam_max), np.log10(last), _TIMES)
    else:
        tried = np.sort(numeric(values, "values").ravel())
        if not len(tried) or tried[0] <= 0:
            raise ValueError(f"`values` must be a list of numbers greater than 0; got {shown(values)}.")
    make = Ridge if kind == "ridge" else GradientFlow
    left = []
    for value in tried:
        residual, _ = left_out(factor, make(float(value)), right, len(x))
        left.append(LeaveOneOut(y, residual.reshape(y.shape), None))
    errors = np.array([each.error for each in left])
    best = int(errors.argmin())
    if values is not None and len(tried) > 1 and best in (0, len(tried) - 1):
        warn(f"the best of `values` is at an end of the range, {tried[best]:g}: try values beyond it.")
    return Tuned(
        tried, errors, np.array([each.sem for each in left]), float(tried[best]), make(float(tried[best]))
    )
