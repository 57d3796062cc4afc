"""`nearkernel advise --train`: short runs on a few rows from each initialization, with the best of five rates."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import nearkernel as nk

from . import transformer
from .blocks import Block
from .flow import LAWS, drawn_layer, through
from .starts import Start

BASE_WIDTH = 64  # networks are at most this wide; muP carries Adam's rates to others
_ROWS, _STEPS, _NETWORKS = 128, 100, 2
_TOKENS = 512  # of all sequences together
_GD_RATES = np.array([0.125, 0.5, 2.0, 8.0, 32.0])  # times the stable rate of the advised network
_ADAM_RATES = np.array([1e-4, 3e-4, 1e-3, 3e-3, 1e-2])


@dataclasses.dataclass(frozen=True)
class Run:
    """From one initialization: the loss 1/2 mean (z - y)^2 before and after, its standard error, the rate of all."""

    name: str
    before: float
    after: float
    error: float
    rate: float


@dataclasses.dataclass(frozen=True)
class Training:
    """`runs` from all initializations, each with the rate that left the least loss."""

    optimizer: str
    steps: int
    rows: int
    width: int
    networks: int
    runs: tuple[Run, ...]


def trained(
    activation: str,
    block: Block,
    starts: list[tuple[Start, float]],  # each with the factor of its inputs
    depth: int,
    width: int,
    rows: np.ndarray,
    targets: np.ndarray,
    optimizer: str,
    stable: float,
    seed: int,
) -> Training:
    """Trains networks of at most `BASE_WIDTH` neurons per layer on at most 128 `rows` (n, d) or (n, tokens, d)."""
    tokens = rows.shape[1] if block.attends else 0
    most = max(_TOKENS // tokens, 16) if tokens else _ROWS
    width, x, y = min(width, BASE_WIDTH), rows[:most], targets[:most]
    rates = stable * _GD_RATES if optimizer == "gd" else _ADAM_RATES
    s, runs = nk.activations.get(activation), []
    with jax.enable_x64(True):
        for start, scale in starts:
            losses = np.stack(
                [
                    np.asarray(
                        _losses(
                            s,
                            (block.norm, block.skip),
                            optimizer,
                            drawn(
                                start, jax.random.key(seed + i), x.shape[-1], width, depth, y.shape[1], tokens
                            ),
                            jnp.asarray(scale * x),
                            jnp.asarray(y),
                            jnp.asarray(rates),
                        )
                    )
                    for i in range(_NETWORKS)
                ]
            )  # (networks, rates, before and after)
            ends = np.where(np.isfinite(losses[:, :, 1]), losses[:, :, 1], np.inf)
            best = int(ends.mean(axis=0).argmin())
            finite = np.isfinite(ends[:, best]).all()
            error = float(ends[:, best].std(ddof=1) / _NETWORKS**0.5) if finite else np.inf
            before = float(losses[:, 0, 0].mean())
            runs.append(Run(start.name, before, float(ends[:, best].mean()), error, float(rates[best])))
    return Training(optimizer, _STEPS, len(x), width, _NETWORKS, tuple(runs))


def drawn(
    start: Start, key: Any, in_dim: int, width: int, depth: int, out_dim: int, tokens: int = 0
) -> dict[str, Any]:
    """Parameters of one network: a first layer, stacked hidden ones, an output; of `tokens`, where each stands."""
    (first, hidden, last), law = jax.random.split(key, 3), LAWS[start.law]
    inner = start.variances(width, width)

    def one(key):
        if tokens:
            return transformer.drawn_block(law, key, width, start.attention(width), inner)
        return drawn_layer(law, key, width, width, *inner)

    found = {
        "first": drawn_layer(law, first, in_dim, width, *start.first(in_dim, width)),
        "hidden": jax.vmap(one)(jax.random.split(hidden, depth - 1)),
        "last": drawn_layer(law, last, width, out_dim, *start.first(width, out_dim)),
    }
    return found | ({"position": jnp.zeros((tokens, width))} if tokens else {})


def outputs(activation: Any, kind: tuple[bool, bool], params: dict[str, Any], x: Any) -> Any:
    """Outputs (n, out) of a network of blocks; of tokens (n, tokens, d), those of a transformer's mean token."""
    norm, skip = kind
    z = through(params["first"], x)
    if "position" in params:
        step = lambda z, layers: (transformer.block(activation, layers, z), None)
        z, _ = jax.lax.scan(step, z + params["position"], params["hidden"])
        return through(params["last"], transformer.normalized(z).mean(axis=1))
    head = (lambda z: activation(transformer.normalized(z))) if norm else activation
    z, _ = jax.lax.scan(lambda z, layer: (skip * z + through(layer, head(z)), None), z, params["hidden"])
    return through(params["last"], head(z))


@functools.partial(jax.jit, static_argnums=(1, 2))
def _losses(activation, kind, optimizer: str, params, x, y, rates):
    """Losses (rates, 2) before and after training."""
    params = jax.tree.map(lambda a: a.astype(x.dtype), params)

    def loss(params):
        return 0.5 * ((outputs(activation, kind, params, x) - y) ** 2).sum(axis=1).mean()

    def run(rate):
        adam = nk.Adam(1.0, _STEPS)

        def step(state, count):
            params, *means = state
            slope = jax.grad(loss)(params)
            if optimizer == "gd":
                return (jax.tree.map(lambda p, g: p - rate * g, params, slope), *means), None
            first, second = means
            first = jax.tree.map(lambda m, g: adam.beta1 * m + (1 - adam.beta1) * g, first, slope)
            second = jax.tree.map(lambda m, g: adam.beta2 * m + (1 - adam.beta2) * g**2, second, slope)
            moved = lambda p, m, v: p - rate * adam.direction((m, v), count)
            return (jax.tree.map(moved, params, first, second), first, second), None

        zeros = jax.tree.map(jnp.zeros_like, params)
        (end, *_), _ = jax.lax.scan(step, (params, zeros, zeros), jnp.arange(_STEPS))
        return jnp.stack([loss(params), loss(end)])

    return jax.lax.map(run, rates)
