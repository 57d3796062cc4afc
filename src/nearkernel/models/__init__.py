"""What is the function, and how does it depend on its parameters?"""

from .. import _quietly as _quietly
from ._base import AbstractModel as AbstractModel
from ._built import CNN as CNN
from ._built import ResMLP as ResMLP
from ._built import Transformer as Transformer
from ._derivatives import AbstractDerivatives as AbstractDerivatives
from ._derivatives import ModelDerivatives as ModelDerivatives
from ._derivatives import effective_features as effective_features
from ._diagonal import DiagonalNetwork as DiagonalNetwork
from ._expand import Taylor as Taylor
from ._expand import expand as expand
from ._feature_derivatives import FeatureDerivatives as FeatureDerivatives
from ._features import FeatureModel as FeatureModel
from ._function import FunctionModel as FunctionModel
from ._function import from_function as from_function
from ._mlp import MLP as MLP
from ._multi_index import MultiIndexPolynomial as MultiIndexPolynomial
from ._network import AbstractNetwork as AbstractNetwork
from ._network import Network as Network
from ._quadratic import CubicModel as CubicModel
from ._quadratic import QuadraticModel as QuadraticModel
from ._richness import richness as richness
from ._scaled import Scaled as Scaled
