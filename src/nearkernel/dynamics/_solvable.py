"""What can be solved beyond order 0, and one clear line for what cannot."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np

from ..models import MLP, AbstractModel
from ._algorithms import GradientDescent, GradientFlow, SpectralAlgorithm
from ._tangent import AbstractTangent, ExpandedTangent, FeatureTangent

_PROBES = 8  # inputs that are looked at


def require_solvable(tangent: AbstractTangent, x: np.ndarray, algorithm: SpectralAlgorithm) -> None:
    """Refuses inertia, models without curvature and meta-features that are not symmetric; warns of kinks."""
    if isinstance(algorithm, GradientDescent) and algorithm.momentum:
        raise ValueError(f"`momentum` must be 0 beyond order 0; got {algorithm.momentum}.")
    if isinstance(algorithm, GradientFlow) and algorithm.friction is not None:
        raise ValueError(f"`friction` must be None beyond order 0; got {algorithm.friction}.")
    derivatives = tangent.derivatives(x[:_PROBES])
    u, v = np.random.default_rng(0).normal(size=(2, 1, derivatives.size))
    bend = derivatives.bend(u, v)
    if not np.isfinite(bend).all():
        raise ValueError(
            "the second derivative of this model is not finite at its start: check its parameters."
        )
    if not bend.any():
        raise ValueError(
            "the second derivative of this model is zero: it is linear in its parameters near its start, and order 0 "
            "is all there is (relu and its like are piecewise linear: only products of two layers curve)."
        )
    if isinstance(tangent, FeatureTangent):
        other = derivatives.bend(v, u)
        if np.abs(bend - other).max() > 1e-8 * np.abs(bend).max():
            raise ValueError(
                "`psi(x, u)` must be symmetric, v.psi(x, u) = u.psi(x, v); for two random vectors it gives "
                f"{bend.flat[0]:.6g} and {other.flat[0]:.6g}: give (psi + psi^T)/2."
            )
    if isinstance(tangent, ExpandedTangent) and _has_kinks(tangent.model.model):
        warnings.warn(
            "the activation has kinks: its second derivative is zero almost everywhere, and what happens when a neuron "
            "crosses its kink is in no order of the expansion. Orders 1 and 2 see only products of different layers.",
            stacklevel=4,
        )


def _has_kinks(model: AbstractModel) -> bool:
    """A piecewise linear activation: no curvature anywhere, and yet not a line."""
    if not isinstance(model, MLP) or not model.widths:
        return False
    z = jnp.linspace(-3.1, 3.3, 40)
    slope = jax.vmap(jax.grad(lambda t: model.activation(t)))(z)
    curvature = jax.vmap(jax.grad(jax.grad(lambda t: model.activation(t))))(z)
    return bool(jnp.all(curvature == 0) and jnp.ptp(slope) > 0)
