"""Ordinary differential equations by diffrax, which is imported only where a flow is really integrated."""

from collections.abc import Callable

import jax

from ...models.base import Params

_MOST_STEPS = 300_000


def integrate(
    field: Callable[[Params], Params],
    start: Params,
    times: jax.Array,
    rtol: float,
    atol: float,
    shortest: float | jax.Array | None = None,
) -> tuple[Params, jax.Array]:
    """The states at `times`, of which the first is where `start` holds, and whether the solver got there.

    Steps as short as `shortest` are taken whatever their error: where a field jumps, no step is short enough for it.
    """
    import diffrax

    found = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, state, args: field(state)),
        diffrax.Tsit5(),
        times[0],
        times[-1],
        None,
        start,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol, dtmin=shortest, force_dtmin=True),
        max_steps=_MOST_STEPS,
        throw=False,
    )
    return found.ys, found.result == diffrax.RESULTS.successful
