"""Averages over neurons that cross a kink in training: what they add to mean, covariance and cumulants of outputs."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # whose part `stats` takes half a second to import, and comes when it is used
import scipy.special

from ..._run.executor import run
from ...dynamics.algorithms.spectral import GradientDescent, SpectralAlgorithm
from ...kernels.wide.network import activation_averages, layer_kernels
from ...models.networks.mlp import MLP
from ..neuron_sampling import Draw, Moments, NeuronJob, Sampled, relative_error, root
from .kink_law import Crossing, Stretches, crossed, stretches
from .neuron_drift import drift_roots

if TYPE_CHECKING:
    from .theory import Kinks

_BLOCK, _FIRST = 64, 2048
_TINY = 1e-13
_PARALLEL = 1e-9  # of a squared sine: below it kinks of two inputs are one


class Crossings:
    """Kernels of all layers at train and new points, made once for all times."""

    def __init__(
        self, net: MLP, x: np.ndarray, y: np.ndarray, vector: bool, x_new: np.ndarray, options: "Kinks"
    ):
        self.net, self.x, self.y, self.vector, self.options = net, x, y, vector, options
        self.n, self.outputs = y.shape
        self.shape = (len(x_new),) if vector else (len(x_new), self.outputs)
        both = np.concatenate([x, x_new])
        self.kernels = layer_kernels(net, both)
        self.slopes = [slopes for _, slopes in activation_averages(net, both)]
        self.kernel, self.ntk, _ = self.kernels[-1]
        self.prior = np.repeat(np.diagonal(self.kernel)[self.n :], self.outputs)
        self.fields = [self._field(k) for k in range(len(net.widths))]
        self.kinked = [k for k, each in enumerate(net.activations) if each.kinks]
        self.separation = min((self._separation(k) for k in self.kinked), default=1.0)
        self.drifts = drift_roots(net, self.kernels, self.slopes, self.fields, self.n, options.seed)
        lam, self.vectors = np.linalg.eigh(self.ntk[: self.n, : self.n])
        self.lam = np.maximum(lam, _TINY * lam[-1])

    def _separation(self, layer: int) -> float:
        """The smallest sine of the angle between preactivations at two training points, whose kinks it separates."""
        kernel = self.kernels[layer][0][: self.n, : self.n]
        size = np.sqrt(np.maximum(np.diagonal(kernel), np.finfo(float).tiny))
        sines = 1 - np.tril(kernel / np.outer(size, size), -1) ** 2
        row, other = np.unravel_index(np.argmin(sines), sines.shape)
        if sines[row, other] < _PARALLEL:
            raise ValueError(
                f"`theory=nk.Kinks()` needs training inputs of different directions: rows {other} and {row} of `x` are "
                "parallel, so neurons cross their kinks at once. Leave out one of them, or give the network a bias "
                "(`bias_var`)."
            )
        return math.sqrt(sines[row, other])

    def filter(self, algorithm: SpectralAlgorithm) -> np.ndarray:
        """(1 - what is left) / eigenvalue of each mode at the algorithm's end."""
        return 1 / self.lam if math.isinf(algorithm.end()) else algorithm.filter(self.lam)

    def wide(self, algorithm: SpectralAlgorithm) -> tuple[np.ndarray, np.ndarray]:
        """Mean (m, out) and covariance (m, m) of each output at infinite width."""
        theta = self.ntk[self.n :, : self.n]
        response = ((theta @ self.vectors) * self.filter(algorithm)) @ self.vectors.T
        leading = np.concatenate([-response, np.eye(len(theta))], axis=1)
        return response @ self.y, leading @ self.kernel @ leading.T

    def movement(self, algorithm: SpectralAlgorithm) -> float:
        """How far training moves preactivations, in their deviations: rms over neurons, at the worst training point.

        u_a moves by - n^(-1/2) sum_b (theta_ab xi_b s'_b + Gamma_ab) alpha_b with alpha = g(Theta) (z - y).
        """
        n = self.n
        inverse = (self.vectors * self.filter(algorithm)) @ self.vectors.T
        pushed, start = inverse @ self.y, self.outputs * self.kernel[:n, :n]
        alpha = inverse @ start @ inverse + pushed @ pushed.T
        largest = 0.0
        for layer in self.kinked:
            kernel, theta, _ = (part[:n, :n] for part in self.kernels[layer])
            pairs = self.fields[layer][:n, :n] * self.slopes[layer][:n, :n] * alpha
            own, drift = np.diagonal(kernel), self.drifts[layer].reshape(-1, len(self.kernel), n)[:, :n]
            square = np.einsum("ab,bc,ac->a", theta, pairs, theta)
            square += np.einsum("kab,kab->a", drift @ alpha, drift)
            square /= self.net.widths[layer]
            largest = max(largest, float((square[own > 0] / own[own > 0]).max(initial=0.0)))
        return math.sqrt(largest)

    def sampled(self, algorithm: SpectralAlgorithm) -> Sampled:
        """What kinks add, its errors, and the number of neurons: added until errors are small enough."""
        options, m = self.options, math.prod(self.shape)
        lr, time = (algorithm.lr if isinstance(algorithm, GradientDescent) else 0.0), algorithm.end()
        if time == 0:
            nothing = Moments(np.zeros(m), *np.zeros((3, m, m)))
            return Sampled(nothing, nothing, 0)
        filtered, cov = self.filter(algorithm), np.kron(np.eye(self.outputs), self.wide(algorithm)[1])
        cast: Any = lambda array: np.asarray(array, options.dtype)
        stretch = Stretches(*map(cast, stretches(self.lam, lr, time)))
        layers = [(k, self._layer(k, filtered)) for k in self.kinked]
        var = np.diagonal(self._by_points(cov))
        free = var > 1e-9 * self.prior
        sums: Any = np.zeros((options.scrambles, m + 3 * m * m))
        total, more = 0, _BLOCK * max(1, _FIRST // options.scrambles // _BLOCK)
        engines = [self._engines(k, crossing) for k, crossing in layers]
        while True:
            for (k, crossing), (draw, sobols) in zip(layers, engines, strict=True):
                share = 1 / math.sqrt(self.net.widths[k])
                sums = sums + share * self._round(k, crossing, stretch, math.isinf(time), draw, sobols, more)
            total += more
            found = [_cumulants(each / total, cov) for each in sums]
            parts = [np.stack(part) for part in zip(*found, strict=True)]
            value = Moments(*(self._by_points(part.mean(axis=0)) for part in parts))
            error = Moments(
                *(self._by_points(part.std(axis=0, ddof=1)) / math.sqrt(len(part)) for part in parts)
            )
            accuracy = relative_error(value, error, var, free)
            if accuracy <= options.tolerance or total * options.scrambles >= options.most:
                return Sampled(value, error, total * options.scrambles, accuracy)
            more = total

    def _engines(self, layer: int, crossing: Crossing) -> tuple[Draw, list]:
        strength = lambda part: np.sum(np.square(part), axis=1)
        pushed = np.concatenate([strength(crossing.xi_root), strength(crossing.drift_root)])
        strengths = [strength(crossing.u_root), pushed, strength(crossing.z_root)]
        sizes = [len(strengths[0]), *(self.outputs * len(each) for each in strengths[1:])]
        draw = _CubedDraw(sizes, strengths, self.outputs)
        seeds = range(self.options.scrambles)
        rng = lambda k: np.random.default_rng([self.options.seed, layer, k])
        return draw, [scipy.stats.qmc.Sobol(sum(sizes), rng=rng(k)) for k in seeds]

    def _round(
        self, layer: int, crossing, stretch, at_end: bool, draw: Draw, sobols: list, more: int
    ) -> np.ndarray:
        activation: Any = self.net.activation_of(layer + 1)
        slopes = (float(activation.right), float(activation.left))
        job = NeuronJob(crossed, (slopes, at_end), (crossing, stretch), draw, self.options.dtype)
        block = min(_BLOCK, more)
        blocks = (engine.random(block) for engine in sobols for _ in range(more // block))
        found = [np.concatenate([part.ravel() for part in each]) for each in run(job, blocks)]
        return np.array(found).reshape(len(sobols), more // block, -1).sum(axis=1)

    def _by_points(self, array: np.ndarray) -> np.ndarray:
        """From (output, point) to (point, output), on each axis."""
        order = np.arange(len(array)).reshape(self.outputs, -1).T.ravel()
        return array[np.ix_(*[order] * array.ndim)]

    def _field(self, layer: int) -> np.ndarray:
        """The covariance [point, point] of the field that leads from a neuron to an output, times the width."""
        x = np.full_like(self.kernel, float(self.net.dense(layer + 1).weight_var))
        for above in range(layer + 1, len(self.net.widths)):
            x = float(self.net.dense(above + 1).weight_var) * self.slopes[above] * x
        return x

    def _layer(self, layer: int, filtered: np.ndarray) -> Crossing:
        kernel, theta, _ = self.kernels[layer]
        n, own = self.n, np.diagonal(kernel)
        inverse = np.where(own > 0, 1 / np.where(own > 0, own, 1.0), 0.0)
        partner = np.argmax(kernel[:, :n] ** 2 * inverse[:n], axis=1)
        partner[:n] = np.arange(n)
        fields = (
            self.vectors, self.lam, self.ntk[:, :n], self.y.T, filtered, root(self.kernel), root(kernel),
            root(self.fields[layer]), self.drifts[layer], kernel * inverse[:, None], theta[:, :n],
            np.sqrt(inverse / (2 * np.pi)),
        )  # fmt: skip
        cast: Any = lambda array: np.ascontiguousarray(array, self.options.dtype)
        made: Any = (*map(cast, fields), partner, cast(math.sqrt(self.net.widths[layer])))
        return Crossing(*made)


class _CubedDraw(Draw):
    """Normals of xi and Gamma with a length that is drawn by its third power, and the weight that makes up for it.

    What crosses a kink grows as that third power, except beside the kink of a training point.
    """

    def parts(self, uniform: np.ndarray) -> list[np.ndarray]:
        u, xi, z = super().parts(uniform)
        half, squares = 0.5 * xi[0].size, np.sum(xi**2, axis=(1, 2))
        share = np.minimum(scipy.special.gammainc(half, 0.5 * squares), 1 - 1e-12)
        drawn = 2 * scipy.special.gammaincinv(half + 1.5, share)
        third = 2**1.5 * math.exp(
            math.lgamma(half + 1.5) - math.lgamma(half)
        )  # of lengths that are not changed
        return [u, xi * np.sqrt(drawn / squares)[:, None, None], z, third / drawn**1.5]


def _cumulants(averages: np.ndarray, cov: np.ndarray) -> Moments:
    """From averages of `crossed` in a row, and the covariance of g."""
    m, v = len(cov), np.diagonal(cov)
    mean, (cross, third, fourth) = averages[:m], averages[m:].reshape(3, m, m)
    tied = np.diagonal(cross)[:, None] * v + 2 * cov * cross
    return Moments(
        mean,
        cross + cross.T,
        third - mean[:, None] * v - 2 * cov * mean,
        fourth - 2 * (tied + tied.T),
    )
