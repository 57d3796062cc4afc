"""The verb `simulate`: train for real, in parameter space, and keep what is asked for."""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.dtypes import canonicalize_dtype

from ..._base.check import inputs, numeric, positive, refuse_unused, shown, whole
from ..._base.keys import Key, random_key
from ..._base.result import Result
from ..._base.status import Status, StatusKind
from ..._base.types import ArrayLike, Num
from ..._run.precision import drawing, is_traced, working_dtype
from ..._run.progress import interactive, report, task
from ...models.base import AbstractModel, Params, require_model
from ...models.params import checked_params, training_factors
from ..algorithms.adaptive import Adam, Optax, optimizer_of
from ..algorithms.divergence import judged, rounding_of
from ..algorithms.losses import AbstractLoss, AnyLoss, get_loss, loss_of_zero, require_loss
from ..algorithms.sgd import SGD, require_batch
from ..algorithms.spectral import AbstractAlgorithm, GradientDescent, GradientFlow
from ..linear.base import AbstractSolution, ForecastLosses, losses_of
from .steps import NAMED, Problem, State, descend, flow, observe, rest_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Observable: TypeAlias = str | Callable[[Params], jax.Array]
Observables: TypeAlias = str | Sequence[str] | Mapping[str, Observable]
Stepped: TypeAlias = GradientDescent | SGD | Adam | Optax
_CHUNK = 400  # steps between two looks at the loss
_MOST_RECORDS = 1000
_MOST_DOUBLINGS = 60
_NEVER_FINITE = "diverged: the initial loss is not finite"
_FINISHED, _CONVERGED = Status(StatusKind.finished, "finished"), Status(StatusKind.converged, "converged")
_UNCHECKED = Status(StatusKind.unchecked, "ran inside jit, vmap or measure: divergence was not checked")


def _by_name(observables: Observables) -> Mapping[str, Observable]:
    if isinstance(observables, str):
        observables = [observables]
    if not isinstance(observables, Mapping | list | tuple):
        raise TypeError(
            f"`observables` must be a dict of functions or a list of names; got {shown(observables)}."
        )
    return observables if isinstance(observables, Mapping) else {name: name for name in observables}


class Record(eqx.Module):
    """Which observables `nk.simulate` records, and how often.

    **Arguments:** `observables`, a dict of name -> JAX function of the parameters, or a list of the names "outputs" (n,
    out), "features" (n, out, P), "kernel" (n, out, n, out) and "weights", evaluated on the training inputs (in a dict,
    the value may be one of these names instead of a function). Features are derivatives by the parameters, times the
    roots of the learning-rate factors: their products are the kernel of this training. To record outputs at new points,
    use `nk.Record({"test": lambda params: net(params, x_new)})`; `every`, steps (or, for flows, time) between two
    records: about a thousand records by default. The loss is always recorded.
    """

    observables: Any = eqx.field(default_factory=dict, converter=_by_name)
    every: float | None = None

    def __check_init__(self):
        for name, function in self.observables.items():
            if name in ("loss", "time") or not (callable(function) or function in NAMED):
                known = ", ".join(map(repr, NAMED))
                raise TypeError(
                    f"`record` needs functions of the parameters (not named 'loss' or 'time') or names from {known}; "
                    f"got {name!r}."
                )
        if self.every is not None:
            positive(self.every, "every")


