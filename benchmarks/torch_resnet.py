"""The tangent kernel of resnet18, converted from PyTorch, against torch.func: seconds and memory in one run.

    python benchmarks/torch_resnet.py                   # 32 inputs of 32 x 32, one output, float64 and float32
    python benchmarks/torch_resnet.py --inputs 8        # smaller
    python benchmarks/torch_resnet.py --write           # puts the table into README.md

Each measurement is a process of its own. Ours includes the conversion and compilation. torch.func takes the Jacobian of
each input by vmap(jacrev), a few inputs at a time, keeps all of them and multiplies once: its fastest way, which needs
memory for all gradients. CPU seconds are those of all threads, so that other programs on the machine count for little.
"""

import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _common import report, table

ROWS = 4  # whose Jacobians torch.func takes at a time: more are not faster
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))


def network():
    from support.pytorch.networks import made

    net, batch, _ = made("resnet18")
    return net, batch


def ours(count, dtype):
    import nearkernel as nk

    net, batch = network()
    x, before = batch(count), peak()
    clock = Clock()
    with nk.precision(dtype):
        model, params = nk.from_torch(net, x[:2], output=lambda z: z[:, :1])
        converted = clock.lap()
        kernel = nk.kernels.EmpiricalNTK(model, params)
        found = kernel(x)
        first = clock.lap()
        kernel(x)
    return found, {"convert": converted, "first": first, "again": clock.lap(), "memory": peak() - before}


def theirs(count, dtype):
    import torch
    from torch.func import functional_call, jacrev, vmap

    net, batch = network()
    net = net.to(getattr(torch, dtype))
    x = torch.as_tensor(batch(count)).to(getattr(torch, dtype))
    params = {name: each.detach() for name, each in net.named_parameters()}
    buffers = dict(net.named_buffers())

    def one(params, row):
        return functional_call(net, (params, buffers), (row[None],))[0, :1]

    def jacobian(rows):
        found = vmap(jacrev(one), (None, 0))(params, rows)
        return torch.cat([each.reshape(len(rows), -1) for each in found.values()], dim=1)

    def kernel():
        kept = torch.cat([jacobian(rows) for rows in torch.split(x, ROWS)])
        return (kept @ kept.T).double().numpy()

    before, clock = peak(), Clock()
    found = kernel()
    first = clock.lap()
    kernel()
    return found, {"first": first, "again": clock.lap(), "memory": peak() - before}


class Clock:
    """Seconds and CPU seconds since it was last asked."""

    def __init__(self):
        self.last = time.perf_counter(), time.process_time()

    def lap(self):
        now = time.perf_counter(), time.process_time()
        passed = [after - before for before, after in zip(self.last, now, strict=True)]
        self.last = now
        return passed


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measured(side, dtype, inputs):
    """Kernel and numbers, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "kernel.npy")
        command = [sys.executable, __file__, "--worker", side, dtype, path, str(inputs)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr[-3000:])
        return np.load(path), json.loads(done.stdout.splitlines()[-1])


def make(options):
    lines = []
    for dtype in ("float64", "float32"):
        reference = None
        for side, name in (("ours", "nearkernel"), ("theirs", "torch.func")):
            kernel, numbers = measured(side, dtype, options.inputs)
            reference = kernel if reference is None else reference
            apart = np.abs(kernel - reference).max() / np.abs(reference).max()
            both = lambda key, numbers=numbers: " / ".join(f"{each:.3g}" for each in numbers[key])
            lines.append(
                {
                    "precision": dtype,
                    "by": name,
                    "inputs": str(options.inputs),
                    "convert, s / CPU s": both("convert") if "convert" in numbers else "-",
                    "first call, s / CPU s": both("first"),
                    "later call, s / CPU s": both("again"),
                    "peak memory, MB": f"{numbers['memory'] / 1e6:.0f}",
                    "deviation": "-" if side == "ours" else f"{apart:.0e}",
                }
            )
    return table(lines)


if __name__ == "__main__":
    if "--worker" in sys.argv:
        side, dtype, path, inputs = sys.argv[2:]
        kernel, numbers = {"ours": ours, "theirs": theirs}[side](int(inputs), dtype)
        np.save(path, kernel)
        print(json.dumps(numbers))
    elif importlib.util.find_spec("torch") is None:
        print("torch_resnet: skipped, since PyTorch is not installed; `make torch` installs it.")
    else:
        report(
            __doc__,
            "torch_resnet",
            make,
            ("jax", "numpy", "torch"),
            inputs={"type": int, "default": 32, "help": "images of 32 x 32"},
        )
