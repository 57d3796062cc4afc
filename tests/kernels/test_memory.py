"""`kernel.blocks` keeps its budget: seen by the peak of the memory of a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import ctypes, gc, sys
import numpy as np
import nearkernel as nk

K, d = nk.kernels, 20
x = np.random.default_rng(0).normal(size=(4000, d))
net = nk.MLP(d, (8,), activation="relu", bias_var=0.1)
kernels = dict(rbf=K.RBF(3.0), ntk=K.NTK(net), sum=K.RBF(3.0) + 0.5 * K.Laplace(2.0))
kernels["empirical"] = K.EmpiricalNTK(net, net.init(0))


def field(name):
    return 1024 * int(open("/proc/self/status").read().split(name)[1].split()[0])


def some(kernel):
    for count, (rows, block) in enumerate(kernel.blocks(x, memory="20MB")):
        assert block.shape == (rows.stop - rows.start, len(x))
        if count == 5:
            return


for name, kernel in kernels.items():
    some(kernel)  # compiles
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    open("/proc/self/clear_refs", "w").write("5")  # forgets the peak
    before = field("VmRSS:")
    some(kernel)
    print(name, field("VmHWM:") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells the peak of a process")
def test_blocks_of_20_megabytes_take_no_more():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    taken = {line.split()[0]: int(line.split()[1]) for line in done.stdout.splitlines()}
    assert set(taken) == {"rbf", "ntk", "sum", "empirical"}
    assert max(taken.values()) < 1.2 * 20e6, taken