class Trajectory(Result, eqx.Module):
    """The result of a training run.

    **Fields:** `params` at the end, or the last finite ones; `history`, arrays by name, including "time" and "loss",
    one row per record; `status`, an `nk.Status`; `ok`: the run finished or converged without diverging (by the rules
    of `nk.simulate`); `steps` taken (0 for flows).
    """

    params: Params
    history: dict[str, Params]
    status: Status = eqx.field(static=True)
    steps: int = eqx.field(static=True)

    @property
    def ok(self) -> bool:
        return self.status.ok

    def _shown(self) -> Mapping[str, object]:
        losses = np.asarray(self.history["loss"])
        size = sum(np.size(leaf) for leaf in jax.tree.leaves(self.params))
        return {
            "status": self.status,
            "steps": self.steps,
            "loss": (losses[0], losses[-1]) if losses.ndim == 1 and losses.size else losses,
            "parameters": size,
            "history": sorted(self.history),
        }

    def plot(
        self, axes: "Axes | None" = None, theory: AbstractSolution | ForecastLosses | None = None
    ) -> "Axes":
        """Draw the recorded loss over time on Matplotlib's `axes`, and that of `theory`.

        `theory` is a forecast (a `WideForecast` or `RichForecast`, the mean over all networks) or a solution of
        `nk.solve`, with the same algorithm.
        """
        from ..._plots.training import draw_loss

        unit = "step" if self.steps else "time"
        times, losses = (np.asarray(self.history[name]) for name in ("time", "loss"))
        if theory is None:
            return draw_loss(times, losses, axes, name=unit)
        expected = losses_of(theory, unit, times)
        axes = draw_loss(times, losses, axes, name=unit, label="trained network")
        draw_loss(*expected, axes, name=unit, label="theory", line="--")
        axes.legend()
        return axes


