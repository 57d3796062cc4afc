"""The correction of order 1/n by averages over neurons that are drawn: any number of points, no tensor of four."""

import functools
import math
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import scipy  # whose part `stats` takes half a second to import, and comes when it is used
import scipy.special

from ..._run.executor import run
from ...dynamics.orders.clock import AbstractClock, FlowClock, StepClock
from ...kernels.wide.network import layer_kernels
from ...models.networks.mlp import MLP
from ...statistics.width.pair_functions import layers_of, mean_corrections
from ..neuron_sampling import Draw, Moments, NeuronJob, Sampled, SamplesNeurons, cast, root, whitened
from .one_neuron import Background, Neuron, Outcome, Panels, outcome
from .time_responses import kernel_response

_MOMENTS = 6  # of a panel
_NUMBERS = 2**20  # in one field of a block of neurons at all times of a panel
_FIRST = 4096  # neurons of a layer in the first round
_TINY = 1e-13  # an eigenvalue that is zero, relative to the largest
_SINGLE = 1e5  # the largest over the smallest eigenvalue that training fits, for float32: errors grow with it, to 2e-4


class Points:
    """All that neurons need to know of train and new points, made once for all times."""

    def __init__(self, net: MLP, x: np.ndarray, y: np.ndarray, x_new: np.ndarray, options: SamplesNeurons):
        self.net, self.y, self.options = net, y, options
        self.n, self.outputs = y.shape
        kernels = layer_kernels(net, np.concatenate([x, x_new]))
        self.layers = layers_of(net, kernels)
        self.kernel, self.ntk, _ = kernels[-1]
        self.lam, self.vectors = np.linalg.eigh(self.ntk[: self.n, : self.n])
        self.kernel_correction, self.ntk_correction = mean_corrections(net, self.layers)

    @functools.cached_property
    def neurons(self) -> list["_Layer"]:
        return [_Layer(self, k) for k in range(len(self.net.widths))]

    def filter(self, lr: float, time: float) -> np.ndarray:
        """(1 - what is left) / eigenvalue of each mode at a time."""
        clock = _clock(self.lam, lr, time)
        return 1 / clock.lam if math.isinf(time) else clock.filter(np.array([float(time)]))[0]

    def leading(self, time_filter: np.ndarray) -> np.ndarray:
        """[new, point]: what new outputs take from outputs of the start at infinite width."""
        response = (self.ntk[self.n :, : self.n] @ self.vectors * time_filter) @ self.vectors.T
        return np.concatenate([-response, np.eye(len(response))], axis=1)

    def by_mean_kernel(self, lr: float, time: float, e: np.ndarray) -> np.ndarray:
        """(new, k): what H^(1) adds to outputs with residuals `e` (n, k) at initialization."""
        found = kernel_response(np.maximum(self.lam, _TINY * self.lam[-1]), lr, time)
        turned = self.ntk_correction[:, : self.n] @ self.vectors
        modes, theta = self.vectors.T @ e, self.ntk[self.n :, : self.n] @ self.vectors
        answered = theta @ ((found.old * (self.vectors.T @ turned[: self.n])) @ modes)
        return answered - (turned[self.n :] * found.new) @ modes

    def sampled(self, lr: float, time: float, enough: Any) -> Sampled:
        """Averages over neurons of all layers, until `enough(value, error)`."""
        clock = _clock(self.lam, lr, time)
        filter_, at_end, width = self.filter(lr, time), math.isinf(time), self.net.widths[-1]
        dtype = self.options.dtype if filter_.max() * self.lam[-1] <= _SINGLE else "float64"
        panels, background = _panels(clock), self._background(clock, filter_)
        leading = self.leading(filter_)
        kernel = _outputs(leading @ self.kernel @ leading.T, self.outputs)
        rounds = [layer.rounds(background, panels, at_end, dtype) for layer in self.neurons]
        sums: list[Any] = [None for _ in rounds]
        while True:
            total = []
            for k, each in enumerate(rounds):
                added, count = next(each)
                sums[k] = added if sums[k] is None else [a + b for a, b in zip(sums[k], added, strict=True)]
                share = _outputs(leading @ self.neurons[k].own_covariance @ leading.T, self.outputs)
                parts = _cumulants(Outcome(*(part / count for part in sums[k])), kernel, share)
                total.append([width / self.net.widths[k] * part for part in parts])
            found = [sum(parts) for parts in zip(*total, strict=True)]
            value = Moments(*(part.mean(axis=0) for part in found))
            error = Moments(*(part.std(axis=0, ddof=1) / np.sqrt(len(part)) for part in found))
            value, error = self._turned(value), self._turned(error)
            if 2 * count * self.options.scrambles > self.options.most or enough(value, error):
                return Sampled(value, error, count * self.options.scrambles)

    def _turned(self, moments: Moments) -> Moments:
        return Moments(*(self._by_points(part) for part in moments))

    def _by_points(self, array: np.ndarray) -> np.ndarray:
        """From (output, point) to (point, output), on each axis."""
        order = np.arange(array.shape[0]).reshape(self.outputs, -1).T.ravel()
        return array[np.ix_(*[order] * array.ndim)]

    def _background(self, clock: AbstractClock, filter_: np.ndarray) -> Background:
        fields: Any = self.vectors, clock.lam, self.ntk[:, : self.n], self.y.T, filter_, root(self.kernel)
        return Background(*fields)


