"""Clouds at initialization: where the fields of every layer are Gaussian with known kernels.

Neurons start on scrambled Sobol points along the eigenvectors of these kernels. Their weights are tilted until the
leading second moments of activations and gradients are those of the closed forms, so that a lazy network of clouds
is trained by the exact kernel. Few moments are matched, and no weight comes near zero: with too many, weights turn
negative, and training explodes late.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from ...kernels.wide.network import activation_averages
from ...models.networks.mlp import MLP
from .cloud import PairedCloud, sobol_normals, whitened
from .cloud_network import CloudNetwork, Layout, directions_of, value_and_slope

MOMENTS_PER_NEURON = 0.02
_LEAST_WEIGHT = 0.1  # of the mean weight
_SWEEPS = 4


@dataclasses.dataclass(frozen=True)
class Modes:
    """Eigenvectors of a kernel matrix K, of fields scaled to unit norm, that carry more than `tol` of a norm."""

    root: np.ndarray  # (points, k), K = root root^T
    directions: np.ndarray  # (k, points): combinations of fields with this kernel that are orthonormal


def modes(kernel: np.ndarray, tol: float) -> Modes:
    norms = np.sqrt(np.maximum(np.diagonal(kernel), 1e-300))
    lam, vectors = np.linalg.eigh(kernel / np.outer(norms, norms))
    kept = np.flatnonzero(lam > tol**2)[::-1]
    root = np.sqrt(lam[kept])
    return Modes(norms[:, None] * vectors[:, kept] * root, (vectors[:, kept] / root).T / norms)


def input_space(x: np.ndarray, weight_var: float, bias_var: float) -> np.ndarray:
    """xi (points, k) with xi . xi' = C_b + C_W x . x'/d, leading directions first."""
    bias = np.full((len(x), 1), bias_var**0.5)
    extended = np.concatenate([x * (weight_var / x.shape[1]) ** 0.5, bias], axis=1)
    left, size, _ = np.linalg.svd(extended, full_matrices=False)
    return (left * size)[:, size > 1e-12 * size[0]]


class Start:
    """Exact kernels at initialization, and the clouds that begin from them.

    **Arguments:** `net`, `layout`; `x` (points, d), training points first, and the same as `xi`; `error` (n, out), the
    derivative of the loss by outputs of 0 on the training set, whose directions are asked for first; `tol`.
    """

    def __init__(
        self, net: MLP, layout: Layout, x: np.ndarray, xi: np.ndarray, error: np.ndarray, tol: float
    ):
        self.layout, self.xi, self.train, self.tol = layout, xi, len(error), tol
        self.seed = directions_of(error)[0]
        points, n = len(x), len(error)
        features, slopes = zip(*activation_averages(net, x), strict=True)
        # New points have no error: with one output all have the same direction, with more they are left out.
        seen = slice(points if layout.outputs == 1 else n)
        seed = np.ones((points, 1)) if layout.outputs == 1 else self.seed
        self._ahead = [modes(phi, tol) for phi in features]
        self._back: list[Modes] = []
        roots, offsets = (np.sqrt(part) for part in (layout.weight_vars, layout.bias_vars))
        self._even = [xi]
        for mode, root, offset in zip(self._ahead[:-1], roots[1:], offsets[1:], strict=False):
            columns = [np.full((points, int(offset > 0)), offset), root * mode.root]
            self._even.append(np.concatenate(columns, axis=1))
        self._odd = [roots[-1] * seed]
        self._aims: list[Modes] = []
        for slope, root in zip(reversed(slopes), roots[-2::-1], strict=True):
            gram = slope[seen, seen] * (self._odd[0] @ self._odd[0].T)  # of what of g is known
            self._aims.insert(0, modes(gram, tol))
            self._back.insert(0, modes(gram[:n, :n], tol))
            self._odd.insert(0, root * (gram[:, :n] @ self._back[0].directions.T))
        self._odd.pop(0)

    def network(
        self, neurons: int, rng: np.random.Generator, layout: Layout, dtype: np.dtype
    ) -> CloudNetwork:
        """A network of clouds that has met all points."""
        clouds = [self._cloud(layer, neurons // 2, rng, dtype) for layer in range(layout.depth)]
        network = CloudNetwork(layout, clouds, self.xi.shape[1], self.tol)
        fields = network.forward(self.xi, begin=[mode.directions for mode in self._ahead[:-1]])
        network.backward(
            fields.rows(slice(self.train)), self.seed, begin=[mode.directions for mode in self._back[1:]]
        )
        return network

    def _cloud(self, layer: int, pairs: int, rng: np.random.Generator, dtype: np.dtype) -> PairedCloud:
        ahead, back = self._even[layer], self._odd[layer]
        even, odd = sobol_normals(ahead.shape[1], back.shape[1], pairs, rng)
        weights = np.full(pairs, 1.0 / pairs)
        # k modes of both have k (k + 1) moments.
        most = int((2 * pairs * MOMENTS_PER_NEURON + 0.25) ** 0.5 - 0.5)
        for _ in range(_SWEEPS):
            even = even - even @ weights[:, None]
            even = whitened(even, (even * weights) @ even.T)
            odd = whitened(odd, (odd * weights) @ odd.T)
            value, slope = value_and_slope(self.layout.activations[layer], ahead @ even)
            gradient = slope[: len(back)] * (back @ odd)
            moments = [
                _products(mode.directions[:most] @ fields)
                for mode, fields in ((self._ahead[layer], value), (self._aims[layer], gradient))
            ]
            weights = tilted(weights, *zip(*moments, strict=True))
        return PairedCloud(even, odd, weights, rng, dtype)


def _products(fields: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Products of every two of k fields, (k (k + 1)/2, M), and what they are on average if orthonormal."""
    i, j = np.triu_indices(len(fields))
    return fields[i] * fields[j], (i == j).astype(np.float64)


def tilted(weights: np.ndarray, moments: Sequence[np.ndarray], targets: Sequence[np.ndarray]) -> np.ndarray:
    """The nearest weights with which the averages of `moments` are the `targets`; none below a tenth of their mean."""
    size = len(weights)
    rows = np.concatenate([np.ones((1, size)), *moments])
    wanted = np.concatenate([[1.0], *targets])
    inverse = np.linalg.pinv(rows @ rows.T, rcond=1e-10, hermitian=True)
    for _ in range(_SWEEPS):
        weights = weights + (inverse @ (wanted - rows @ weights)) @ rows
        if weights.min() >= _LEAST_WEIGHT / size:
            return weights
        weights = np.maximum(weights, _LEAST_WEIGHT / size)
    return weights / weights.sum()
