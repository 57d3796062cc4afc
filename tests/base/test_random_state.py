"""Nothing global changes: the random numbers of Python and NumPy come out as if the library had not been used."""

import random
import subprocess
import sys

import numpy as np
import pytest

from nearkernel._run.random_state import random_state_kept
from support.cases import few

SCRIPT = """
import random, numpy as np
random.seed(1), np.random.seed(1)
{use}
print(random.random(), np.random.normal())
"""
USES = {
    "nothing": "",
    "estimators": "from nearkernel.estimators import NTKRegressor; NTKRegressor().fit(np.eye(4), np.arange(4.0))",
    "a verb": "import nearkernel as nk; nk.solve(nk.kernels.RBF(1.0), np.eye(4), np.arange(4.0), solver='cg')",
    "a room": "import nearkernel.geometry",
    "a command": (
        "import sys, contextlib, nearkernel.cli\nsys.argv = ['nearkernel', 'claims', 'list']\n"
        "with contextlib.suppress(SystemExit): nearkernel.cli.main()"
    ),
}


def _drawn(use: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(use=use)], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("use", few([name for name in USES if name != "nothing"], 1))
def test_the_first_use_leaves_the_generators_alone(use):
    """Imports count: JAX draws from NumPy's generator, and tables and progress bars draw from Python's."""
    assert _drawn(USES[use]) == _drawn("")


def test_generators_are_put_back_also_after_an_error():
    before = random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    with pytest.raises(KeyError), random_state_kept():
        random.random(), np.random.normal()  # noqa: NPY002
        raise KeyError
    assert random.getstate() == before[0] and np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
