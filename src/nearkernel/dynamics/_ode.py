"""Ordinary differential equations by diffrax, which is imported only where a flow is really integrated."""

from typing import Any

import jax

_MOST_STEPS = 100_000


def integrate(field, start: Any, times: jax.Array, rtol: float, atol: float) -> tuple[Any, jax.Array]:
    """The states at `times`, of which the first is where `start` holds, and whether the solver got there."""
    import diffrax

    found = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, state, args: field(state)),
        diffrax.Tsit5(),
        times[0],
        times[-1],
        None,
        start,
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
        max_steps=_MOST_STEPS,
        throw=False,
    )
    return found.ys, found.result == diffrax.RESULTS.successful
