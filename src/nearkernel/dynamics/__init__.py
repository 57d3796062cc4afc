"""What does training do? Algorithms, their exact solution and their simulation."""

from ._algorithms import SGD as SGD
from ._algorithms import AbstractAlgorithm as AbstractAlgorithm
from ._algorithms import DirectOptimization as DirectOptimization
from ._algorithms import GradientDescent as GradientDescent
from ._algorithms import GradientFlow as GradientFlow
from ._algorithms import Ridge as Ridge
from ._algorithms import SpectralAlgorithm as SpectralAlgorithm
from ._feature_learning import FeatureLearning as FeatureLearning
from ._nearly import NearlyKernelSolution as NearlyKernelSolution
from ._orders import Unbounded as Unbounded
from ._projectors import Projectors as Projectors
from ._sample_space import SampleSpaceRun as SampleSpaceRun
from ._sample_space import sample_space_descent as sample_space_descent
from ._simulate import Record as Record
from ._simulate import Trajectory as Trajectory
from ._simulate import simulate as simulate
from ._solution import Prediction as Prediction
from ._solution import Solution as Solution
from ._solvable import has_kinks as has_kinks
from ._solve import solve as solve
