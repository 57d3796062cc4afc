"""The first and second order of training, followed in time at a few moments.

With r the residual on the data, w what the parameters moved, both order by order, and H[p] = sum_a p_a psi_a,
T[p](u, v) = sum_a p_a Psi_a[u, v, .] (see `models/expansion/derivatives.py`):

    h1 = H[r0] w0                                  b1 = 1/2 psi[w0, w0]
    h2 = H[r1] w0 + H[r0] w1 + 1/2 T[r0](w0, w0)   b2 = psi[w0, w1] + 1/6 Psi[w0, w0, w0]
    G_k = accumulated h_k,   c_k = b_k - f G_k,   a_k = accumulated c_k, decaying by K
    r_k = c_k - K a_k,       w_k = -G_k - f^T a_k
"""

import dataclasses

import numpy as np

from ...models.expansion.derivatives import AbstractDerivatives
from ..linear.factor import Spectrum
from .clock import AbstractClock, Panel

_ROUNDING = 1e-15


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainedOrders:
    """At the end of time, for orders 0, 1, ...: `weights` w_k (P,); `forced` G_k (P,), zero for order 0."""

    weights: list[np.ndarray]
    forced: list[np.ndarray]


@dataclasses.dataclass(kw_only=True)
class _Order:
    """One order at the panel's start: `forced` G (P,), `seen` f G (m,), and `kept` a in the eigenbasis."""

    forced: np.ndarray
    seen: np.ndarray
    kept: np.ndarray


def orders_in_time(
    derivatives: AbstractDerivatives,
    spectrum: Spectrum,
    residual: np.ndarray,
    clock: AbstractClock,
    order: int,
) -> TrainedOrders:
    """Orders 0 .. `order` at the end of `clock`, from the residual (m,) at initialization."""
    start = spectrum.enter(residual)
    outside = residual - spectrum.leave(start)
    if np.linalg.norm(outside) <= _ROUNDING * len(residual) * np.linalg.norm(residual):
        outside = np.zeros_like(residual)  # what rounding left would push the parameters for ever
    orders = [
        _Order(
            forced=np.zeros(derivatives.size),
            seen=np.zeros(derivatives.outputs),
            kept=np.zeros(spectrum.rank),
        )
        for _ in range(order)
    ]
    for modes, still in clock.panels():
        first = clock.decay(modes.nodes) * start
        r = [first @ spectrum.vectors.T + outside]
        w = [-derivatives.pull((clock.filter(modes.nodes) * start) @ spectrum.vectors.T)]
        for k, state in enumerate(orders, start=1):
            b, h = derivatives.curved(k, r, w)
            forced = _whole(still, state.forced, h)
            c = b - _whole(still, state.seen, derivatives.push(h))
            kept = modes.accumulate(state.kept, c @ spectrum.vectors)
            if k < order:
                r.append(c - (kept * spectrum.lam) @ spectrum.vectors.T)
                w.append(-forced - derivatives.pull(kept @ spectrum.vectors.T))
            # What a panel ends with is where the next one begins; c = b - f G, so that f G is their difference.
            state.seen = (b - c)[-1]
            state.forced = forced[-1]
            state.kept = kept[-1]
    # Order 0 is known in closed form: no panel's rounding enters.
    linear = -derivatives.pull((clock.filter(np.array([clock.end])) * start) @ spectrum.vectors.T)[0]
    moved = [-each.forced - derivatives.pull(spectrum.leave(each.kept)[None])[0] for each in orders]
    return TrainedOrders(
        weights=[linear, *moved], forced=[np.zeros_like(linear), *(each.forced for each in orders)]
    )


def _whole(still: Panel, before: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Accumulated without decay: `before` plus what `values` (q, size) at the nodes add, at each node."""
    return before + still.weights[:, :, 0] @ values
