"""What happens if? A web page of live experiments, on this machine alone: `nearkernel lab`.

An experiment is a frozen settings object that answers by theory at once and, on request, checks by real training.
"""

from typing import TYPE_CHECKING

from .._base.rooms import public as _public

if TYPE_CHECKING:
    from .._base.settings import setting as setting
    from .experiment import Experiment as Experiment
    from .experiment import Preset as Preset
    from .experiment import Watch as Watch
    from .experiment_list import NAMES as NAMES
    from .experiment_list import find as find
    from .picture import Answer as Answer
    from .picture import Cells as Cells
    from .picture import Curve as Curve
    from .picture import Heat as Heat
    from .picture import Number as Number
    from .picture import Picture as Picture
else:
    __getattr__, __dir__ = _public(__name__, __file__)
