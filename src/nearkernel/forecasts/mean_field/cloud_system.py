"""Training sets and new points beside a network of clouds: what `_drive.py` moves."""

from typing import Any, NamedTuple

import numpy as np

from ..._run.memory import rows_that_fit
from .cloud_network import Change, CloudNetwork, Fields, largest_eigenvalue
from .drivers import AbstractSystem


class CloudSystem(AbstractSystem):
    """A network of clouds with its training inputs `xi` (n, k) and new inputs `xi_new` (m, k).

    **Arguments:** `look`: new directions are looked for every so many steps, and at steps 1, 2, 4, 8, ...; `centered`:
    whether the outputs at initialization, which are 0 in the limit, are subtracted.
    """

    def __init__(
        self, network: CloudNetwork, xi: np.ndarray, xi_new: np.ndarray, look: int = 1, centered: bool = False
    ):
        self.network, self.xi, self.xi_new, self._look = network, xi, xi_new, look
        self._start, self._start_new = np.zeros(()), np.zeros(())
        self._learns = True
        self._fields: Fields | None = None
        starts = self.outputs(), self.new_outputs()  # all points are met before training
        if centered:
            self._start, self._start_new = starts

    def at_step(self, step: int) -> None:
        self._learns = step % self._look == 0 or step & (step - 1) == 0

    def outputs(self) -> np.ndarray:
        self._fields = self.network.forward(self.xi, self._learns)
        return self.network.outputs(self._fields) - self._start

    def new_outputs(self) -> np.ndarray:
        """(m, out), a few rows at a time."""
        bytes_per_row = 8 * 4 * sum(cloud.size for cloud in self.network.clouds)
        chunk = rows_that_fit(bytes_per_row)
        parts = [
            self.network.outputs(self.network.forward(self.xi_new[at : at + chunk], self._learns))
            for at in range(0, len(self.xi_new), chunk)
        ]
        return np.concatenate(parts) - self._start_new

    def force(self, rows: Any, error: np.ndarray) -> Change:
        assert self._fields is not None
        return self.network.force(self.xi[rows], self._fields.rows(rows), error, self._learns)

    def shift(self, change: Change, amount: float) -> None:
        self.network.shift(change, amount)

    def decay(self, share: float) -> None:
        self.network.decay(share)

    def sharpness(self, error: np.ndarray) -> float:
        assert self._fields is not None
        return self.network.sharpness(self.xi, self._fields, error)


class Grams(NamedTuple):
    """Kernels of all points: `ntk` (P, out, P, out); of each layer `features` (P, P) and `gradients`, as `ntk`."""

    ntk: np.ndarray
    features: list[np.ndarray]
    gradients: list[np.ndarray]


def grams(network: CloudNetwork, xi: np.ndarray, learn: bool) -> Grams:
    """The kernels at inputs `xi` (P, k); `learn` at initialization, so that they are known well later."""
    outputs, points = network.layout.outputs, len(xi)
    fields = network.forward(xi, learn)
    parts = [
        network.backward(fields, np.tile(np.eye(outputs)[o], (points, 1)), learn) for o in range(outputs)
    ]
    gradients = []
    for layer, cloud in enumerate(network.clouds):
        stacked = np.stack([part[layer] for part in parts], axis=1).reshape(points * outputs, -1)
        gradients.append(cloud.inner(stacked, stacked))
    last = np.kron(np.ones((points, points)), np.eye(outputs))
    features = network.features(fields)
    spread = [np.kron(phi, np.ones((outputs, outputs))) for phi in features]
    ntk = network.tangent(np.repeat(xi, outputs, axis=0), spread, [*gradients, last])
    shape = (points, outputs, points, outputs)
    return Grams(ntk.reshape(shape), features, [gram.reshape(shape) for gram in gradients])


def kernel_to(network: CloudNetwork, xi: np.ndarray, n: int) -> np.ndarray:
    """The tangent kernel (P, out, n, out) between the inputs `xi` (P, k) and the first `n` of them."""
    outputs, seeds = network.layout.outputs, np.eye(network.layout.outputs)

    def both(rows: np.ndarray, learn: bool) -> tuple[Fields, list[list[np.ndarray]]]:
        fields = network.forward(rows, learn)
        return fields, [network.backward(fields, np.tile(seed, (len(rows), 1)), learn) for seed in seeds]

    fields, gradients = both(xi[:n], True)
    kernel = np.empty((len(xi), outputs, n, outputs))
    chunk = rows_that_fit(8 * (4 + outputs) * sum(cloud.size for cloud in network.clouds))
    for at in range(0, len(xi), chunk):
        rows = slice(at, at + chunk)
        # What of new points is unknown is orthogonal to all that training points ask.
        here, slopes = both(xi[rows], False)
        features = [
            network.layout.metric(layer, cloud.inner(one, other))
            for layer, (cloud, one, other) in enumerate(
                zip(network.clouds, here.after, fields.after, strict=True), start=1
            )
        ]
        metrics = [xi[rows] @ xi[:n].T, *features]
        for o in range(outputs):
            for p in range(outputs):
                grams = [
                    cloud.inner(one, other)
                    for cloud, one, other in zip(network.clouds, slopes[o], gradients[p], strict=True)
                ]
                kernel[rows, o, :, p] = sum(
                    metric * gram for metric, gram in zip(metrics, [*grams, float(o == p)], strict=True)
                )
    return kernel


class LazySystem(AbstractSystem):
    """Outputs moved by a kernel that stays as it is: the limit of small richness.

    **Arguments:** `kernel`, training points first: (P, n) if all outputs have the same, or (P, out, n, out);
    `outputs`, their number.
    """

    def __init__(self, kernel: np.ndarray, outputs: int):
        self._kernel, self._n = kernel, kernel.shape[1 if kernel.ndim == 2 else 2]
        self._values = np.zeros((len(kernel), outputs))

    def at_step(self, step: int) -> None:
        pass

    def outputs(self) -> np.ndarray:
        return self._values[: self._n]

    def new_outputs(self) -> np.ndarray:
        return self._values[self._n :]

    def force(self, rows: Any, error: np.ndarray) -> "Moved":
        if self._kernel.ndim == 2:
            return Moved(self._kernel[:, rows] @ error)
        return Moved(np.tensordot(self._kernel[:, :, rows], error, 2))

    def shift(self, change: "Moved", amount: float) -> None:
        self._values = self._values + amount * change.values

    def decay(self, share: float) -> None:
        raise NotImplementedError  # the kernel would not stay as it is

    def sharpness(self, error: np.ndarray) -> float:
        size = self._n * self._kernel.shape[1] if self._kernel.ndim == 4 else self._n
        return largest_eigenvalue(self._kernel[: self._n].reshape(size, size))


class Moved(NamedTuple):
    """A change of outputs."""

    values: np.ndarray

    def plus(self, other: "Moved", amount: float, own: float = 1.0) -> "Moved":
        return Moved(own * self.values + amount * other.values)
