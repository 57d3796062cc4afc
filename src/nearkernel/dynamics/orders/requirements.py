"""What can be solved beyond order 0, and one clear line for what cannot."""

import numpy as np

from ..._base.check import inputs
from ..._base.types import ArrayLike
from ..._base.warning import warn
from ...models.base import AbstractModel, Params
from ...models.expansion.feature_derivatives import FeatureDerivatives
from ...models.interop.function import FunctionModel
from ...models.interop.jax_libraries import NetworkModel
from ...models.interop.torch_model import TorchModel
from ...models.layers.activation import Activation
from ...models.networks.network import AbstractNetwork, leaves
from ...models.networks.scaled import Scaled
from ...models.params import floating_params
from ..algorithms.spectral import GradientDescent, GradientFlow, SpectralAlgorithm
from ..linear.tangent import AbstractTangent, CurvedTangent, ExpandedTangent
from .kink_probe import jumps

_PROBES = 8  # inputs that are looked at
_ROUNDING = 1e-8
_NAMED = 3  # kinks in a message


def require_sound(tangent: AbstractTangent, x: np.ndarray) -> None:
    """Refuses an expanded model whose outputs are random, not finite, or do not depend on its parameters."""
    if not isinstance(tangent, ExpandedTangent):
        return
    model, params = tangent.model.model, tangent.model.params0
    first, second = (np.asarray(model(params, x[:_PROBES])) for _ in range(2))
    if not np.isfinite(first).all():
        raise ValueError("the model's outputs at `x` are not finite: check `params` and `x`.")
    if not np.array_equal(first, second):
        raise ValueError(
            "the model returns different outputs when it is called again: switch off its randomness (dropout in "
            "evaluation mode, a fixed key)."
        )
    if not any(_depends(tangent, rows) for rows in (x[:_PROBES], x)):
        raise ValueError(
            "the model's outputs at `x` do not depend on its parameters: there is nothing to train."
        )


def _depends(tangent: ExpandedTangent, x: np.ndarray) -> bool:
    """Whether outputs move with parameters; by random weights, since gradients of symmetric inputs may add up to 0."""
    derivatives = tangent.derivatives(x)
    return bool(derivatives.pull(np.random.default_rng(0).normal(size=(1, derivatives.outputs))).any())


def require_solvable(tangent: CurvedTangent, x: np.ndarray, algorithm: SpectralAlgorithm) -> None:
    """Refuses inertia, models without curvature and meta-features that are not symmetric; warns of kinks."""
    if isinstance(algorithm, GradientDescent) and algorithm.momentum:
        raise ValueError(f"`momentum` must be 0 beyond order 0; got {algorithm.momentum}.")
    if isinstance(algorithm, GradientFlow) and algorithm.friction is not None:
        raise ValueError(f"`friction` must be None beyond order 0; got {algorithm.friction}.")
    derivatives = tangent.derivatives(x[:_PROBES])
    u, v = np.random.default_rng(0).normal(size=(2, 1, derivatives.size))
    bend = derivatives.bend(u, v)
    if not bend.any() and len(x) > _PROBES:  # meta-features may live elsewhere
        derivatives = tangent.derivatives(x)
        bend = derivatives.bend(u, v)
    if not np.isfinite(bend).all():
        raise ValueError(
            "the second derivative of this model is not finite at initialization: check its parameters, or scale `x`."
        )
    if not bend.any() and not (derivatives.degree > 2 and derivatives.twist(u).any()):
        raise ValueError(
            "the second derivative of this model is zero: it is linear in its parameters near initialization, so "
            "use order 0 (ReLU and the like are piecewise linear: only products of two layers have curvature)."
        )
    if isinstance(derivatives, FeatureDerivatives):
        _require_symmetric(derivatives, u, v)
    if isinstance(tangent, ExpandedTangent) and has_kinks(tangent.inner, tangent.inner_params, x):
        warn(
            f"{_kinked(tangent.inner)} has kinks, where its slope jumps: no order of the expansion includes a neuron "
            "that crosses a kink. Orders 1 and 2 include only what happens between kinks."
        )


def _require_symmetric(derivatives: FeatureDerivatives, u: np.ndarray, v: np.ndarray) -> None:
    one, other = derivatives.bend(u, v), derivatives.bend(v, u)
    if np.abs(one - other).max() > _ROUNDING * np.abs(one).max():
        raise ValueError(
            "`psi(x, u)` must be symmetric, v.psi(x, u) = u.psi(x, v); for two random vectors it gives "
            f"{other.flat[0]:.6g} and {one.flat[0]:.6g}: give (psi + psi^T)/2."
        )
    if derivatives.degree > 2:
        unit = np.ones((1, derivatives.outputs))
        along = [(derivatives.twist_pull(unit, a) * b).sum() for a, b in ((u + v, v), (u - v, v), (v, u))]
        # Psi[u+v, u+v, v] - Psi[u-v, u-v, v] = 2 (Psi[u, v, v] + Psi[v, u, v]) = 4 Psi[v, v, u]
        one, other = (along[0] - along[1]) / 4, along[2]
        if abs(one - other) > _ROUNDING * abs(along[0]):
            raise ValueError(
                "`Psi(x, u, v)` must be symmetric in all three indices; for random vectors v.Psi(x, u, v) and "
                f"u.Psi(x, v, v) are {one:.6g} and {other:.6g}: give the mean over all orders."
            )


def _kinked(model: AbstractModel) -> str:
    """What has kinks, for a message."""
    model = model.model if isinstance(model, Scaled) else model
    if isinstance(model, AbstractNetwork):
        return "the activation"
    if not isinstance(model, TorchModel):
        return "the model"
    return f"the model ({', '.join(model.kinks[:_NAMED])}{', ...' * (len(model.kinks) > _NAMED)})"


def has_kinks(model: AbstractModel, params: Params = None, x: ArrayLike | None = None) -> bool | None:
    """Whether the outputs of `model` have kinks as functions of its parameters.

    For networks made of layers: whether an activation has `kinks`, where its slope jumps. For a PyTorch module: whether
    trained parameters enter an operation with a discontinuous derivative. A model of `nk.from_network` or
    `nk.from_function` needs `params` and inputs `x`: its derivative is evaluated along a path of parameters, and a jump
    there is a kink. Without them, or if outputs are not finite on the path, the result is None: not known.
    """
    inner = model.model if isinstance(model, Scaled) else model
    if isinstance(inner, TorchModel):
        return bool(inner.kinks)
    if isinstance(inner, NetworkModel | FunctionModel):
        if params is None or x is None:
            return None
        return jumps(model, floating_params(model, params), inputs(x, "x", model.in_shape)[:_PROBES])
    if not isinstance(inner, AbstractNetwork):
        return False
    return any(layer.function.kinks for layer in leaves(inner.layers) if isinstance(layer, Activation))
