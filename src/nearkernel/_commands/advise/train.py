"""`nearkernel advise --train`: short runs from each initialization, several seeds, each with the best of a few rates.

All seeds train in one compiled program. The rate is chosen on rows that are neither trained on nor tested on.
"""

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
from .flow import LAWS, drawn_layer, orthogonal_weights, through
from .starts import Start

BASE_WIDTH = 64  # networks are at most this wide; muP carries Adam's rates to others
STEPS, BATCH, GD_ROWS = 100, 64, 128
SIGMAS = 3.0  # a difference in standard errors below which two initializations are as good as each other
_TOKENS, _SEQUENCES = 128, 8  # of all sequences of a batch, but at least so many sequences
GD_RATES = (0.125, 0.5, 2.0, 8.0, 32.0)  # times the stable rate of the advised network
ADAM_RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)


@dataclasses.dataclass(frozen=True)
class Run:
    """From one initialization with its best rate: the score on test rows, its standard error over seeds, all scores."""

    name: str
    score: float
    error: float
    rate: float
    scores: tuple[float, ...]
    advised: bool


@dataclasses.dataclass(frozen=True)
class Training:
    """`runs` from all initializations. A score is the share of rows that are right or, without classes, of the variance
    that is explained; a run that diverges, or does worse than the mean, has 0."""

    optimizer: str
    steps: int
    rows: int  # trained on; as many as `test_rows` choose the rate
    test_rows: int
    batch: int
    width: int
    classes: bool
    rates: tuple[float, ...]
    runs: tuple[Run, ...]

    @property
    def strongest(self) -> Run:
        """The best of what practitioners do."""
        return max((run for run in self.runs if not run.advised), key=lambda run: run.score)


def gap(one: Run, other: Run) -> tuple[float, float, float]:
    """By how much the score of `one` is larger, its standard error, and the former in units of the latter."""
    difference, error = one.score - other.score, float(np.hypot(one.error, other.error))
    return difference, error, difference / error if error else float(np.sign(difference)) * np.inf


