r"""Training on separable data forever: the direction of the weights tends to the maximum margin, in log time.

For the loss $\sum_i \exp(-y_i\, w \cdot x_i)$ (or logistic), $w(t) = \hat w \log t + \tilde w + o(1)$, where $\hat w$
is the shortest $w$ with $y_i\, w \cdot x_i \ge 1$, and $\exp(-y_i\, x_i \cdot \tilde w) = a_i$, its dual variable, on
the support vectors.
"""

from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import class_names, inputs, numeric, one_of, truth
from ..._base.result import Result
from ..._base.rooms import renamed
from ..._base.status import Status, StatusKind
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ..algorithms.ode import integrate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOSSES = ("exponential", "logistic")
_WEIGHTS = (1.0, 1e2, 1e4, 1e6)  # of the column that stands for a bias, until the support no longer changes


class MaxMarginResult(Result, eqx.Module):
    r"""The maximum-margin classifier $\operatorname{sign}(w \cdot x + b)$.

    **Fields:** `w` (d,), of minimum norm with $y_i (w \cdot x_i + b) \ge 1$; `b`, 0 without a bias; `margin`,
    $1/\lVert w\rVert$; `dual` (n,), $a_i \ge 0$ with $w = \sum_i a_i y_i x_i$, and $\sum_i a_i y_i = 0$ if there is a
    bias; `support`, indices with $a_i > 0$; `offset` (d,), the part of $\tilde w$ in the span of the support vectors,
    or None with a bias.
    """

    w: np.ndarray
    margin: float
    dual: np.ndarray
    support: np.ndarray
    offset: np.ndarray | None
    b: float = 0.0


@renamed(X="x")
def max_margin(x: ArrayLike, labels: ArrayLike, bias: bool = False) -> MaxMarginResult:
    r"""The maximum-margin classifier: $\min \lVert w\rVert$ subject to $y_i (w \cdot x_i + b) \ge 1$.

    Without `bias`, $b = 0$. Gradient flow of $w$ alone converges to the classifier without a bias. If a bias is
    trained as well, the flow converges to the shortest $(w, b)$: append a column of ones to `x` to get that one. Its
    margin is smaller than with `bias=True`, which minimizes $\lVert w\rVert$ alone.

    **Arguments:** `x` (n, d); `labels` (n,), two values, of which the larger is the positive class; `bias`, whether to
    fit b. Raises `ValueError` if no classifier separates the data.

    The solver treats it as a nonnegative least-squares problem with an active set; it is exact up to rounding.
    """
    if truth(bias, "bias"):
        return _with_bias(x, labels)
    rows, scale = _signed_rows(x, labels)
    dual = _dual(rows)
    if dual is None:
        raise ValueError(_not_separable(" through the origin", " Try `bias=True`."))
    # Polish on the active set: rows_S w = 1 with w = rows_S^T a, so that the margins are 1 to rounding.
    active = _active(dual)
    polished = np.linalg.lstsq(rows[active] @ rows[active].T, np.ones(active.sum()), rcond=None)[0]
    if (polished > 0).all():
        dual = np.zeros(len(rows))
        dual[active] = polished
    w = rows.T @ dual
    if np.min(rows @ w) < 1 - 1e-6:
        raise ValueError(_not_separable(" through the origin", " Try `bias=True`."))
    support = np.flatnonzero(active)
    offset = np.linalg.lstsq(rows[support] / scale, -np.log(dual[support] * scale**2), rcond=None)[0]
    w = w * scale
    return MaxMarginResult(w, float(1 / np.linalg.norm(w)), dual * scale**2, support, offset)


def _dual(rows: np.ndarray) -> np.ndarray | None:
    """a >= 0 of the shortest w = rows^T a with rows w >= 1; None if there is no such w."""
    from scipy.optimize import nnls

    # Least-distance programming (Lawson and Hanson): with u >= 0 minimizing |E u - f|, E = [rows^T; 1], f = (0, 1),
    # the residual r = f - E u holds the answer, w = r[:d] / -r[d]. It vanishes if no w separates.
    system = np.vstack([rows.T, np.ones(len(rows))])
    u, _ = nnls(system, np.append(np.zeros(rows.shape[1]), 1.0), maxiter=30 * len(rows) + 100)
    rest = 1.0 - u.sum()  # the last residual, |r|^2 at the optimum
    return None if rest <= 1e-13 else u / rest


def _active(dual: np.ndarray) -> np.ndarray:
    return dual > 1e-10 * dual.max()


def _with_bias(x: ArrayLike, labels: ArrayLike) -> MaxMarginResult:
    """A bias is a column of constants, free of charge if they are large; then solve on the support that they give."""
    from scipy.optimize import nnls

    x = inputs(x, "x")
    signs, center = signs_of(labels, len(x)), x.mean(axis=0)
    scale = 1.0 / max(float(np.linalg.norm(x - center, axis=1).max()), 1e-300)
    rows = signs[:, None] * (x - center) * scale
    for weight in _WEIGHTS:
        dual = _dual(np.column_stack([rows, weight * signs]))
        if dual is None:
            break
        active = np.flatnonzero(_active(dual))
        # rows_S w + y_S b = 1 with w = rows_S^T a and y_S.a = 0
        square = np.zeros((len(active) + 1, len(active) + 1))
        square[:-1, :-1] = rows[active] @ rows[active].T
        square[:-1, -1] = square[-1, :-1] = signs[active]
        *a, b = np.linalg.lstsq(square, np.append(np.ones(len(active)), 0.0), rcond=None)[0]
        w = rows[active].T @ np.array(a)
        a, left = nnls(np.vstack([rows[active].T, signs[active]]), np.append(w, 0.0))
        if left <= 1e-9 * np.linalg.norm(w) and np.min(rows @ w + signs * b) >= 1 - 1e-9:
            dual = np.zeros(len(rows))
            dual[active] = a * scale**2
            support = np.flatnonzero(dual)
            w = w * scale
            return MaxMarginResult(
                w, float(1 / np.linalg.norm(w)), dual, support, None, float(b - w @ center)
            )
    raise ValueError(_not_separable())


