"""`nearkernel advise --tuned-width`: how a learning rate carries over to another width, by maximal updates (muP)."""

from __future__ import annotations

import dataclasses

import numpy as np

import nearkernel as nk

from . import blocks
from .blocks import BLOCKS, Point
from .options import Options

_WIDTHS, _DRAWS, _POINTS, _TOKENS, _FEATURES = (32, 128), 16, 8, 4, 4
_DEEPEST, _DEEPEST_ATTENDING = 4, 2  # layers, a block being one
_BASE = 1  # width: outputs at initialization, which shrink with the width, are then small beside the targets
_RATES = {"sgd": 1e-3, "adam": 1e-4}


@dataclasses.dataclass(frozen=True)
class Moved:
    """Powers of the width with which a layer moves in the first step: predicted, measured and its standard error."""

    optimizer: str
    scaling: str  # "muP" or "standard"
    layer: str
    predicted: float
    measured: float
    error: float


@dataclasses.dataclass(frozen=True)
class Carried:
    """Factors by kind of parameters, from the tuned width to this one, and a coordinate check of them."""

    tuned_width: int
    ratio: float
    initial: dict[str, float]  # of the variance of weights, on top of C_W / fan_in
    sgd: dict[str, float]
    adam: dict[str, float]
    widths: tuple[int, ...]
    depth: int  # of the networks that were drawn
    networks: int
    moves: tuple[Moved, ...]
    code: dict[str, str]


def carried(options: Options, point: Point, scale: float) -> Carried:
    assert options.tuned_width is not None
    ratio = options.width / options.tuned_width
    kinds = ("first layer, biases, norms", "hidden layers", "output layer")
    depth = min(options.depth, _DEEPEST_ATTENDING if BLOCKS[options.block].attends else _DEEPEST)
    return Carried(
        tuned_width=options.tuned_width,
        ratio=ratio,
        initial=dict(zip(kinds, (1.0, 1.0, 1.0 / ratio), strict=True)),
        sgd=dict(zip(kinds, (ratio, 1.0, 1.0 / ratio), strict=True)),
        adam=dict(zip(kinds, (1.0, 1.0 / ratio, 1.0 / ratio), strict=True)),
        widths=_WIDTHS,
        depth=depth,
        networks=_DRAWS,
        moves=_moves(options, point, scale, depth),
        code=CODE,
    )


def _moves(options: Options, point: Point, scale: float, depth: int) -> tuple[Moved, ...]:
    """Coordinate checks of narrow networks, on Gaussian inputs of fewer features than neurons, as powers suppose."""
    rng = np.random.default_rng(options.seed)
    block = BLOCKS[options.block]
    tokens = _TOKENS if block.attends else 0
    net = blocks.network(block, point, _FEATURES, _WIDTHS[0], depth, tokens)
    x, y = rng.normal(size=(_POINTS, *net.in_shape)), rng.normal(size=_POINTS)
    shown = {"first layer": 0, "last hidden layer": -2, "outputs": -1}
    if depth == 1:
        shown = {"hidden layer": 0, "outputs": 1}
    elif block.attends:
        shown = {"first layer": 0, "last attention": -4, "last dense layer": -2, "outputs": -1}
    found = []
    for optimizer, rate in _RATES.items():
        algorithm = nk.GradientDescent(rate, 1) if optimizer == "sgd" else nk.Adam(rate, 1)
        for scaling, model in (("muP", nk.MaximalUpdate(net, _BASE)), ("standard", net)):
            check = nk.statistics.coordinate_check(
                model, scale * x, y, algorithm, _WIDTHS, options.seed, _DRAWS, factors=scaling == "muP"
            )
            found += [
                Moved(optimizer, scaling, name, *map(float, (check.predicted[k], check.slopes[k], check.slopes_sem[k])))
                for name, k in shown.items()
            ]  # fmt: skip
    return tuple(found)


_TORCH = """\
def mup_(model, base, lr, adam=True):
    groups = []
    for module, narrow in zip(model.modules(), base.modules()):
        small = dict(narrow.named_parameters(recurse=False))
        for name, p in module.named_parameters(recurse=False):
            q = small[name]
            out = len(p) / len(q)
            if isinstance(module, torch.nn.Embedding) or "embed" in name or "token" in name:
                out = p.shape[-1] / q.shape[-1]
            fan_in = p.numel() / q.numel() / out
            if fan_in > 1 and out == 1:  # output weights
                p.data /= fan_in**0.5
            groups.append({"params": [p], "lr": lr / fan_in if adam else lr * out / fan_in})
    return groups"""
_FLAX = """\
def mup(params, base, lr, adam=True):
    def grown(path, p, q):
        names, size = {each.key for each in path}, p.size / q.size
        fan_in = size * q.shape[-1] / p.shape[-1]
        if names & {"query", "key", "value"}:  # (inputs, heads, dimension of a head)
            fan_in = p.shape[0] / q.shape[0]
        fan_in = 1.0 if "bias" in names else fan_in
        return fan_in, size / fan_in

    def factor(path, p, q):
        fan_in, out = grown(path, p, q)
        return 1 / fan_in if adam else out / fan_in

    def initial(path, p, q):
        fan_in, out = grown(path, p, q)
        return p / fan_in**0.5 if fan_in > 1 and out == 1 else p  # output weights

    factors = jax.tree_util.tree_map_with_path(factor, params, base)
    rule = optax.adam if adam else optax.sgd
    rules = {str(f): rule(lr * f) for f in jax.tree.leaves(factors)}
    optimizer = optax.multi_transform(rules, jax.tree.map(str, factors))
    return jax.tree_util.tree_map_with_path(initial, params, base), optimizer"""
_KERAS = """\
def mup_(model, base, lr, adam=True):
    factors = {}
    for v, w in zip(model.trainable_variables, base.trainable_variables):
        size = math.prod(v.shape) / math.prod(w.shape)
        fan_in = size * w.shape[-1] / v.shape[-1]
        if any(f"/{word}/" in v.path for word in ("query", "key", "value")):
            fan_in = v.shape[0] / w.shape[0]  # (inputs, heads, dimension of a head)
        fan_in = 1.0 if v.name == "bias" else fan_in
        out = size / fan_in
        if fan_in > 1 and out == 1:  # output weights
            v.assign(v / fan_in**0.5)
        factors[v.path] = 1 / fan_in if adam else out / fan_in

    class Scaled(keras.optimizers.Adam if adam else keras.optimizers.SGD):
        def update_step(self, gradient, variable, learning_rate):
            super().update_step(gradient, variable, learning_rate * factors[variable.path])

    return Scaled(learning_rate=lr)"""
CODE = {"PyTorch": _TORCH, "Flax": _FLAX, "Keras": _KERAS}
CALLS = {
    "PyTorch": "optimizer = torch.optim.Adam(mup_(model, base, lr))  # after init_(model)",
    "Flax": "params, optimizer = mup(params, base_params, lr)  # after init_(params, key)",
    "Keras": "model.compile(optimizer=mup_(model, base, lr), ...)  # after init_(model)",
}