def trained(
    activation: str,
    block: Block,
    starts: list[tuple[Start, float]],  # each with the factor of its inputs
    depth: int,
    width: int,
    rows: np.ndarray,
    targets: np.ndarray,
    classes: bool,
    optimizer: str,
    stable: float,
    seed: int,
    seeds: int,
    rates: tuple[float, ...] = (),
) -> Training:
    """Trains `seeds` networks per start and rate (of a grid, if none are given) on `rows` (n, d) or (n, tokens, d) with
    targets (n, out)."""
    tokens = rows.shape[1] if block.attends else 0
    x, y = rows.astype(np.float32), targets.astype(np.float32)
    order, held = np.random.default_rng(seed).permutation(len(x)), max(len(x) // 5, 1)
    parts = np.split(order, [held, 2 * held])  # to choose the rate, to test, to train
    kept = parts[2][:GD_ROWS] if optimizer == "gd" else parts[2]
    batch = len(kept) if optimizer == "gd" else min(BATCH, len(kept))
    batch = min(batch, max(_TOKENS // tokens, _SEQUENCES)) if tokens else batch
    kept = kept[:batch] if optimizer == "gd" else kept
    rates = rates or (tuple(stable * r for r in GD_RATES) if optimizer == "gd" else ADAM_RATES)
    keys = jax.random.split(jax.random.key(seed), seeds)
    batches = jax.vmap(lambda key: _batches(key, len(kept), batch))(keys)
    s, runs = nk.activations.get(activation), []
    for start, scale in starts:
        params = drawn(start, keys, x.shape[-1], width, depth, y.shape[1], tokens)
        scores = np.asarray(
            _scores(
                s,
                (block.norm, block.skip, optimizer, classes),
                params,
                [(scale * x[part], y[part]) for part in (kept, *parts[:2])],
                batches,
                jnp.asarray(rates, jnp.float32),
            ),
            np.float64,
        )  # (rates, seeds, 2)
        scores = np.maximum(np.where(np.isfinite(scores), scores, 0.0), 0.0)
        best = int(scores[:, :, 0].mean(axis=1).argmax())
        test = scores[best, :, 1]
        error = float(test.std(ddof=1) / seeds**0.5)
        runs.append(
            Run(start.name, float(test.mean()), error, float(rates[best]), tuple(test), start.advised)
        )
    return Training(optimizer, STEPS, len(kept), held, batch, width, classes, rates, tuple(runs))


def _batches(key, rows: int, batch: int):
    """(steps, batch) rows; all rows in every step if they are one batch."""
    if batch == rows:
        return jnp.tile(jnp.arange(rows), (STEPS, 1))
    return jax.vmap(lambda key: jax.random.choice(key, rows, (batch,), replace=False))(
        jax.random.split(key, STEPS)
    )


def drawn(
    start: Start, keys: jax.Array, in_dim: int, width: int, depth: int, out_dim: int, tokens: int = 0
) -> dict[str, Any]:
    """Parameters, of one network per key: a first layer, stacked hidden ones, an output; places of `tokens`."""
    law, inner = LAWS[start.law], start.variances(width, width)
    shapes = ((in_dim, width), (width, width), (width, out_dim))
    variances = (start.first(in_dim, width), inner, start.first(width, out_dim))

    def hidden(key):
        if tokens:
            return transformer.drawn_block(law, key, width, start.attention(width), inner, start.after)
        return drawn_layer(law, key, width, width, *inner)

    def network(key):
        first, middle, last = jax.random.split(key, 3)
        return {
            "first": drawn_layer(law, first, *shapes[0], *variances[0]),
            "hidden": jax.vmap(hidden)(jax.random.split(middle, depth - 1)),
            "last": drawn_layer(law, last, *shapes[2], *variances[2]),
        }

    found = jax.vmap(network)(keys)
    if start.law == "orthogonal":
        rng = np.random.default_rng(np.asarray(jax.random.key_data(keys)).ravel())
        for name, shape, (weight_var, _) in zip(found, shapes, variances, strict=True):
            old = found[name]["weight"]
            count = int(np.prod(old.shape[:-2]))
            new = weight_var**0.5 * orthogonal_weights(rng, count, *shape).reshape(old.shape)
            found[name] = found[name] | {"weight": jnp.asarray(new, old.dtype)}
    return found | ({"position": jnp.zeros((len(keys), tokens, width))} if tokens else {})


def outputs(activation: Any, kind: tuple[bool, bool], params: dict[str, Any], x: jax.Array) -> jax.Array:
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


def loss_and_score(classes: bool, z: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Cross-entropy and the share of rows that are right; or 1/2 mean (z - y)^2 and the share of variance explained."""
    if classes:
        right = y.argmax(axis=1)
        log_p = jax.nn.log_softmax(z)
        loss = -jnp.take_along_axis(log_p, right[:, None], axis=1).mean()
        return loss, jnp.where(jnp.isfinite(loss), jnp.mean(z.argmax(axis=1) == right), 0.0)
    loss = 0.5 * ((z - y) ** 2).sum(axis=1).mean()
    return loss, 1 - 2 * loss / y.var(axis=0).sum()


@functools.partial(jax.jit, static_argnums=1)
def _scores(activation, kind, params, parts, batches, rates):
    """Scores (rates, seeds, 2) on two parts after training on the first."""
    norm, skip, optimizer, classes = kind
    (x, y), *others = parts
    adam = nk.Adam(1.0, STEPS)

    def run(rate, params, batches):
        params = jax.tree.map(lambda a: a.astype(x.dtype), params)

        def loss(params, batch):
            return loss_and_score(classes, outputs(activation, (norm, skip), params, x[batch]), y[batch])[0]

        def step(state, now):
            (params, *means), (count, batch) = state, now
            slope = jax.grad(loss)(params, batch)
            if optimizer == "gd":
                return (jax.tree.map(lambda p, g: p - rate * g, params, slope), *means), None
            first, second = means
            first = jax.tree.map(lambda m, g: adam.beta1 * m + (1 - adam.beta1) * g, first, slope)
            second = jax.tree.map(lambda m, g: adam.beta2 * m + (1 - adam.beta2) * g**2, second, slope)
            moved = lambda p, m, v: (p - rate * adam.direction((m, v), count)).astype(p.dtype)
            return (jax.tree.map(moved, params, first, second), first, second), None

        zeros = jax.tree.map(jnp.zeros_like, params)
        (end, *_), _ = jax.lax.scan(step, (params, zeros, zeros), (jnp.arange(STEPS), batches))
        return jnp.stack(
            [loss_and_score(classes, outputs(activation, (norm, skip), end, x), y)[1] for x, y in others]
        )

    return jax.lax.map(lambda rate: jax.vmap(run, (None, 0, 0))(rate, params, batches), rates)
