"""Every public function, class and method that takes arguments, with good ones and the kind of each.

`tests/public_calls/test_bad_inputs.py` puts bad values in the place of good ones. A new public name belongs here.
"""

from . import dynamics, geometry, kernels, layers, models, statistics

CALLS = [*models.CALLS, *layers.CALLS, *kernels.CALLS, *dynamics.CALLS, *statistics.CALLS, *geometry.CALLS]
