"""The verb `inspect`: what training will do to a given network, and how far to believe it."""

import math
import time

import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import inputs, refuse_unused, whole
from ..._base.types import ArrayLike, Num
from ..._run.precision import in_float64
from ...models.base import AbstractModel, Params, count_parameters, require_model
from ...models.params import floating_params, training_factors
from ..algorithms.losses import AbstractLoss, AnyLoss, get_loss, require_loss
from ..algorithms.regime import regime
from ..algorithms.spectral import GradientDescent, GradientFlow
from ..orders.requirements import has_kinks
from .linear_stretch import Arrival, Stretch, Timed
from .record import Inspection
from .verdict import CARE, TRUST, Verdict, self_check, trusted_until

_MOMENTS = 14
_STRETCH = 0.1  # largest check within a stretch that is followed by another


@in_float64
def inspect(
    model: AbstractModel,
    params: Params,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    x_new: Num[ArrayLike, " k *d"] | None = None,
    algorithm: Timed | None = None,
    *,
    loss: AnyLoss = "squared",
    steps: int | None = None,
    pieces: int = 1,
    lr_factors: Params | float | None = None,
) -> Inspection:
    r"""Predicts full-batch training of `model` from `params` on (`x`, `y`), and checks whether to trust the prediction.

    The network is replaced by its linearization, which is solved exactly. The self-check

    $$\frac{\lVert z(\theta_{\text{lin}}) - z_{\text{lin}}\rVert}{\lVert z_{\text{lin}} - z_0\rVert}$$

    evaluates the network itself at the predicted weights $\theta_{\text{lin}}$. It is small as long as the network is
    nearly linear along its path.

    **Arguments:**

    - `model` and `params`: from `nk.from_torch` or `nk.from_network`, or any model of this library.
    - `x` (n, ...), `y` (n,) or (n, out); `x_new`, further inputs at which to predict.
    - `algorithm`: `GradientDescent(lr, steps)` without momentum, or `GradientFlow(time)`; by default gradient descent
      for `steps` steps at the learning rate $1/\lambda_{\max}$. Losses are sums over points: if your loss is a mean
      over n points, pass lr/n.
    - `loss`: "squared", "cross_entropy" (`y` may then be integer labels), another loss or a JAX function loss(z, y).
    - `steps`: number of steps of the default algorithm, by default 100.
    - `pieces`: the maximum number of linearizations. With more than 1, the network is linearized again at the predicted
      weights when the check of the current linearization becomes too large.
    - `lr_factors`: learning-rate factors, same as `nk.simulate`: by default the model's own.
    """
    began = time.perf_counter()
    require_model(model)
    params = floating_params(model, params)
    x = inputs(x, "x", model.in_shape)
    new = None if x_new is None else inputs(x_new, "x_new", x.shape[1:])
    function = get_loss(loss)
    columns = np.asarray(function.columns(y, len(x), jax.eval_shape(model, params, x[:1]).shape[1]))
    if algorithm is not None:
        refuse_unused("if `algorithm` is given", steps=steps)
    steps = 100 if steps is None else whole(steps, "steps", 1)
    whole(pieces, "pieces", 1)
    _require_timed(algorithm)
    rows = x if new is None else np.concatenate([x, new])
    first = Stretch(model, params, rows, columns, training_factors(model, params, lr_factors))
    if not np.isfinite(first.start).all():
        raise ValueError("the model's outputs are not finite: check `params`, `x` and `x_new`.")
    require_loss(function, lambda: first.start[: len(columns)], columns)
    if first.spectrum.rank == 0:
        raise ValueError(
            "the model's outputs at `x` do not depend on its parameters: there is nothing to train."
        )
    algorithm = algorithm or GradientDescent(1 / first.spectrum.lam_max, steps)
    moments = _moments(algorithm)
    with np.errstate(over="ignore", invalid="ignore"):  # a rate that is too large is told by the check
        arrivals, checks, expanded_at, unstable_at = _followed(first, algorithm, function, moments, pieces)
    force = -np.asarray(jax.grad(function)(jnp.asarray(first.start[: len(columns)]), jnp.asarray(columns)))
    order = np.argsort(first.spectrum.lam)[::-1]
    eigenvalues = first.spectrum.lam[order]
    along = (first.spectrum.vectors[:, order].T @ force.reshape(-1)) ** 2
    outputs, n = np.stack([each.outputs for each in arrivals]), len(columns)
    losses = [float(function(jnp.asarray(z), jnp.asarray(columns))) for z in outputs[:, :n]]
    return Inspection(
        algorithm=algorithm,
        moments=moments,
        loss_before=float(function(jnp.asarray(first.start[:n]), jnp.asarray(columns))),
        loss=np.array(losses),
        check=np.array(checks),
        verdicts=tuple(map(Verdict.of, checks)),
        trusted_until=trusted_until(moments.tolist(), checks, TRUST),
        fitted=outputs[:, :n],
        predictions=None if new is None else outputs[:, n:],
        params=arrivals[-1].params,
        halfway=halfway(function, columns, force, moments, outputs[:, :n]),
        eigenvalues=eigenvalues,
        alignment=along / max(float((force**2).sum()), np.finfo(float).tiny),
        effective_dimension=float(eigenvalues.sum() ** 2 / (eigenvalues**2).sum()),
        expanded_at=expanded_at,
        unstable_at=unstable_at,
        kinked=has_kinks(model, params, x),
        regime=regime(model, columns, checks[-1]),
        parameters=count_parameters(params),
        seconds=time.perf_counter() - began,
        training_seconds=_training_seconds(model, params, x, columns, function, algorithm),
    )


