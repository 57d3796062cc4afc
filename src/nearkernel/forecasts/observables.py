r"""Observables of trained networks whose means are the corrections of order 1/n of `nk.FiniteWidth`.

The correction is small compared with the spread of networks, so the noise is reduced in two ways. Each network is
trained twice, the second time with the sign of its last layer flipped, which is equally likely. And each output has the
result of training with the network's frozen kernel subtracted, to second order in the difference between that kernel
and the infinite-width one. The moments of this result follow from `propagate(net, x, order=1)`. The remainder is of
order $1/n$.

Third and fourth cumulants are averages of Hermite polynomials of the outputs in the distribution at infinite width, up
to $O(1/n^2)$: no products of averages are needed, so they can be measured like any other mean.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._base.check import inputs, targets, truth, whole
from .._base.types import ArrayLike
from .._run.precision import in_float64
from ..dynamics.algorithms.spectral import GradientDescent
from ..dynamics.simulation.simulate import Record, simulate
from ..models.base import Params
from ..models.networks.network import AbstractNetwork
from .forecasting import forecast
from .order_one.exact_training import ExactTraining
from .order_one.forecast import FiniteForecast
from .order_one.theory import FiniteWidth
from .order_one.trained_cumulants import FOUR_POINT, fourth_cumulants, third_cumulants
from .order_one.trained_moments import frozen_kernel

_LEFT = 1e-7  # of the slowest residual, where "the end" is meant
_KNOWN = ("metric", "ntk mean", "ntk variance", "ntk with outputs")  # what a frozen kernel does


@in_float64
def trained_observables(
    net: AbstractNetwork,
    x: ArrayLike,
    y: ArrayLike,
    algorithm: GradientDescent,
    x_new: ArrayLike,
    controls: bool = True,
    cumulants: int = 2,
) -> Callable[[Any], dict[str, jax.Array]]:
    """An observable for `nk.measure` that trains networks; its averages are the corrections of `nk.FiniteWidth`.

    Use it as `nk.measure(trained_observables(net, x, y, algorithm, x_new), net, size, key)`. The estimate has "mean"
    (m * out,) and "cov" (m * out, m * out): `width` times the difference from infinite width. Extrapolated to
    infinite width (`nk.theory.extrapolated`) they are `width` times `terms[1]` and `cov_terms[1]` of the
    forecast.

    **Arguments:** `net`, `x`, `y`, `x_new`: same as `forecast`; `algorithm`, gradient descent, which stops when the
    slowest residual has decreased to 1e-7 of its initial value; `controls`: whether to reduce the noise by subtracting
    the frozen-kernel result as a control variate, whose average comes from `propagate` (exact for one hidden layer, to
    leading order for more); `cumulants`: with 3 or 4 the estimate also has "third" and "fourth", `width` times
    `cumulants(3)` and `cumulants(4)` of the forecast.
    """
    if not isinstance(algorithm, GradientDescent):
        raise TypeError(
            f"`algorithm` must be nk.GradientDescent(lr), which trains the networks; got {type(algorithm).__name__}."
        )
    truth(controls, "controls")
    with warnings.catch_warnings():  # whether the correction is small is what will be seen
        warnings.simplefilter("ignore", UserWarning)
        theory = forecast(net, x, y, algorithm, x_new, theory=FiniteWidth(exact=10**6))
    assert isinstance(theory, FiniteForecast)
    if not theory.ok:
        raise ValueError(f"`algorithm` {theory.status}.")
    x, x_new = inputs(x, "x"), inputs(x_new, "x_new")
    y, steps = targets(y, len(x)), algorithm.steps
    training, factors = theory._training, net.lr_factors()
    assert isinstance(training, ExactTraining)
    if math.isinf(steps):
        slowest = float(np.abs(1 - algorithm.lr * training.lam).max())
        steps = math.ceil(1.5 * math.log(_LEFT) / math.log(slowest))  # networks have slower ones
    descent = algorithm.at(steps)
    size, n, width = y.size, len(x), theory.width
    both = jnp.asarray(np.concatenate([x, x_new]))
    turn = np.eye((n + len(x_new)) * y.shape[1])
    turn[:size, :size] = training.modes
    frozen = frozen_kernel(training.start, training.responses(algorithm), size)
    middle = theory.terms[0].ravel()
    known = [theory.contributions[name] for name in _KNOWN]
    names = ("mean", "cov", "third", "fourth")[: whole(cumulants, "cumulants", 2, 4)]
    spread = theory.cov_terms[0].reshape(middle.size, -1)
    expected: dict[str, Any] = {
        "mean": width * sum(part.mean for part in known).ravel(),  # type: ignore[union-attr]
        "cov": width * sum(part.cov for part in known).reshape(spread.shape),  # type: ignore[union-attr]
    }
    if cumulants > 2:
        tied = training.ties(algorithm, complete=True)
        third, fourth = third_cumulants(tied, training.targets), fourth_cumulants(tied)
        expected["third"] = sum(third.get(name, 0.0) for name in _KNOWN)
        expected["fourth"] = sum(fourth.get(name, 0.0) for name in (FOUR_POINT, *_KNOWN))

    def trained(params: Params) -> jax.Array:
        end = simulate(net, params, jnp.asarray(x), jnp.asarray(y), descent, Record(every=steps))
        return net(end.params, jnp.asarray(x_new)).ravel() - middle

    def kernel(params: Params) -> jax.Array:
        """The tangent kernel of all outputs, in modes."""
        gradients = jax.jacrev(lambda p: net(p, both).ravel())(params)
        total: Any = 0.0
        for g, f in zip(jax.tree.leaves(gradients), jax.tree.leaves(factors), strict=True):
            flat = g.reshape(len(turn), -1)
            total = total + f * (flat @ flat.T)
        return turn.T @ total @ turn

    def by_frozen(start: jax.Array, h: jax.Array) -> jax.Array:
        z = jnp.asarray(turn.T) @ start
        e = z[:size] - training.targets
        moved = h[:, :size] * e
        again = jnp.einsum("bdxy,dx,xy->b", frozen.twice, h[:, :size], moved[:size])
        return (
            frozen.leading[:, size:] @ z[size:] + frozen.leading[:, :size] @ z[:size]
            + jnp.einsum("bdx,dx->b", frozen.one, moved) + again
        )  # fmt: skip

    def observe(params: Params) -> dict[str, jax.Array]:
        other = [*params[:-1], jax.tree.map(jnp.negative, params[-1])]
        found = _averaged(trained(params), trained(other), spread, names)
        if not controls:
            return {name: width * value for name, value in found.items()}
        z, h = net(params, both).ravel(), kernel(params) - training.start.ntk
        frozen_too = _averaged(by_frozen(z, h), by_frozen(-z, h), spread, names)
        return {name: width * (found[name] - frozen_too[name]) + expected[name] for name in names}

    return observe


def _averaged(
    one: jax.Array, other: jax.Array, cov: np.ndarray, names: tuple[str, ...]
) -> dict[str, jax.Array]:
    """Hermite polynomials of two equally likely outputs: on average, cumulants beyond those of N(0, cov)."""
    pair = [_hermite(each, cov, len(names)) for each in (one, other)]
    return {name: (a + b) / 2 for name, a, b in zip(names, *pair, strict=True)}


def _hermite(x: jax.Array, cov: np.ndarray, most: int) -> list[jax.Array]:
    """x_b, x_b x_c - cov_bc, and so on up to order `most`."""
    found, outer = [x, jnp.outer(x, x) - cov], jnp.multiply.outer
    for order in range(2, most):
        above, below = found[-1], found[-2]
        tied = outer(below, cov)  # x_b times the last polynomial, less what it is tied to
        moved = [jnp.moveaxis(tied, order - 1, place) for place in range(order)]
        found.append(outer(above, x) - sum(moved[1:], moved[0]))
    return found