def _not_separable(how: str = "", advice: str = "") -> str:
    return f"`x` is not linearly separable by `labels`{how}: there is no margin.{advice}"


class MarginPath(Result, eqx.Module):
    r"""The weights of a linear classifier along gradient flow.

    **Fields:** `log_time` (m,); `w` (m, d); `direction_error` (m,), the distance of $w/\lVert w\rVert$ from
    $\hat w/\lVert\hat w\rVert$; `margin_gap` (m,), the maximum margin minus the margin of $w(t)$; `limit`, the
    `MaxMarginResult`; `status`, an `nk.Status`, and its `ok`.
    """

    log_time: np.ndarray
    w: np.ndarray
    direction_error: np.ndarray
    margin_gap: np.ndarray
    limit: MaxMarginResult
    status: Status = eqx.field(static=True)

    @property
    def ok(self) -> bool:
        return self.status.ok

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw direction and margin of $w(t)$, as distances to the limit, on Matplotlib's `axes`."""
        from ..._plots.lines import draw_lines

        both = np.stack([self.direction_error, self.margin_gap], axis=1)
        return draw_lines(
            self.log_time, both, axes, labels=["direction", "margin"], xlabel="ln(time)",
            ylabel="distance to the limit", log="y",
        )  # fmt: skip


@renamed(X="x")
@in_float64
def margin_flow(
    x: ArrayLike, labels: ArrayLike, log_time: ArrayLike, loss: str = "exponential"
) -> MarginPath:
    r"""Gradient flow from $w = 0$ on separable data, integrated in log time, which reaches times such as $e^{1000}$.

    **Arguments:** `x` (n, d); `labels` (n,), two values; `log_time` (m,), increasing and >= 0: $\log(1 + t)$, where
    the time $t$ of gradient descent is `lr` times `steps`; `loss`, "exponential", $\sum e^{-y\, w \cdot x}$, or
    "logistic", $\sum \log(1 + e^{-y\, w \cdot x})$.
    """
    one_of(loss, "loss", LOSSES)
    times = numeric(log_time, "log_time")
    if times.ndim != 1 or len(times) == 0 or times[0] < 0 or (np.diff(times) <= 0).any():
        raise ValueError("`log_time` must be an increasing vector of numbers that are at least 0.")
    limit = max_margin(x, labels)
    rows, scale = _signed_rows(x, labels)
    rows = rows / scale
    saved = np.concatenate([[0.0], times[times > 0]])
    path, success = _follow(jnp.asarray(rows), jnp.asarray(limit.w), jnp.asarray(saved), loss)
    path = np.asarray(path)
    w = path[1:] if times[0] > 0 else path
    w = w + times[:, None] * limit.w
    length = np.maximum(np.linalg.norm(w, axis=1), 1e-300)
    with np.errstate(invalid="ignore"):  # of a flow that was too stiff: the status says so
        unit = w / length[:, None]
        gap = limit.margin - (unit @ rows.T).min(axis=1)
        error = np.linalg.norm(unit - limit.w * limit.margin, axis=1)
    if bool(success) and np.isfinite(w).all():
        status = Status(StatusKind.finished, "finished")
    else:
        status = Status(StatusKind.stiff, "not finished: the flow is too stiff")
    return MarginPath(times, w, error, gap, limit, status)


@jax.jit(static_argnums=3)
def _follow(rows, w_hat, times, loss):
    """v = w - w_hat s with s = log(1 + t): on support vectors its equation is free of s, so it is never stiff."""
    ahead = rows @ w_hat - 1  # 0 on support vectors, positive elsewhere

    def field(state):
        v, s = state
        exponent = -rows @ v - s * ahead  # s - y x.w
        force = (
            jnp.exp(exponent) if loss == "exponential" else jnp.exp(exponent) / (1 + jnp.exp(exponent - s))
        )
        return rows.T @ force - w_hat, jnp.ones_like(s)

    (path, _), success = integrate(
        field, (jnp.zeros_like(w_hat), jnp.zeros(())), times, rtol=1e-10, atol=1e-12
    )
    return path, success


def _signed_rows(x: ArrayLike, labels: ArrayLike) -> tuple[np.ndarray, float]:
    """y_i x_i, scaled to a largest length 1, and the factor by which they were scaled."""
    x = inputs(x, "x")
    rows = x * signs_of(labels, len(x))[:, None]
    longest = np.linalg.norm(rows, axis=1).max()
    if longest == 0:
        raise ValueError("`x` is 0 everywhere, so it is not separable.")
    return rows / longest, 1.0 / longest


def signs_of(labels: ArrayLike, count: int) -> np.ndarray:
    """1 for the larger of the two values of `labels`, -1 for the other."""
    labels = class_names(labels, count)
    names = np.unique(labels)
    if len(names) != 2:
        what = f"all are {names[0]!r}" if len(names) == 1 else f"got {len(names)}"
        raise ValueError(f"`labels` must have two values; {what}.")
    return np.where(labels == names[1], 1.0, -1.0)
