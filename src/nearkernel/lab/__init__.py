"""What happens if? A web page of live experiments, on this machine alone: `nearkernel lab`.

An experiment is a frozen settings object that answers by theory at once and, on request, checks by real training.
"""

from .. import _quietly as _quietly
from .._settings import setting as setting
from ._experiment import Experiment as Experiment
from ._experiment import Preset as Preset
from ._experiment import Watch as Watch
from ._picture import Answer as Answer
from ._picture import Cells as Cells
from ._picture import Curve as Curve
from ._picture import Heat as Heat
from ._picture import Number as Number
from ._picture import Picture as Picture
from ._registry import NAMES as NAMES
from ._registry import find as find