class _Layer:
    """Sampled neurons of one hidden layer, 0, 1, .."""

    def __init__(self, points: Points, layer: int):
        self.points, self.layer = points, layer
        self.last = layer == len(points.net.widths) - 1
        layers, n = points.layers, points.n
        seen, theta = layers.seen[layer][-1], layers.ntks[layer]
        alpha_root = whitened(points.kernel, seen.psi.T)
        xi_root = np.sqrt(seen.x[:1, :1]) * np.ones((1, len(theta))) if self.last else root(seen.x)
        fields: Any = (
            root(layers.kernels[layer]), xi_root, alpha_root, theta[:, :n], seen.z[:, :n], seen.phi[:, :n],
            seen.phi.T[:, :n], layers.mean_omega(layer)[:, :n], layers.pairs[layer].one(0, 0),
            (theta * (alpha_root.T @ alpha_root))[:, :n],
        )  # fmt: skip
        self.neuron = Neuron(*fields)
        self.activation = points.net.activation_of(layer + 1)
        self.own_covariance = seen.x * layers.pairs[layer].pair(0, 0)  # of eps xi s

    def rounds(
        self, net: Background, panels: Panels, at_end: bool, dtype: str
    ) -> Iterator[tuple[list[np.ndarray], int]]:
        """(sums [scramble, ..] of a round, neurons of a scramble so far): each round doubles the number."""
        options, outputs = self.points.options, self.points.outputs
        sizes = [len(self.neuron.u_root), outputs * len(self.neuron.xi_root), outputs * len(net.z_root)]
        shares = (self.neuron.u_root, self.neuron.xi_root, net.z_root)
        draw = Draw(sizes, [np.sum(np.square(r), axis=1) for r in shares], outputs)
        field = (4 if self.last else 6) * panels.decay.shape[1] * len(self.neuron.theta) * outputs
        block = int(2 ** np.clip(np.log2(max(_NUMBERS // field, 16)) // 1, 4, 10))
        first = min(_FIRST, options.most) // options.scrambles
        block = min(block, 1 << max(4, first.bit_length() - 1))
        choices = (self.activation, self.last, at_end)
        constants = jax.tree.map(functools.partial(cast, dtype), (net, self.neuron, panels))
        job = NeuronJob(outcome, choices, constants, draw, dtype)
        engines = [
            scipy.stats.qmc.Sobol(sum(sizes), rng=np.random.default_rng([options.seed, self.layer, k]))
            for k in range(options.scrambles)
        ]
        total, more = 0, block * max(1, first // block)
        while True:
            each = more // block
            blocks = (engine.random(block) for engine in engines for _ in range(each))
            sums: list[list[np.ndarray]] = []
            for k, found in enumerate(run(job, blocks)):
                if k % each == 0:
                    sums.append(found)
                else:
                    sums[-1] = [a + b for a, b in zip(sums[-1], found, strict=True)]
            total += more
            yield [np.stack(part) for part in zip(*sums, strict=True)], total
            more = total


def _outputs(matrix: np.ndarray, outputs: int) -> np.ndarray:
    """The same for each of independent outputs, [(output, point), (output, point)]."""
    return np.kron(np.eye(outputs), matrix)


def _cumulants(found: Outcome, kernel: np.ndarray, own: np.ndarray) -> list[np.ndarray]:
    """Cumulants from the moments of each scramble, with the exact covariances `kernel` of f0 and `own` of f1."""
    mean, full, third, fourth, spread = (np.asarray(part) for part in found)
    k, s = np.diagonal(kernel), np.diagonal(own)
    variance = np.diagonal(full, axis1=1, axis2=2)
    third = third - mean[:, :, None] * k - 2 * kernel * mean[:, None]
    fourth = fourth - k[:, None] * variance[:, None] - variance[:, :, None] * k - 4 * kernel * full
    return [mean, full - spread, third, fourth - np.outer(s, s) - 2 * own**2]


def _clock(lam: np.ndarray, lr: float, time: float) -> AbstractClock:
    positive = np.maximum(lam, _TINY * lam[-1])
    return StepClock(positive, lr, time, _MOMENTS) if lr else FlowClock(positive, time, _MOMENTS)


def _panels(clock: AbstractClock) -> Panels:
    found = list(clock.panels())
    most = max(len(panel.nodes) for panel, _ in found)
    parts = []
    for panel, still in found:
        last = np.minimum(np.arange(most), len(panel.nodes) - 1)
        nodes, real = panel.nodes[last], (np.arange(most) < len(panel.nodes))[None, :, None]
        parts.append(
            (
                clock.decay(nodes), clock.filter(nodes), panel.decay[last],
                np.where(real, panel.weights[last][:, last], 0.0),
                np.where(real, still.weights[last][:, last], 0.0)[..., 0],
            )
        )  # fmt: skip
    stacked: Any = [np.stack(each) for each in zip(*parts, strict=True)]
    return Panels(*stacked)