@drawing
def simulate(
    model: AbstractModel,
    params: Params,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    algorithm: AbstractAlgorithm,
    record: Record | None = None,
    *,
    loss: AnyLoss = "squared",
    lr_factors: Params | float | None = None,
    key: Key | None = None,
    tol: float | None = None,
    max_steps: int | None = None,
) -> Trajectory:
    r"""Trains `model` from `params` on (`x`, `y`).

    **Arguments:**

    - `model`, `params`: any model and its initial parameters.
    - `x` (n, d), `y` (n,) or (n, out): training data.
    - `algorithm`: `GradientDescent`, `GradientFlow`, `SGD`, `Adam`, or any Optax optimizer as `nk.Optax`.
    - `record`: an `nk.Record`, which observables to record.
    - `loss`: "squared", "cross_entropy" (`y` may then be integer labels), another loss or a JAX function loss(z, y).
    - `lr_factors`: learning-rate factors. By default the network's own, `net.lr_factors()` (for `Adam`,
      `net.lr_factors("adam")` in maximal update parametrization, otherwise 1), as in `nk.forecast`, `nk.solve`,
      `nk.inspect` and `nk.kernels.EmpiricalNTK`. Others are one number, 1.0 for plain gradient descent, or a tree like
      `params`.
    - `key`: needed if the algorithm is random.
    - `tol`, `max_steps`: an algorithm without a finite end runs until the loss has fallen to $\text{tol}^2$ of its
      initial value (or of the loss of zero outputs, if that is larger) or its gradient to `tol`, 1e-10 by default (at
      least 64 rounding units); for at most `max_steps` of gradient descent, a million by default.

    Training is in float64, or in float32 within `nk.precision("float32")`. An argument without effect, such as a `key`
    where nothing is drawn, raises `ValueError`.

    **Returns:** a `Trajectory`. Divergence is a status, not an error. A run counts as diverged if the recorded loss

    1. is not finite;
    2. ends more than 1% above its initial value. A catapult that comes down again has not diverged; one that is cut
      short at its peak counts as diverged: give it more steps. Random batches keep even a fitted model in motion, so
      for `SGD` the mean over the last tenth of the records must exceed 10 times the initial loss; below that the
      message reports the rise;
    3. grows threefold or more from the fourth sixth of the records to the fifth, and again to the last, even if it is
      below its initial value (not for `SGD`, nor with momentum, where the loss may rise for other reasons).

    A loss at rounding level (below 64 rounding units times the loss of zero outputs) is not checked. Other runs with
    finitely many steps are `finished`, whether or not they are near convergence. Inside `jit`, `vmap` or `nk.measure`
    a run is one JAX expression (finite `steps` only): nothing is checked, the status is `unchecked`, and `ok` is
    False.
    """
    require_model(model)
    if not isinstance(algorithm, GradientDescent | GradientFlow | SGD | Adam | Optax):
        raise TypeError(
            "`algorithm` must have steps or a time (GradientDescent, GradientFlow, SGD, Adam, Optax); got "
            f"{type(algorithm).__name__}."
        )
    record = Record() if record is None else record
    if not isinstance(record, Record):
        raise TypeError(f"`record` must be an nk.Record; got {shown(record)}.")
    function = get_loss(loss)
    params = checked_params(model, params)
    optimizer = optimizer_of(algorithm, model, params, lr_factors)
    lr_factors = training_factors(model, params, lr_factors, optimizer)
    traced = is_traced(model, params, x, y)
    if not traced:
        x = inputs(x, "x", model.in_shape)
        out = jax.eval_shape(model, params, x[:1]).shape[1]
        columns = function.columns(y, len(x), out)
        params = jax.tree.map(lambda leaf: numeric(leaf, "params"), params)
        model, params, rows, columns, lr_factors = jax.tree.map(
            _working, (model, params, x, columns, lr_factors)
        )
    else:
        # 64 bits may come from outside into a program of 32.
        params, rows, columns = jax.tree.map(
            lambda a: jnp.asarray(a, canonicalize_dtype(jnp.result_type(a))), (params, x, y)
        )
        columns = function.columns(columns, len(rows), jax.eval_shape(model, params, rows[:1]).shape[1])
    if isinstance(algorithm, SGD | Optax) and algorithm.random:
        random = require_batches(algorithm, key, len(rows))
    else:
        refuse_unused("if `algorithm` draws nothing", key=key)
        random = None
    end = algorithm.time if isinstance(algorithm, GradientFlow) else algorithm.steps
    if not math.isinf(end):
        refuse_unused("if `algorithm` has a finite end", tol=tol, max_steps=max_steps)
    elif isinstance(algorithm, GradientFlow):
        refuse_unused("in a flow", max_steps=max_steps)
    tol, max_steps = 1e-10 if tol is None else tol, 1_000_000 if max_steps is None else max_steps
    problem = Problem(model, jnp.asarray(rows), jnp.asarray(columns), lr_factors, params)
    require_loss(function, lambda: model(params, problem.x), problem.y)
    state = State(params, rest_of(algorithm, params), jnp.asarray(0.0))
    run = _Run(problem, function, tuple(record.observables.items()), record.every, tol, max_steps)
    if traced:
        if isinstance(algorithm, GradientFlow):
            return run.traced_flow(algorithm, state)
        return run.traced_steps(algorithm, random, state)
    try:
        with task("simulate"):
            if isinstance(algorithm, GradientFlow):
                return run.flow(algorithm, state)
            return run.steps(algorithm, random, state)
    except KeyboardInterrupt:
        if not (interactive() and run.rows):
            raise
        return run.interrupted()


def _working(leaf: Any) -> Any:
    """An array of floating point in the working precision, anything else as it is."""
    return (
        jnp.asarray(leaf, working_dtype())
        if eqx.is_inexact_array_like(leaf) and hasattr(leaf, "dtype")
        else leaf
    )


def require_batches(algorithm: SGD | Optax, key: Key | None, n: int) -> jax.Array | None:
    """The key of what is drawn, None if nothing is; refuses batches of more than the `n` points there are."""
    if algorithm.batch_size is not None:
        require_batch(algorithm.batch_size, n)
    if not algorithm.random:
        return None
    if key is None:
        drawn = "noise" if algorithm.batch_size is None else "batches"
        raise ValueError(f"`{type(algorithm).__name__}` draws {drawn}: pass `key=jax.random.key(0)`.")
    return random_key(key)


