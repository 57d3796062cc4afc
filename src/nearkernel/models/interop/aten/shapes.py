"""Operations that move entries without changing them, and symbolic sizes."""

import builtins
import math
import operator

import jax
import jax.numpy as jnp

from .table import OPERATIONS, enter_all, operation

enter_all({name: lambda x: x for name in ("_to_copy", "alias", "clone")})
enter_all(
    {
        "flip": lambda x, dims: jnp.flip(x, tuple(dims)),
        "permute": lambda x, dims: jnp.transpose(x, tuple(dims)),
        "repeat": lambda x, repeats: jnp.tile(x, tuple(repeats)),
        "stop_gradient": jax.lax.stop_gradient,
        "t": jnp.transpose,
        "transpose.int": lambda x, dim0, dim1: jnp.swapaxes(x, dim0, dim1),
        "unsqueeze": lambda x, dim: jnp.expand_dims(x, dim),
        "diagonal": lambda x, offset=0, dim1=0, dim2=1: jnp.diagonal(x, offset, dim1, dim2),
    }
)

# Sizes are integers by the time a program runs: JAX traces it for one batch size.
enter_all(
    {
        "sym_size.int": lambda x, dim: x.shape[dim],
        "sym_numel": lambda x: x.size,
        "sym_int": int,
        "sym_float": float,
        "sym_max": max,
        "sym_min": min,
        "sym_not": operator.not_,
        "sym_sum": sum,
        "sym_ite": lambda condition, yes, no: yes if condition else no,
        "getitem": lambda values, index: values[index],
    }
)
# Python's own operators on sizes have names of their own, "python.add": ATen has an "add" too.
enter_all(
    {
        f"python.{name}": getattr(module, name)
        for module, names in (
            (operator, "add sub mul truediv floordiv mod pow neg eq ne lt le gt ge and_ or_ not_"),
            (math, "ceil floor trunc"),
            (builtins, "max min abs round int float bool"),
        )
        for name in names.split()
    }
)


@operation("view", "_unsafe_view")
def reshape(x, size):
    return jnp.reshape(x, tuple(size))


@operation("expand")
def expand(x, size, implicit=False):
    kept = (None,) * (len(size) - x.ndim) + x.shape
    return jnp.broadcast_to(x, tuple(k if s == -1 else s for s, k in zip(size, kept, strict=True)))


@operation("squeeze.dims", "squeeze.dim")
def squeeze(x, dim):
    """`dim` has only dimensions whose size is 1 for every batch: a batch of one keeps its dimension."""
    return jnp.squeeze(x, tuple(dim))


@operation("slice.Tensor")
def cut(x, dim=0, start=None, end=None, step=1):
    return x[(*_all_before(x, dim), slice(start, end, step))]


@operation("select.int")
def select(x, dim, index):
    return x[(*_all_before(x, dim), index)]


@operation("slice_scatter")
def slice_scatter(x, src, dim=0, start=None, end=None, step=1):
    return x.at[(*_all_before(x, dim), slice(start, end, step))].set(src)


@operation("select_scatter")
def select_scatter(x, src, dim, index):
    return x.at[(*_all_before(x, dim), index)].set(src)


@operation("diagonal_scatter")
def diagonal_scatter(x, src, offset=0, dim1=0, dim2=1):
    moved = jnp.moveaxis(x, (dim1, dim2), (-2, -1))
    count = src.shape[-1]
    rows, columns = jnp.arange(count) + max(-offset, 0), jnp.arange(count) + max(offset, 0)
    return jnp.moveaxis(moved.at[..., rows, columns].set(src), (-2, -1), (dim1, dim2))


def _all_before(x, dim):
    return (slice(None),) * (dim % x.ndim)


@operation("cat")
def concatenate(tensors, dim=0):
    full = [tensor for tensor in tensors if tensor.shape != (0,)]  # which PyTorch lets pass for any shape
    return jnp.concatenate(full, axis=dim) if full else tensors[0]


@operation("stack")
def stack(tensors, dim=0):
    return jnp.stack(tensors, axis=dim)


@operation("split_with_sizes")
def split(x, split_sizes, dim=0):
    ends = [sum(split_sizes[: k + 1]) for k in range(len(split_sizes))]
    return tuple(
        jax.lax.slice_in_dim(x, end - size, end, axis=dim % x.ndim)
        for size, end in zip(split_sizes, ends, strict=True)
    )


@operation("unbind.int")
def unbind(x, dim=0):
    return tuple(select(x, dim, index) for index in range(x.shape[dim]))


@operation("roll")
def roll(x, shifts, dims=()):
    return jnp.roll(x, tuple(shifts), tuple(dims)) if dims else jnp.roll(x, shifts[0])


@operation("copy")
def copy(x, src, non_blocking=False):
    return jnp.broadcast_to(src, x.shape)


@operation("unfold")
def unfold(x, dimension, size, step):
    """Windows along one dimension, as a new last dimension."""
    dimension = dimension % x.ndim
    starts = jnp.arange((x.shape[dimension] - size) // step + 1) * step
    windows = jnp.take(x, starts[:, None] + jnp.arange(size), axis=dimension)
    return jnp.moveaxis(windows, dimension + 1, -1)


@operation("constant_pad_nd")
def pad(x, pad, value=0):
    """`pad` counts from the last dimension; what is negative is cut off."""
    config = [(0, 0, 0)] * (x.ndim - len(pad) // 2)
    config += [(low, high, 0) for low, high in zip(pad[-2::-2], pad[::-2], strict=True)]
    return jax.lax.pad(x, jnp.asarray(value, x.dtype), config)


def _padded_by(indices):
    """Padding that repeats entries: `indices(size, low, high)` says which."""

    def padded(x, padding):
        pairs = zip(padding[::2], padding[1::2], strict=True)
        for axis, (low, high) in zip(range(x.ndim - 1, -1, -1), pairs, strict=False):
            x = jnp.take(x, indices(x.shape[axis], low, high), axis=axis)
        return x

    return padded


def _reflected(size, low, high):
    position = jnp.abs(jnp.arange(-low, size + high))
    return jnp.where(position >= size, 2 * (size - 1) - position, position)


def _replicated(size, low, high):
    return jnp.clip(jnp.arange(-low, size + high), 0, size - 1)


for _dimensions in (1, 2, 3):
    OPERATIONS[f"reflection_pad{_dimensions}d"] = _padded_by(_reflected)
    OPERATIONS[f"replication_pad{_dimensions}d"] = _padded_by(_replicated)
