"""The verb `measure`: averages over initializations by drawing them, with their errors."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._check import whole
from .._memory import cores, parse_bytes
from .._precision import in_float64
from .._threads import in_order
from ..models import AbstractModel


class Estimate(eqx.Module):
    """A mean over `size` independent draws with its standard error; each a tree like the observable."""

    mean: Any
    sem: Any
    size: int = eqx.field(static=True)

    def agrees(self, theory: Any, sigmas: float = 4.0) -> bool:
        """Whether every entry of `theory` is within `sigmas` standard errors (and rounding) of the mean."""
        return bool(np.all(np.abs(self.deviation(theory)) <= sigmas))

    def deviation(self, theory: Any) -> np.ndarray:
        """(mean - theory) in standard errors, all entries of the tree in one flat array."""
        pairs = zip(*(jax.tree.leaves(tree) for tree in (self.mean, self.sem, theory)), strict=True)
        flat = []
        for mean, sem, value in pairs:
            rounding = 1e-14 * (np.abs(mean) + np.abs(value)) + 1e-300
            flat.append(np.ravel((mean - np.asarray(value)) / np.maximum(sem, rounding)))
        return np.concatenate(flat)


@in_float64
def measure(
    observable: Callable[[Any], Any],
    net: AbstractModel,
    size: int,
    key: jax.Array,
    *,
    memory: "str | int" = "512MiB",
) -> Estimate:
    """The average of `observable(params)` over `size` draws of `net.init`, and its standard error.

    **Arguments:** `observable`, a JAX function of the parameters that returns an array or a tree of arrays; it may
    call `nk.simulate`; `key`, the same key gives the same draws; `memory`, what a chunk of draws may take.

    Draws are made, observed and forgotten chunk by chunk: memory does not grow with `size`.
    """
    size = whole(size, "size", 2)
    budget = parse_bytes(memory)

    def one(index):
        return jax.tree.map(jnp.asarray, observable(net.init(jax.random.fold_in(key, index))))

    params = jax.eval_shape(net.init, key)
    result = jax.eval_shape(one, jax.ShapeDtypeStruct((), jnp.uint32))
    param_bytes = sum(8 * leaf.size for leaf in jax.tree.leaves(params))
    result_bytes = sum(8 * leaf.size for leaf in jax.tree.leaves(result))
    threads = min(cores(), size)
    together = int(
        np.clip(_CACHE // max(param_bytes, 1), 1, 64)
    )  # small networks side by side, large ones in turn
    together = int(np.clip(budget // (8 * threads * max(param_bytes, 1)), 1, together))
    together = min(together, -(-size // threads))
    most = -(-min(-(-size // threads), 4096) // together)
    chunk = together * int(np.clip(budget // (4 * threads * together * max(result_bytes, 1)), 1, most))
    first = np.arange(chunk, dtype=np.uint32)
    draw = jax.jit(lambda indices: jax.lax.map(one, indices, batch_size=together)).lower(first).compile()

    def observed(start: int) -> Any:
        m = min(chunk, size - start)  # the last chunk is drawn whole too: one shape, one compilation
        with jax.enable_x64(True):  # thread-local: each task opens its own
            drawn = draw(start + first)
        return jax.tree.map(lambda leaf: np.asarray(leaf[:m], dtype=np.float64), drawn)

    count, mean, squares = 0, None, None
    for values in in_order(observed, range(0, size, chunk), threads):
        m = min(chunk, size - count)
        if mean is None:
            mean = jax.tree.map(lambda v: np.zeros(v.shape[1:]), values)
            squares = jax.tree.map(lambda v: np.zeros(v.shape[1:]), values)
        own = jax.tree.map(lambda v: v.mean(axis=0), values)
        squares = jax.tree.map(
            lambda s, v, o, a, m=m, c=count: s + ((v - o) ** 2).sum(axis=0) + (o - a) ** 2 * (c * m / (c + m)),
            squares, values, own, mean,
        )  # fmt: skip
        mean = jax.tree.map(lambda a, o, m=m, c=count: a + (o - a) * (m / (c + m)), mean, own)
        count += m
    sem = jax.tree.map(lambda s: np.sqrt(s / (size * (size - 1.0))), squares)
    return Estimate(mean=mean, sem=sem, size=size)


_CACHE = 2**20  # parameters that stay in a core's cache
