"""Dropout: equal positions of one evaluation share a mask, other positions and other evaluations do not."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from support.cases import few

K, L = nk.kernels, nk.layers
POSITIONS, KEEP = 6, 0.4
X = np.random.default_rng(8).normal(size=(3, POSITIONS, 2))
RELU, DROP = L.Activation("relu"), L.Dropout(KEEP)


def conv(filter=3, **options):
    return L.Conv(1, filter, **({"weight_var": 1.7, "bias_var": 0.1} | options))


HEAD = L.Dense(1, weight_var=1.3, bias_var=0.2)


class Moments:
    """Of all positions of all inputs, one evaluation each: the recursion in plain matrices, without any layout."""

    def __init__(self, x):
        flat = x.reshape(-1, x.shape[-1])
        self.inputs, self.count = len(x), x.shape[1]
        self.nngp = flat @ flat.T / x.shape[-1]
        self.ntk = 0.0 * self.nngp
        self.mean = np.zeros(len(flat))

    def apply(self, layer):
        getattr(self, "_" + type(layer).__name__.lower())(layer)
        return self

    def _linear(self, matrix):
        """A map of the positions of every input, (out, in)."""
        big = np.kron(np.eye(self.inputs), matrix)
        self.nngp, self.ntk, self.mean = big @ self.nngp @ big.T, big @ self.ntk @ big.T, big @ self.mean
        self.count = len(matrix)

    def _weigh(self, layer):
        self.nngp = layer.bias_var + layer.weight_var * self.nngp
        self.ntk = self.nngp + layer.weight_var * self.ntk
        self.mean = 0.0 * self.mean

    def _dense(self, layer):
        self._weigh(layer)

    def _shifts(self, window):
        """For each tap of a filter: which position it sees from which, (out, in)."""
        (size,), (stride,), (dilation,) = window.filter, window.strides, window.dilation
        (low, _), (out,) = window.pads((self.count,))[0], window.grid((self.count,))
        for tap in range(size):
            matrix = np.zeros((out, self.count))
            for p in range(out):
                at = p * stride + tap * dilation - low
                if window.padding == "CIRCULAR":
                    matrix[p, at % self.count] = 1.0
                elif 0 <= at < self.count:
                    matrix[p, at] = 1.0
            yield matrix

    def _conv(self, layer, local=False):
        bigs = [np.kron(np.eye(self.inputs), m) for m in self._shifts(layer.window)]
        self.nngp, self.ntk = (sum(m @ a @ m.T for m in bigs) / len(bigs) for a in (self.nngp, self.ntk))
        self.mean, self.count = np.zeros(len(bigs[0])), layer.window.grid((self.count,))[0]
        self._weigh(layer)
        if local:
            same = np.kron(np.ones((self.inputs, self.inputs)), np.eye(self.count))
            self.nngp, self.ntk = same * self.nngp, same * self.ntk

    def _locallyconnected(self, layer):
        self._conv(layer, local=True)

    def _activation(self, layer):
        size = np.sqrt(np.diagonal(self.nngp))
        sizes = np.outer(size, size)
        cosine = np.clip(self.nngp / sizes, -1.0, 1.0)
        angle = np.arccos(cosine)
        np.fill_diagonal(angle, 0.0)
        self.nngp = sizes * (np.sin(angle) + (np.pi - angle) * cosine) / (2 * np.pi)
        self.ntk = self.ntk * (np.pi - angle) / (2 * np.pi)
        self.mean = size / np.sqrt(2 * np.pi)

    def _dropout(self, layer):
        factor = np.where(np.eye(len(self.nngp), dtype=bool), 1.0 / layer.keep, 1.0)
        self.nngp, self.ntk = factor * self.nngp, factor * self.ntk

    def _layernorm(self, layer):
        """Over channels, or channels and positions of one input."""
        square, mean = np.diagonal(self.nngp), self.mean
        if layer.axes == "all":
            square, mean = (
                np.repeat(a.reshape(self.inputs, -1).mean(axis=1), self.count) for a in (square, mean)
            )
        scale = 1.0 / np.sqrt(square - mean**2)
        crossed = np.outer(self.mean, mean)
        self.nngp = (self.nngp - crossed - crossed.T + np.outer(mean, mean)) * np.outer(scale, scale)
        self.ntk = self.ntk * np.outer(scale, scale)
        self.mean = (self.mean - mean) * scale

    def _globalavgpool(self, layer):
        self._linear(np.full((1, self.count), 1.0 / self.count))

    def _avgpool(self, layer):
        self._linear(sum(self._shifts(layer.window)) / layer.window.count)

    def _flatten(self, layer):
        shape = (self.inputs, self.count) * 2
        self.nngp, self.ntk = (
            np.einsum("ipjp->ij", a.reshape(shape)) / self.count for a in (self.nngp, self.ntk)
        )
        self.mean, self.count = self.mean.reshape(self.inputs, -1).mean(axis=1), 1

    def _attention(self, layer):
        """Softmax of covariances within each input, from this evaluation's own masks."""
        own = np.kron(np.eye(self.inputs), np.ones((self.count, self.count))) > 0
        scores = np.where(own, np.exp(np.sqrt(layer.qk_var) * self.nngp), 0.0)
        looks = scores / scores.sum(axis=1, keepdims=True)
        seen, both = (looks @ a @ looks.T for a in (self.nngp, self.ntk))
        self.nngp = layer.ov_var * seen + layer.bias_var
        self.ntk = layer.ov_var * (both + 2 * seen) + layer.bias_var
        self.mean = 0.0 * self.mean

    def _positionembedding(self, layer):
        alike = layer.var * np.kron(np.ones((self.inputs, self.inputs)), np.eye(self.count))
        self.nngp, self.ntk = self.nngp + alike, self.ntk + alike

    def _residual(self, layer):
        nngp, ntk, mean = self.nngp, self.ntk, self.mean
        for each in layer.branch.layers:
            self.apply(each)
        crossed = np.outer(mean, self.mean)
        self.nngp, self.ntk = self.nngp + nngp + crossed + crossed.T, self.ntk + ntk
        self.mean = self.mean + mean

    def _repeat(self, layer):
        for _ in range(layer.count):
            for each in layer.body.layers:
                self.apply(each)