class _Run:
    """One run: the loop around the compiled loops, which looks at the loss from time to time."""

    def __init__(
        self,
        problem: Problem,
        loss: AbstractLoss,
        observables: tuple,
        every: float | None,
        tol: float,
        max_steps: int,
    ):
        self.problem, self.loss = problem, loss
        self.observables, self.every = observables, every
        rounding = rounding_of(jnp.result_type(*jax.tree.leaves(problem.start)))
        self.tol, self.max_steps = max(positive(tol, "tol"), rounding), whole(max_steps, "max_steps", 1)
        self.noisy = self.inertial = False
        self.rows: list[dict[str, Params]] = []
        self.last: tuple[State, int] = ()  # type: ignore[assignment]

    def keep(self, rows: dict) -> bool:
        """Stores rows up to the first that is not finite; whether all were finite."""
        rows = jax.tree.map(np.asarray, rows)
        finite = np.isfinite(rows["loss"]) & np.isfinite(rows["gradient"])
        good = len(finite) if finite.all() else int(np.argmin(finite))
        self.rows.append(jax.tree.map(lambda values: values[:good], rows))
        return good == len(finite)

    @functools.cached_property
    def zero(self) -> float:
        return loss_of_zero(self.loss, self.problem.y)

    def converged(self) -> bool:
        first, last = self.rows[0], self.rows[-1]
        fell = last["loss"][-1] <= self.tol**2 * max(float(first["loss"][0]), self.zero)
        return bool(fell or last["gradient"][-1] <= self.tol * first["gradient"][0])

    def finished(self, state: State, before: State, status: Status, steps: int) -> Trajectory:
        """The record of a run that ends at `state`; if that is not finite, at `before`."""
        where = f"by step {steps}" if steps else f"by time {float(state.time):.4g}"
        last = jax.tree.map(lambda a: a[None], observe(self.problem, self.loss, self.observables, state))
        if not self.keep(last):
            return self.broken(before, f"diverged {where}: the loss is no longer finite", steps)
        run = self.ended(state, status, steps)
        status = judged(
            status, run.history["loss"], where, zero=self.zero, noisy=self.noisy, inertial=self.inertial
        )
        return dataclasses.replace(run, status=status)

    def broken(self, before: State, message: str, steps: int) -> Trajectory:
        return self.ended(before, Status(StatusKind.diverged, message), steps)

    def ended(self, state: State, status: Status, steps: int) -> Trajectory:
        names = [name for name in self.rows[0] if name != "gradient"]
        parts = [{name: rows[name] for name in names} for rows in self.rows]
        history = jax.tree.map(lambda *values: np.concatenate(values), *parts)
        return Trajectory(jax.tree.map(np.array, state.params), history, status, steps)

    def interrupted(self) -> Trajectory:
        """What there was when Ctrl-C came."""
        state, steps = self.last
        where = f"at step {steps}" if steps else f"at time {float(state.time):.4g}"
        self.keep(jax.tree.map(lambda a: a[None], observe(self.problem, self.loss, self.observables, state)))
        return self.ended(state, Status(StatusKind.interrupted, f"interrupted {where}"), steps)

    def _steps_between(self) -> int:
        """Steps from record to record, 0 if not said; a fraction of a step is refused."""
        if self.every is None:
            return 0
        return whole(int(self.every) if float(self.every).is_integer() else self.every, "every", 1)

    def steps(self, algorithm: Stepped, key: jax.Array | None, state: State) -> Trajectory:
        endless = math.isinf(algorithm.steps)
        total = self.max_steps if endless else int(algorithm.steps)
        every = self._steps_between() or max(1, -(-total // _MOST_RECORDS) if not endless else 10)
        done, before = 0, state
        self.noisy = isinstance(algorithm, SGD | Optax) and algorithm.random
        self.inertial = isinstance(algorithm, Adam | Optax) or getattr(algorithm, "momentum", 0.0) > 0
        while done < total:
            inner = min(every, total - done)
            groups = max(1, min(-(-_CHUNK // inner), (total - done) // inner))
            before = state
            state, rows = descend(
                self.problem, self.loss, self.observables, algorithm, key, state, groups, inner
            )
            done += groups * inner
            if not self.keep(rows):
                return self.broken(before, f"diverged by step {done}: the loss is no longer finite", done)
            self.last = state, done
            report("simulate", done, total=math.inf if endless else total)
            if endless and self.converged():
                return self.finished(state, before, _CONVERGED, done)
        short = Status(StatusKind.not_converged, f"not converged after {done} steps")
        return self.finished(state, before, short if endless else _FINISHED, done)

    def flow(self, algorithm: GradientFlow, state: State) -> Trajectory:
        self.inertial = algorithm.friction is not None
        if not math.isinf(algorithm.time):
            every = self.every or algorithm.time / 100 or 1.0
            times = np.append(np.arange(0.0, algorithm.time * (1 - 1e-12), every), algorithm.time)
            if len(times) < 2:
                return self.finished(state, state, _FINISHED, 0)
            state, fine = self.followed(algorithm, state, times)
            return self.finished(state, state, _FINISHED, 0) if fine else self.too_stiff(state)
        start = observe(self.problem, self.loss, self.observables, state)
        if not self.keep(jax.tree.map(lambda a: a[None], start)):
            return self.broken(state, _NEVER_FINITE, 0)
        if self.converged():
            return self.ended(state, _CONVERGED, 0)
        self.rows.clear()
        span = float(2 * start["loss"] / jnp.maximum(start["gradient"] ** 2, 1e-300))  # 1/eigenvalue, roughly
        for _ in range(_MOST_DOUBLINGS):
            times = float(state.time) + np.linspace(0.0, span, 21)
            state, fine = self.followed(algorithm, state, times)
            if not fine:
                return self.too_stiff(state)
            if self.converged():
                return self.finished(state, state, _CONVERGED, 0)
            span *= 2.0
        short = Status(StatusKind.not_converged, f"not converged by time {float(state.time):.4g}")
        return self.finished(state, state, short, 0)

    def followed(self, algorithm: GradientFlow, state: State, times: np.ndarray) -> tuple[State, bool]:
        """The state at the last of `times`, which is not yet kept; else the last finite one, and False."""
        last, good, rows, success = flow(
            self.problem, self.loss, self.observables, algorithm.friction, state, jnp.asarray(times)
        )
        if not success:
            self.keep(rows)
            return good, False
        self.keep(jax.tree.map(lambda values: values[:-1], rows))
        self.last = last, 0
        return last, True

    def too_stiff(self, state: State) -> Trajectory:
        if not len(self.rows[0]["loss"]):
            return self.broken(state, _NEVER_FINITE, 0)
        message = f"not converged: the flow is too stiff to follow beyond time {float(state.time):.4g}"
        return self.ended(state, Status(StatusKind.stiff, message), 0)

    def traced_steps(self, algorithm: Stepped, key: jax.Array | None, state: State) -> Trajectory:
        if math.isinf(algorithm.steps):
            raise ValueError("`steps` must be finite inside jit, vmap or measure.")
        total = int(algorithm.steps)
        every = self._steps_between() or max(1, total)
        state, rows = descend(
            self.problem, self.loss, self.observables, algorithm, key, state, total // every, every
        )
        if total % every:
            state, _ = descend(
                self.problem, self.loss, self.observables, algorithm, key, state, 1, total % every
            )
        return Trajectory(state.params, rows, _UNCHECKED, total)

    def traced_flow(self, algorithm: GradientFlow, state: State) -> Trajectory:
        if math.isinf(algorithm.time):
            raise ValueError("`time` must be finite inside jit, vmap or measure.")
        times = jnp.asarray([0.0, algorithm.time])
        state, _, rows, _ = flow(self.problem, self.loss, self.observables, algorithm.friction, state, times)
        return Trajectory(state.params, rows, _UNCHECKED, 0)
