"""The verb `simulate`: train for real, in parameter space, and keep what is asked for."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._check import inputs, numeric, positive, targets, whole
from .._precision import in_float64, is_traced
from ..models import AbstractModel
from ..models._base import require_model
from ._algorithms import SGD, AbstractAlgorithm, GradientDescent, GradientFlow
from ._losses import get_loss
from ._observables import NAMED
from ._steps import Problem, State, descend, flow, observe

_CHUNK = 400  # steps between two looks at the loss
_MOST_RECORDS = 1000
_MOST_DOUBLINGS = 60


def _by_name(observables: Any) -> Mapping[str, Any]:
    if isinstance(observables, str):
        observables = [observables]
    return observables if isinstance(observables, Mapping) else {name: name for name in observables}


class Record(eqx.Module):
    """What to keep of a run: the value of each observable, a JAX function of the parameters, every few steps.

    **Arguments:** `observables`, a dict of name -> function, or a list of the names "outputs" (n, out), "features"
    (n, out, P), "kernel" (n, out, n, out) and "weights", meant on the training inputs (in a dict, a name may stand in
    place of its function); `every`, steps (or, for flows, time) between two records: about a thousand records by
    default. The loss is always kept.
    """

    observables: Any = eqx.field(default_factory=dict, converter=_by_name)
    every: float | None = None

    def __check_init__(self):
        for name, function in self.observables.items():
            if name in ("loss", "time") or not (callable(function) or function in NAMED):
                known = ", ".join(map(repr, NAMED))
                raise TypeError(
                    f"`record` needs functions of the parameters, not named 'loss' or 'time', or names of {known}; "
                    f"got {name!r}."
                )
        if self.every is not None:
            positive(self.every, "every")


class Trajectory(eqx.Module):
    """What a run leaves.

    **Fields:** `params` at the end; `history`, arrays by name, "time" and "loss" among them, one row a record;
    `status`, "finished", "converged", "stationary", "not converged ..." or "diverged ..."; `steps` taken (0 for
    flows).
    """

    params: Any
    history: dict[str, Any]
    status: str = eqx.field(static=True)
    steps: int = eqx.field(static=True)

    @property
    def ok(self) -> bool:
        return self.status in ("finished", "converged", "stationary")


@in_float64
def simulate(
    model: AbstractModel,
    params: Any,
    x: Any,
    y: Any,
    algorithm: AbstractAlgorithm,
    record: Record | None = None,
    *,
    loss: Any = "squared",
    lr_factors: Any = None,
    key: jax.Array | None = None,
    tol: float = 1e-10,
    max_steps: int = 1_000_000,
) -> Trajectory:
    """Trains `model` from `params` on (`x`, `y`).

    **Arguments:** `algorithm`: `GradientDescent`, `GradientFlow` or `SGD` (which needs `key`); without an end of its
    own it runs until the loss has fallen by `tol`^2 or its gradient by `tol`, at most `max_steps`; `record`: what to
    keep; `loss`: "squared", "cross_entropy" or a JAX function loss(z, y); `lr_factors`: a tree like `params`, e.g.
    `net.lr_factors()`.

    **Returns:** a `Trajectory`. Divergence is a status, not an error. Inside `jit`, `vmap` or `nk.measure` it runs as
    one JAX expression (finite `steps` only) and looks at nothing in between.
    """
    require_model(model)
    if not isinstance(algorithm, GradientDescent | GradientFlow | SGD):
        raise TypeError(
            f"`algorithm` must move in time (GradientDescent, GradientFlow, SGD); got {type(algorithm).__name__}."
        )
    record = record or Record()
    traced = is_traced(model, params, x, y)
    if not traced:
        x = inputs(x, "x", getattr(model, "in_dim", None))
        out = jax.eval_shape(model, params, x[:1]).shape[1]
        y = targets(y, len(x), out=out)
        params = jax.tree.map(lambda leaf: jnp.asarray(numeric(leaf, "params")), params)
    elif jnp.ndim(y) == 1:
        y = jnp.asarray(y)[:, None]
    if isinstance(algorithm, SGD):
        require_batches(algorithm, key, len(x))
    problem = Problem(model, jnp.asarray(x), jnp.asarray(y), lr_factors)
    function = get_loss(loss, y.shape[1])
    state = State(params, jax.tree.map(jnp.zeros_like, params), jnp.asarray(0.0))
    run = _Run(problem, function, tuple(record.observables.items()), record.every, tol, max_steps)
    if isinstance(algorithm, GradientFlow):
        return run.traced_flow(algorithm, state) if traced else run.flow(algorithm, state)
    return run.traced_steps(algorithm, key, state) if traced else run.steps(algorithm, key, state)


def require_batches(algorithm: SGD, key: Any, n: int) -> None:
    """Refuses SGD without a key, and batches of more than the `n` points there are."""
    if key is None:
        raise ValueError("`SGD` draws batches: give `key=jax.random.key(0)`.")
    if algorithm.batch_size > n:
        raise ValueError(
            f"`batch_size` must be at most the number of points, {n}; got {algorithm.batch_size}."
        )


class _Run:
    """One run: the loop around the compiled loops, which looks at the loss from time to time."""

    def __init__(
        self,
        problem: Problem,
        loss: Callable,
        observables: tuple,
        every: float | None,
        tol: float,
        max_steps: int,
    ):
        self.problem, self.loss, self.observables, self.every = problem, loss, observables, every
        self.tol, self.max_steps = positive(tol, "tol"), whole(max_steps, "max_steps", 1)
        self.rows: list[dict[str, Any]] = []

    def keep(self, rows: dict) -> bool:
        """Stores rows up to the first that is not finite; whether all were finite."""
        rows = jax.tree.map(np.asarray, rows)
        finite = np.isfinite(rows["loss"]) & np.isfinite(rows["gradient"])
        good = len(finite) if finite.all() else int(np.argmin(finite))
        self.rows.append(jax.tree.map(lambda values: values[:good], rows))
        return good == len(finite)

    def converged(self) -> bool:
        first, last = self.rows[0], self.rows[-1]
        fell = last["loss"][-1] <= self.tol**2 * first["loss"][0]
        return bool(fell or last["gradient"][-1] <= self.tol * first["gradient"][0])

    def finished(self, state: State, status: str, steps: int) -> Trajectory:
        last = jax.tree.map(lambda a: a[None], observe(self.problem, self.loss, self.observables, state))
        if status.startswith("diverged") or not self.keep(last):
            status = (
                status
                if status.startswith("diverged")
                else f"diverged at step {steps}: the loss is not finite"
            )
        names = [name for name in self.rows[0] if name != "gradient"]
        parts = [{name: rows[name] for name in names} for rows in self.rows]
        history = jax.tree.map(lambda *values: np.concatenate(values), *parts)
        return Trajectory(jax.tree.map(np.array, state.params), history, status, steps)

    def steps(self, algorithm: Any, key: Any, state: State) -> Trajectory:
        endless = math.isinf(algorithm.steps)
        total = self.max_steps if endless else int(algorithm.steps)
        every = (
            whole(int(self.every), "every", 1)
            if self.every
            else max(1, -(-total // _MOST_RECORDS) if not endless else 10)
        )
        done = 0
        while done < total:
            inner = min(every, total - done)
            groups = max(1, min(-(-_CHUNK // inner), (total - done) // inner))
            before = state
            state, rows = descend(
                self.problem, self.loss, self.observables, algorithm, key, state, groups, inner
            )
            done += groups * inner
            if not self.keep(rows):
                return self.finished(
                    before, f"diverged by step {done}: the loss left the finite numbers", done
                )
            if endless and self.converged():
                return self.finished(state, "converged", done)
        return self.finished(state, f"not converged after {done} steps" if endless else "finished", done)

    def flow(self, algorithm: GradientFlow, state: State) -> Trajectory:
        if not math.isinf(algorithm.time):
            every = self.every or algorithm.time / 100 or 1.0
            times = np.append(np.arange(0.0, algorithm.time * (1 - 1e-12), every), algorithm.time)
            if len(times) < 2:
                return self.finished(state, "finished", 0)
            state, rows, success = flow(
                self.problem, self.loss, self.observables, algorithm.friction, state, jnp.asarray(times)
            )
            fine = self.keep(jax.tree.map(lambda values: values[:-1], rows)) and bool(success)
            return self.finished(
                state, "finished" if fine else "diverged: the flow could not be followed to its end", 0
            )
        start = observe(self.problem, self.loss, self.observables, state)
        span = float(2 * start["loss"] / jnp.maximum(start["gradient"] ** 2, 1e-300))  # 1/eigenvalue, roughly
        for _ in range(_MOST_DOUBLINGS):
            times = float(state.time) + np.linspace(0.0, span, 21)
            before = state
            state, rows, success = flow(
                self.problem, self.loss, self.observables, algorithm.friction, state, jnp.asarray(times)
            )
            fine = self.keep(jax.tree.map(lambda values: values[:-1], rows))
            if not (fine and bool(success)):
                return self.finished(
                    before,
                    f"not converged by time {float(before.time):.4g}: the flow is too stiff to follow further",
                    0,
                )
            if self.converged():
                return self.finished(state, "converged", 0)
            span *= 2.0
        return self.finished(state, f"not converged by time {float(state.time):.4g}", 0)

    def traced_steps(self, algorithm: Any, key: Any, state: State) -> Trajectory:
        if math.isinf(algorithm.steps):
            raise ValueError("`steps` must be finite inside jit, vmap or measure.")
        total = int(algorithm.steps)
        every = int(self.every) if self.every else max(1, total)
        state, rows = descend(
            self.problem, self.loss, self.observables, algorithm, key, state, total // every, every
        )
        if total % every:
            state, _ = descend(
                self.problem, self.loss, self.observables, algorithm, key, state, 1, total % every
            )
        return Trajectory(state.params, rows, "finished", total)

    def traced_flow(self, algorithm: GradientFlow, state: State) -> Trajectory:
        if math.isinf(algorithm.time):
            raise ValueError("`time` must be finite inside jit, vmap or measure.")
        times = jnp.asarray([0.0, algorithm.time])
        state, rows, _ = flow(self.problem, self.loss, self.observables, algorithm.friction, state, times)
        return Trajectory(state.params, rows, "finished", 0)
