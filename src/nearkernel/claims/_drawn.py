"""Random networks written out in NumPy, many at a time: a second opinion that shares no code with the library."""

from collections.abc import Callable
from typing import Any

import numpy as np


class Drawn:
    """`size` random networks in NTK scaling at inputs x (n, d).

    `z`: preactivations of each layer, (size, n, width); `signals`: derivative of the outputs by them,
    (size, n, out, width); `gradient` (size, n, out, d); `kernel` (size, n, out, n, out), the tangent kernel.
    """

    def __init__(self, net, x, size, seed=0):
        rng = np.random.default_rng(seed)
        sizes, roots = net.sizes, [np.sqrt(float(net.weight_var) / fan) for fan in net.sizes[:-1]]
        weights = [
            r * rng.normal(size=(size, a, b)) for r, a, b in zip(roots, sizes, sizes[1:], strict=False)
        ]
        biases = [np.sqrt(float(net.bias_var)) * rng.normal(size=(size, 1, b)) for b in sizes[1:]]
        enters, self.z = [np.broadcast_to(x, (size, *x.shape))], []
        for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            self.z.append(enters[-1] @ weight + bias)
            if layer < len(weights) - 1:
                enters.append(_values(net, self.z[-1])[0])
        signal = np.broadcast_to(np.eye(sizes[-1]), (size, len(x), sizes[-1], sizes[-1]))
        self.signals = [signal]
        for weight, z in zip(weights[:0:-1], self.z[-2::-1], strict=True):
            signal = signal @ weight.swapaxes(1, 2)[:, None] * _values(net, z)[1][:, :, None]
            self.signals.insert(0, signal)
        self.gradient = self.signals[0] @ weights[0].swapaxes(1, 2)[:, None]
        self.kernel: Any = 0.0
        for root, enter, signal in zip(roots, enters, self.signals, strict=True):
            same = root**2 * enter @ enter.swapaxes(1, 2) + float(net.bias_var)
            pairs = np.einsum("kaoi,kbpi->kaobp", signal, signal)
            self.kernel = self.kernel + pairs * same[:, :, None, :, None]


def _values(net, z):
    """s and s' of piecewise linear activations and tanh."""
    left, right = getattr(net.activation, "left", None), getattr(net.activation, "right", None)
    if left is not None:
        return np.where(z > 0, right, left) * z, np.where(z > 0, right, left)
    if net.activation.name != "tanh":
        raise ValueError(f"`Drawn` knows relu and its kin, and tanh; got {net.activation.name}.")
    return np.tanh(z), 1 - np.tanh(z) ** 2


def drawn(net: Any, x: np.ndarray, size: int, seed: Any, observable: Callable[[Drawn], Any]) -> np.ndarray:
    """`observable` of `size` networks, drawn in chunks of some 50 MB; the first axis of its answer counts networks."""
    weights = sum(a * b for a, b in zip(net.sizes, net.sizes[1:], strict=False))
    chunk = max(1, 6_000_000 // (weights + len(x) * sum(net.sizes)))
    seeds = np.random.SeedSequence(seed).spawn(-(-size // chunk))
    sizes = (min(chunk, size - start) for start in range(0, size, chunk))
    return np.concatenate(
        [np.asarray(observable(Drawn(net, x, n, s))) for n, s in zip(sizes, seeds, strict=True)]
    )
