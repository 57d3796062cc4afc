"""Models: networks, linear, quadratic and cubic models, models of other libraries, and their derivatives."""

from typing import TYPE_CHECKING

from .._base.rooms import public as _public

if TYPE_CHECKING:
    from .base import AbstractModel as AbstractModel
    from .expansion.features import FeatureModel as FeatureModel
    from .expansion.quadratic import CubicModel as CubicModel
    from .expansion.quadratic import QuadraticModel as QuadraticModel
    from .expansion.taylor import expand as expand
    from .interop.function import from_function as from_function
    from .interop.jax_libraries import from_network as from_network
    from .interop.pytorch import from_torch as from_torch
    from .interop.pytorch import to_torch as to_torch
    from .interop.pytorch import torch_operations as torch_operations
    from .interop.trainable import LoRA as LoRA
    from .networks.maximal_update import MaximalUpdate as MaximalUpdate
    from .networks.mlp import MLP as MLP
    from .networks.network import AbstractNetwork as AbstractNetwork
    from .networks.network import Network as Network
    from .networks.presets import CNN as CNN
    from .networks.presets import ResMLP as ResMLP
    from .networks.presets import Transformer as Transformer
    from .networks.richness import richness as richness
    from .networks.scaled import Scaled as Scaled
    from .networks.symmetric_init import symmetric_init as symmetric_init
else:
    __getattr__, __dir__ = _public(__name__, __file__)
