"""The trained model without any expansion, at any strength of its curvature: what the orders are compared with."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jax.flatten_util import ravel_pytree

from ...models.base import AbstractModel, Params
from ...models.expansion.quadratic import QuadraticModel
from ...models.expansion.taylor import Taylor
from ...models.params import root_factors, training_factors
from ..algorithms.spectral import DirectOptimization, GradientDescent, GradientFlow, Ridge, SpectralAlgorithm
from ..linear.tangent import AbstractTangent, ExpandedTangent, FeatureTangent
from ..simulation.simulate import simulate

_MOST_ROUNDS = 500


class Stretched(AbstractModel):
    """z(0) + [z(scale * D) - z(0)] / scale with D the distance from the start: order k of it has scale^k."""

    model: Taylor
    scale: float | jax.Array

    def init(self, key=None):
        return self.model.params0

    def own_factors(self, optimizer):
        return self.model.own_factors(optimizer)

    def __call__(self, params, x):
        near = jax.tree.map(lambda p, p0: p0 + self.scale * (p - p0), params, self.model.params0)
        start, *others = self.model.terms(near, x)
        return start + sum(others) / self.scale


def at_scale(tangent: AbstractTangent, scale: float, x: np.ndarray, out: int) -> tuple[AbstractModel, Params]:
    """The model with its eps multiplied by (or, for quadratic models, set to) `scale`, and its start."""
    if isinstance(tangent, FeatureTangent):
        assert isinstance(tangent.model, QuadraticModel)
        model = dataclasses.replace(tangent.model, eps=float(scale), out_dim=out)
        return model, np.zeros((out, tangent.kernel.feature_rows(x[:1]).shape[1]))
    assert isinstance(tangent, ExpandedTangent)
    taylor = tangent.model
    linear = dataclasses.replace(taylor, degree=1)
    return (Stretched(taylor, float(scale)) if scale else linear), taylor.params0


def exact_params(
    model: AbstractModel, start: Params, x: np.ndarray, y: np.ndarray, algorithm: SpectralAlgorithm
) -> Params | None:
    """Parameters after training `model` by `algorithm`, or None if that diverges or does not end."""
    if isinstance(algorithm, GradientDescent | GradientFlow):
        tol = 1e-11 if isinstance(algorithm, GradientDescent) else 1e-8  # a flow is followed to 1e-10 itself
        run = simulate(model, start, x, y, algorithm, tol=tol if math.isinf(algorithm.end()) else None)
        return run.params if run.ok else None
    theta, unravel = ravel_pytree(jax.tree.map(jnp.asarray, start))
    roots = root_factors(training_factors(model, start), start)
    roots = jnp.ones(()) if roots is None else roots
    outputs = functools.partial(_residual, model, start, roots, x, y)
    jacobian = functools.partial(_jacobian, model, start, roots, x, y)
    features = np.asarray(jacobian(jnp.zeros_like(theta)))
    ridge = algorithm.strength if isinstance(algorithm, Ridge) else 0.0
    rank = np.linalg.matrix_rank(features)
    # Where the data cannot be fitted, no iteration on a fit ends: the loss is minimized instead.
    if ridge == 0 and rank < len(features):
        moved = _least_squares(outputs, jacobian, features, rank)
    elif isinstance(algorithm, DirectOptimization):  # w = f^T n
        moved = _iterated(
            outputs, jacobian, features, lambda w, z, f: w - features.T @ np.linalg.solve(f @ features.T, z)
        )
    else:  # least |w| of all that fit the outputs linearized where w is; with a ridge, the best of both
        unit = ridge * np.eye(len(features))
        moved = _iterated(
            outputs, jacobian, features, lambda w, z, f: f.T @ np.linalg.solve(f @ f.T + unit, f @ w - z)
        )
    return None if moved is None else jax.tree.map(np.asarray, unravel(theta + roots * moved))


@jax.jit
def _residual(model, start, roots, x, y, w):
    """On the training outputs, (m,), of parameters `w` (P,), in units of `roots`, away from the start."""
    theta, unravel = ravel_pytree(start)
    return (model(unravel(theta + roots * w), x) - y).reshape(-1)


@jax.jit
def _jacobian(model, start, roots, x, y, w):
    return jax.jacrev(lambda v: _residual(model, start, roots, x, y, v))(w)


def _iterated(outputs, jacobian, features: np.ndarray, better) -> np.ndarray | None:
    """w <- better(w, residual, features at w) until it stands still; None if it does not."""
    w = np.zeros(features.shape[1])
    for _ in range(_MOST_ROUNDS):
        before = w
        try:
            w = better(w, np.asarray(outputs(w)), np.asarray(jacobian(w)))
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(w).all():
            return None
        if np.linalg.norm(w - before) <= 1e-13 * np.linalg.norm(w):
            return w
    return None


def _least_squares(outputs, jacobian, features: np.ndarray, rank: int) -> np.ndarray | None:
    """The minimum within the span of the features."""
    basis = np.linalg.svd(features, full_matrices=False)[2][:rank]
    fit = scipy.optimize.least_squares(
        lambda c: np.asarray(outputs(basis.T @ c)),
        np.zeros(rank),
        jac=lambda c: np.asarray(jacobian(basis.T @ c)) @ basis.T,
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
    )
    return basis.T @ fit.x if fit.success and np.isfinite(fit.cost) else None