NETWORKS = {
    "global pool": [conv(), RELU, DROP, conv(), RELU, L.GlobalAvgPool()],
    "of the inputs": [DROP, conv(), RELU, L.GlobalAvgPool()],
    "last before the pool": [conv(), RELU, DROP, L.GlobalAvgPool()],
    "circular": [conv(padding="CIRCULAR"), RELU, DROP, conv(2, padding="CIRCULAR"), L.GlobalAvgPool()],
    "twice": [conv(), RELU, DROP, conv(), RELU, DROP, conv(), RELU, L.GlobalAvgPool()],
    "blocks": [conv(), RELU, DROP, conv(), RELU, L.AvgPool(3), conv(), RELU, L.GlobalAvgPool()],
    "blocks, then flat": [conv(), RELU, DROP, conv(), RELU, L.AvgPool(2), L.Flatten()],
    "windows": [conv(), RELU, DROP, conv(), RELU, L.AvgPool(3, 2), DROP, L.GlobalAvgPool()],
    "after a pool": [conv(), RELU, L.AvgPool(2), DROP, conv(), RELU, L.GlobalAvgPool()],
    "strides": [conv(), RELU, DROP, conv(strides=2), RELU, L.GlobalAvgPool()],
    "valid": [conv(), RELU, DROP, conv(padding="VALID"), RELU, DROP, conv(2), L.GlobalAvgPool()],
    "dilated": [conv(), RELU, DROP, conv(2, dilation=2), RELU, L.GlobalAvgPool()],
    "no pool": [conv(), RELU, DROP, conv(), RELU, L.Flatten()],
    "norm": [conv(), RELU, DROP, L.LayerNorm(), conv(), RELU, L.GlobalAvgPool()],
    "norm of all": [conv(), RELU, DROP, L.LayerNorm("all"), conv(), RELU, L.GlobalAvgPool()],
    "locally connected": [conv(), RELU, DROP, L.LocallyConnected(1, 3), RELU, DROP, L.GlobalAvgPool()],
    "embedding": [conv(), L.PositionEmbedding(0.5), RELU, DROP, conv(), RELU, L.GlobalAvgPool()],
    "attention": [conv(), RELU, DROP, L.Attention(1, qk_var=1.5), RELU, DROP, L.GlobalAvgPool()],
    "attention after conv": [conv(), RELU, DROP, conv(), L.Attention(1, bias_var=0.1), L.GlobalAvgPool()],
    "residual": [conv(), L.Residual([RELU, DROP, conv()]), RELU, L.GlobalAvgPool()],
    "residual of dropped": [conv(), RELU, DROP, L.Residual([conv(), RELU, DROP]), conv(), L.GlobalAvgPool()],
    "repeat": [conv(), L.Repeat([RELU, DROP, conv()], 3), RELU, L.GlobalAvgPool()],
}  # fmt: skip