def _require_timed(algorithm: object) -> None:
    if algorithm is None:
        return
    if not isinstance(algorithm, GradientDescent | GradientFlow):
        raise TypeError(
            "`algorithm` must be nk.GradientDescent(lr, steps) or nk.GradientFlow(time); got "
            f"{type(algorithm).__name__}."
        )
    if isinstance(algorithm, GradientDescent) and algorithm.momentum:
        raise ValueError(f"`momentum` must be 0 in nk.inspect; got {algorithm.momentum}.")
    if isinstance(algorithm, GradientFlow) and algorithm.friction is not None:
        raise ValueError(f"`friction` must be None in nk.inspect; got {algorithm.friction}.")
    if not 0 < algorithm.end() < math.inf:
        name = "steps" if isinstance(algorithm, GradientDescent) else "time"
        raise ValueError(f"`{name}` must be finite and positive in nk.inspect; got {algorithm.end()}.")


def _moments(algorithm: Timed) -> np.ndarray:
    end = algorithm.end()
    if isinstance(algorithm, GradientFlow):
        return np.geomspace(end / 1000, end, _MOMENTS)
    return np.unique(np.geomspace(1, end, _MOMENTS).round()).astype(np.int64)


def _followed(
    first: Stretch, algorithm: Timed, loss: AbstractLoss, moments: np.ndarray, pieces: int
) -> tuple[list[Arrival], list[float], tuple[float, ...], float]:
    """Arrivals at all moments, their checks, where the network was linearized, and where the rate was too large.

    The check of a later stretch counts the gaps that earlier ones left behind.
    """
    stretch, arrivals, checks = first, list[Arrival](), list[float]()
    expanded_at, left_behind, last_gap = [0.0], 0.0, 0.0
    unstable_at = 0.0 if _is_unstable(algorithm, first) else math.inf
    while len(arrivals) < len(moments):
        begun, here = expanded_at[-1], len(arrivals)
        open_end = len(expanded_at) == pieces
        for arrival in stretch.arrivals(algorithm, loss, moments[here:] - begun):
            check = self_check(arrival.gap, float(np.linalg.norm(arrival.outputs - stretch.start)))
            if check > _STRETCH and len(arrivals) > here and not open_end:
                break
            open_end = open_end or not check <= CARE  # nothing is left to go on from
            arrivals.append(arrival)
            total = float(np.linalg.norm(arrival.outputs - first.start))
            checks.append(self_check(left_behind + arrival.gap, total))
            last_gap = arrival.gap
        if len(arrivals) < len(moments):
            following = Stretch(first.model, arrivals[-1].params, first.rows, first.y, first.factors)
            if _is_unstable(
                algorithm, following
            ):  # a linear prediction would explode, where the network need not
                unstable_at, pieces = float(moments[len(arrivals) - 1]), len(expanded_at)
                continue
            left_behind += last_gap
            expanded_at.append(float(moments[len(arrivals) - 1]))
            stretch = following
    return arrivals, checks, tuple(expanded_at), unstable_at


def _is_unstable(algorithm: Timed, stretch: Stretch) -> bool:
    return stretch.spectrum.lam_max >= algorithm.limit()


def halfway(
    loss: AbstractLoss, y: np.ndarray, force: np.ndarray, moments: np.ndarray, outputs: np.ndarray
) -> np.ndarray:
    """When |dloss/dz| of each point has fallen to half."""
    forces = [np.asarray(jax.grad(loss)(jnp.asarray(z), jnp.asarray(y))) for z in outputs]
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.stack([np.linalg.norm(each, axis=1) for each in (force, *forces)])
    below = np.flip(np.minimum.accumulate(np.flip(sizes[1:] <= 0.5 * sizes[0], 0), 0), 0)  # and stays there
    return np.where(below.any(0), np.asarray(moments, float)[below.argmax(0)], np.inf)


def _training_seconds(
    model: AbstractModel, params: Params, x: np.ndarray, y: np.ndarray, loss: AbstractLoss, algorithm: Timed
) -> float:
    """Of all steps, from the time of one gradient."""
    if not isinstance(algorithm, GradientDescent):
        return math.nan
    jax.block_until_ready(_gradient(loss, model, params, x, y))
    began = time.perf_counter()
    jax.block_until_ready(_gradient(loss, model, params, x, y))
    return float(algorithm.steps) * (time.perf_counter() - began)


@jax.jit(static_argnums=(0,))
def _gradient(loss, model, params, x, y):
    return jax.grad(lambda p: loss(model(p, x), y))(params)
