"""Tensors that are made in the program."""

import jax.numpy as jnp

from .table import enter_all, operation

enter_all(
    {
        "empty.memory_format": lambda size: jnp.zeros(tuple(size)),
        "empty_permuted": lambda size, physical_layout: jnp.zeros(tuple(size)),
        "fill": lambda x, value: jnp.broadcast_to(value, x.shape),
        "full": lambda size, fill_value: jnp.full(tuple(size), fill_value),
        "full_like": lambda x, fill_value: jnp.full(x.shape, fill_value),
        "scalar_tensor": lambda s: jnp.asarray(s),
        "eye": lambda n: jnp.eye(n),
        "eye.m": lambda n, m: jnp.eye(n, m),
        "tril_indices": lambda row, col, offset=0: jnp.stack(jnp.tril_indices(row, offset, col)),
        "triu_indices": lambda row, col, offset=0: jnp.stack(jnp.triu_indices(row, offset, col)),
    }
)


@operation("arange.start_step")
def arange(start, end, step=1):
    return jnp.arange(start, end, step)


@operation("linspace")
def linspace(start, end, steps):
    return jnp.linspace(start, end, steps)
