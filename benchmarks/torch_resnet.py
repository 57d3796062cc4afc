"""The tangent kernel of resnet18, converted from PyTorch, against torch.func: seconds and memory in one run.

    python benchmarks/torch_resnet.py                   # 32 inputs of 32 x 32, one output, float64 and float32
    python benchmarks/torch_resnet.py --inputs 8        # smaller

Each measurement is a process of its own. Ours includes the conversion and compilation. torch.func takes Jacobians of
each input by vmap(jacrev), in chunks of as many rows as fit into our memory budget, and contracts them.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

BUDGET = 512 * 2**20  # for Jacobians, ours and theirs
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))


def network():
    from torch_networks import made

    net, batch, _ = made("resnet18")
    return net, batch


def ours(count, dtype):
    import nearkernel as nk

    net, batch = network()
    x = batch(count)
    before, began = peak(), time.perf_counter()
    with nk.precision(dtype):
        model, params = nk.from_torch(net, x[:2], output=lambda z: z[:, :1])
        converted = time.perf_counter() - began
        kernel = nk.kernels.EmpiricalNTK(model, params)
        found = kernel(x)
        whole = time.perf_counter() - began
        again = time.perf_counter()
        kernel(x)
    return found, {
        "convert": converted,
        "first": whole,
        "again": time.perf_counter() - again,
        "memory": peak() - before,
    }


def theirs(count, dtype):
    import torch
    from torch.func import functional_call, jacrev, vmap

    net, batch = network()
    net = net.to(getattr(torch, dtype))
    x = torch.as_tensor(batch(count)).to(getattr(torch, dtype))
    params = {name: each.detach() for name, each in net.named_parameters()}
    buffers = dict(net.named_buffers())
    size = sum(each.numel() for each in params.values())
    chunk = max(1, BUDGET // (size * x.element_size()))

    def one(params, row):
        return functional_call(net, (params, buffers), (row[None],))[0, :1]

    def jacobian(rows):
        found = vmap(jacrev(one), (None, 0))(params, rows)
        return torch.cat([each.reshape(len(rows), -1) for each in found.values()], dim=1)

    def kernel():
        found = torch.empty(count, count, dtype=x.dtype)
        for i in range(0, count, chunk):
            left = jacobian(x[i : i + chunk])
            for j in range(0, i + 1, chunk):
                right = left if i == j else jacobian(x[j : j + chunk])
                found[i : i + chunk, j : j + chunk] = left @ right.T
                found[j : j + chunk, i : i + chunk] = (left @ right.T).T
        return found.double().numpy()

    before, began = peak(), time.perf_counter()
    found = kernel()
    first, again = time.perf_counter() - began, time.perf_counter()
    kernel()
    return found, {"first": first, "again": time.perf_counter() - again, "memory": peak() - before}


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--inputs", type=int, default=32)
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        side, dtype, path = arguments.worker
        kernel, numbers = {"ours": ours, "theirs": theirs}[side](arguments.inputs, dtype)
        np.save(path, kernel)
        print(json.dumps(numbers))
        return
    print("| precision | | convert, s | first call, s | later call, s | peak memory, MB | deviation |")
    print("|---|---|---|---|---|---|---|")
    for dtype in ("float64", "float32"):
        kernels = {}
        for side in ("ours", "theirs"):
            path = f"/tmp/nearkernel-{side}.npy"
            command = [
                sys.executable,
                __file__,
                "--inputs",
                str(arguments.inputs),
                "--worker",
                side,
                dtype,
                path,
            ]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr[-3000:])
            numbers = json.loads(done.stdout.splitlines()[-1])
            kernels[side] = np.load(path)
            apart = np.abs(kernels[side] - kernels["ours"]).max() / np.abs(kernels["ours"]).max()
            name = "nearkernel" if side == "ours" else "torch.func"
            convert = f"{numbers['convert']:.1f}" if "convert" in numbers else ""
            print(
                f"| {dtype} | {name} | {convert} | {numbers['first']:.1f} | {numbers['again']:.2f} "
                f"| {numbers['memory'] / 1e6:.0f} | {'' if side == 'ours' else f'{apart:.0e}'} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
