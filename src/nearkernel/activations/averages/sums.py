"""Power series whose coefficients are products of two rows' data."""

import jax
import jax.numpy as jnp

from ..._base.types import Array

CHUNK = 32  # terms of a pass
FEW = (16, 32, 64)  # terms, where inputs are far from parallel


def sums(tail1: Array, tail2: Array, w: Array) -> tuple[Array, Array]:
    """sum_j t1_j t2_j w^j and its derivative by w: of the terms that the largest |w| does not make rounding errors.

    Coefficients are those of a function of finite energy, so what is left out after k terms is below |w|^k of it.
    """
    sizes = [size for size in FEW if size < len(tail1)]
    if not sizes:
        return _horner(tail1, tail2, w)
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(w), initial=0.0))
    rounding = float(jnp.finfo(w.dtype).eps) / 16
    more = sum((largest**size > rounding).astype(jnp.int32) for size in sizes)
    ways = [lambda size=size: _horner(tail1[:size], tail2[:size], w) for size in (*sizes, len(tail1))]
    return jax.lax.switch(more, ways)


def _horner(tail1: Array, tail2: Array, w: Array) -> tuple[Array, Array]:
    """The same of all terms; in passes that are long against reading and writing their results."""

    def run(carry, parts):
        value, slope = carry
        part1, part2 = parts
        for j in range(len(part1) - 1, -1, -1):
            slope = slope * w + value
            value = value * w + part1[j] * part2[j]
        return (value, slope), None

    start = (jnp.zeros_like(w), jnp.zeros_like(w))
    if len(tail1) <= CHUNK:
        return run(start, (tail1, tail2))[0]
    apart = [tail.reshape(-1, CHUNK, *tail.shape[1:]) for tail in (tail1, tail2)]
    return jax.lax.scan(run, start, tuple(apart), reverse=True)[0]
