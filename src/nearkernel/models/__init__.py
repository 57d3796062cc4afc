"""What is the function, and how does it depend on its parameters?"""

from ._base import AbstractModel as AbstractModel
from ._expand import Taylor as Taylor
from ._expand import expand as expand
from ._features import FeatureModel as FeatureModel
from ._function import FunctionModel as FunctionModel
from ._function import from_function as from_function
from ._mlp import MLP as MLP