FAST = ("global pool", "blocks", "norm of all", "attention", "residual")


def network(layers):
    return nk.Network(X.shape[1:], [*layers, HEAD])


@pytest.mark.parametrize(
    "name",
    few([name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in NETWORKS], 2),
)
def test_kernels_are_those_of_explicit_masks(name):
    net = network(NETWORKS[name])
    exact = Moments(X)
    for layer in net.layers.layers:
        exact.apply(layer)
    for found, expected in zip(K.nngp_and_ntk(net, X), (exact.nngp, exact.ntk), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7)
    twice = Moments(np.concatenate([X, X]))  # two evaluations of each input
    for layer in net.layers.layers:
        twice.apply(layer)
    n = len(X)
    for found, expected in zip(K.nngp_and_ntk(net, X, X), (twice.nngp, twice.ntk), strict=True):
        np.testing.assert_allclose(found, expected[:n, n:], rtol=1e-7)


@pytest.mark.merge
def test_kernels_inside_jit_and_diagonals_have_the_same_masks():
    net = network(NETWORKS["blocks"])
    with jax.enable_x64(True):
        found = jax.jit(lambda x: K.nngp_and_ntk(net, x))(X)
    for one, other in zip(found, K.nngp_and_ntk(net, X), strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-10)
    np.testing.assert_allclose(K.NTK(net).diag(X), np.diagonal(K.NTK(net)(X)), rtol=1e-14)


@pytest.mark.parametrize("name", few(("global pool", "blocks", "attention"), 1))
def test_a_keep_of_1_drops_nothing(name):
    whole = lambda layer: L.Identity() if layer is DROP else layer
    kept = lambda layer: L.Dropout(1.0) if layer is DROP else layer
    one, other = (network([change(layer) for layer in NETWORKS[name]]) for change in (whole, kept))
    for a, b in zip(K.nngp_and_ntk(one, X), K.nngp_and_ntk(other, X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    np.testing.assert_allclose(K.nngp_and_ntk(other, X), K.nngp_and_ntk(other, X, X.copy()), rtol=1e-7)


def test_a_pool_of_one_position_is_a_flattening():
    x = X[:, :1]
    body = [conv(1), RELU, DROP, conv(1), RELU]
    pooled, flat = (nk.Network((1, 2), [*body, end, HEAD]) for end in (L.GlobalAvgPool(), L.Flatten()))
    for a, b in zip(K.nngp_and_ntk(pooled, x), K.nngp_and_ntk(flat, x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.merge
def test_networks_with_drawn_masks_agree():
    """Second moments of outputs over weights and masks, within 4.5 standard errors and 1 % for a width of 128."""
    wide = [
        type(layer)(128, layer.window.filter, weight_var=1.7, bias_var=0.1)
        if isinstance(layer, L.Conv)
        else layer
        for layer in NETWORKS["global pool"]
    ]
    net = nk.Network(X.shape[1:], [*wide, L.Dense(16, weight_var=1.3, bias_var=0.2)])

    def draw(key):
        weights, masks = jax.random.split(key)
        z = net(net.init(weights), X, key=masks)
        return (z @ z.T) / 16

    with jax.enable_x64(True):
        drawn = np.asarray(jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(4), 400)))
    error = drawn.std(axis=0) / np.sqrt(len(drawn))
    theory = K.NNGP(net)(X)
    assert (np.abs(drawn.mean(axis=0) - theory) < 4.5 * error + 0.01 * theory).all()
    without = K.NNGP(network([layer for layer in NETWORKS["global pool"] if layer is not DROP]))(X)
    assert (np.abs(np.diagonal(without - theory)) > 3 * np.diagonal(4.5 * error + 0.01 * theory)).all()
