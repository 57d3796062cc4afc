"""`measure`: averages over random initializations, with their standard errors."""

import operator
from collections.abc import Callable, Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._base.check import array_of, numeric, observed, positive, shown, whole
from .._base.keys import Key, random_key
from .._base.result import Result
from .._run.executor import AbstractJob, on_cluster, run, workers
from .._run.memory import parse_bytes
from .._run.precision import in_float64
from .._run.progress import watched
from ..models.base import AbstractModel, require_model


class Estimate(Result, eqx.Module):
    """The `mean` over `size` independent draws and its standard error `sem`; each a tree like the observable."""

    mean: Any
    sem: Any
    size: int = eqx.field(static=True)

    def agrees(self, theory: Any, sigmas: float = 4.0) -> bool:
        """Whether every entry of `theory` is within `sigmas` standard errors (and rounding) of the mean."""
        sigmas = positive(sigmas, "sigmas", zero=True, finite=False)
        return bool(np.all(np.abs(self.deviation(theory)) <= sigmas))

    def deviation(self, theory: Any) -> np.ndarray:
        """The difference mean - `theory` in standard errors, with all entries of the tree in one flat array."""
        means, sems, values = (jax.tree.leaves(tree) for tree in (self.mean, self.sem, theory))
        if len(values) != len(means):
            raise ValueError(
                f"`theory` must be a tree like `mean`, of {len(means)} arrays; got {shown(theory)}."
            )
        flat = []
        for mean, sem, given in zip(means, sems, values, strict=True):
            value = numeric(given, "theory")
            if value.shape not in ((), np.shape(mean)):
                raise ValueError(
                    f"`theory` must have shape {np.shape(mean)}, or be one number; got {value.shape}."
                )
            rounding = 1e-14 * (np.abs(mean) + np.abs(value)) + 1e-300
            flat.append(np.ravel((mean - np.asarray(value)) / np.maximum(sem, rounding)))
        return np.concatenate(flat)


@in_float64
def measure(
    observable: Callable[[Any], Any],
    net: AbstractModel,
    size: int,
    key: Key,
    *,
    memory: "str | int" = "512MiB",
    scheduler: str | None = None,
) -> Estimate:
    """The mean of `observable(params)` over `size` draws of `net.init`, with its standard error.

    **Arguments:** `observable`, a JAX function of the parameters that returns an array or a tree of arrays; it may
    call `nk.simulate`; `net`, any model with `init`; `size`, number of draws; `key` (the same key gives the same
    draws); `memory`, the limit for a chunk of draws; `scheduler`, the address of a Dask scheduler, e.g.
    "tcp://10.0.0.1:8786", whose workers do the work.

    Draws are processed chunk by chunk, so memory does not grow with `size`. Ctrl-C at a prompt or in a notebook
    returns the estimate from the draws so far, and `size` is their number.
    """
    if not callable(observable):
        raise TypeError(f"`observable` must be a function of the parameters; got {shown(observable)}.")
    require_model(net, "net")
    size, key = whole(size, "size", 2), random_key(key)
    budget = parse_bytes(memory)
    with on_cluster(scheduler):
        threads = min(workers(), size)
        draw = _Draw(observable, net, key, size, *_chunk(observable, net, key, size, budget, threads))
        parts = run(draw, range(0, size, draw.chunk), threads)
        return _combined(watched("measure", size, parts, operator.itemgetter(0)))


def _one(observable: Callable[[Any], Any], net: AbstractModel, key: jax.Array) -> Callable[[Any], Any]:
    """The observable of the network number `index`."""

    def one(index):
        found = observed(observable, net.init(jax.random.fold_in(key, index)))
        return jax.tree.map(lambda leaf: array_of(leaf, "observable(params)"), found)

    return one


def _chunk(observable, net, key, size: int, budget: int, threads: int) -> tuple[int, int]:
    """Networks in a chunk, and how many of them side by side: small ones together, large ones in turn."""
    params = jax.eval_shape(net.init, key)
    result = jax.eval_shape(_one(observable, net, key), jax.ShapeDtypeStruct((), jnp.uint32))
    param_bytes, result_bytes = (sum(8 * leaf.size for leaf in jax.tree.leaves(t)) for t in (params, result))
    together = int(np.clip(_CACHE // max(param_bytes, 1), 1, 64))
    together = int(np.clip(budget // (threads * (8 * param_bytes + 4 * result_bytes)), 1, together))
    together = min(together, -(-size // threads))
    most = -(-min(-(-size // threads), 4096) // together)
    return together * int(
        np.clip(budget // (4 * threads * together * max(result_bytes, 1)), 1, most)
    ), together


class _Draw(AbstractJob[int]):
    """How a chunk of networks is drawn and observed."""

    def __init__(self, observable, net, key, size: int, chunk: int, together: int):
        self.observable, self.net = observable, net
        self.size, self.chunk, self.together = size, chunk, together
        typed = _typed(key)
        self._key, self._kind = np.asarray(jax.random.key_data(typed)), str(jax.random.key_impl(typed))

    def ready(self) -> Callable[[int], tuple[int, Any, Any]]:
        """(count, mean, sum of squares about the mean) of the chunk that begins at a network."""
        first = np.arange(self.chunk, dtype=np.uint32)

        @jax.jit
        def drawn(indices: jax.Array) -> Any:
            key = jax.random.wrap_key_data(jnp.asarray(self._key), impl=self._kind)
            return jax.lax.map(_one(self.observable, self.net, key), indices, batch_size=self.together)

        def summed(start: int) -> tuple[int, Any, Any]:
            count = min(self.chunk, self.size - start)
            found = drawn(start + first)  # the last chunk is drawn whole too: one shape, one compilation
            values = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64)[:count], found)
            mean = jax.tree.map(lambda v: v.mean(axis=0), values)
            return count, mean, jax.tree.map(lambda v, o: _squares(v - o), values, mean)

        return summed


def _squares(apart: np.ndarray) -> np.ndarray:
    return np.einsum("i...,i...->...", apart, apart)


def _typed(key: Any) -> jax.Array:
    """`key` as a typed one; raw uint32 keys are of the default kind."""
    return key if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else jax.random.wrap_key_data(key)


def _combined(parts: Iterable[tuple[int, Any, Any]]) -> Estimate:
    """Mean and standard error from those of the chunks, in their order."""
    parts = iter(parts)
    size, mean, squares = next(parts)
    for count, own, around in parts:
        apart = jax.tree.map(lambda a, o: o - a, mean, own)
        share = count / (size + count)
        squares = jax.tree.map(lambda s, r, d, w=size * share: s + r + d**2 * w, squares, around, apart)
        mean = jax.tree.map(lambda a, d, w=share: a + d * w, mean, apart)
        size += count
    sem = jax.tree.map(lambda s: np.sqrt(s / (size * (size - 1.0))), squares)
    return Estimate(mean=mean, sem=sem, size=size)


_CACHE = 2**20  # parameters that stay in a core's cache
