"""Gathering and scattering by integers."""

import jax
import jax.numpy as jnp

from .table import operation


def _indices(indices):
    return tuple(slice(None) if index is None else index for index in indices)


@operation("index.Tensor", "_unsafe_index.Tensor")
def index(x, indices):
    return x[_indices(indices)]


@operation("index_put", "_unsafe_index_put")
def index_put(x, indices, values, accumulate=False):
    place = x.at[_indices(indices)]
    return place.add(values) if accumulate else place.set(values)


@operation("index_select")
def index_select(x, dim, index):
    return jnp.take(x, index, axis=dim) if x.ndim else x


@operation("index_add")
def index_add(x, dim, index, source, alpha=1):
    moved, source = jnp.moveaxis(x, dim, 0), jnp.moveaxis(source, dim, 0)
    return jnp.moveaxis(moved.at[index].add(alpha * source), 0, dim)


@operation("embedding")
def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """Rows of `weight`; that of `padding_idx` does not train."""
    rows = weight[indices]
    if padding_idx < 0:
        return rows
    return jnp.where((indices == padding_idx)[..., None], jax.lax.stop_gradient(rows), rows)


def _places(x, dim, index):
    """Along `dim` the given places, along all others every place that `index` reaches."""
    grid = jnp.meshgrid(*(jnp.arange(size) for size in index.shape), indexing="ij", sparse=True)
    grid[dim % x.ndim] = index
    return tuple(grid)


@operation("gather")
def gather(x, dim, index, sparse_grad=False):
    return x[_places(x, dim, index)] if x.ndim else x


@operation("scatter.src", "scatter.value")
def scatter(x, dim, index, src):
    return x.at[_places(x, dim, index)].set(_part(src, index))


@operation("scatter_add")
def scatter_add(x, dim, index, src):
    return x.at[_places(x, dim, index)].add(_part(src, index))


def _part(src, index):
    """As much of `src` as there are places."""
    return src[tuple(slice(0, size) for size in index.shape)] if jnp.ndim(src) else src


@operation("scatter_reduce.two", kinked=True)
def scatter_reduce(x, dim, index, src, reduce, include_self=True):
    places, src = _places(x, dim, index), _part(src, index)
    if not include_self:
        neutral = {"sum": 0, "mean": 0, "prod": 1, "amax": -jnp.inf, "amin": jnp.inf}[reduce]
        x = x.at[places].set(neutral)
    if reduce == "mean":
        count = jnp.ones(x.shape).at[places].set(1.0 if include_self else 0.0).at[places].add(1.0)
        return x.at[places].add(src) / count
    names = {"sum": "add", "prod": "multiply", "amax": "max", "amin": "min"}
    return getattr(x.at[places], names[reduce])(src)


@operation("masked_scatter")
def masked_scatter(x, mask, source):
    """Entries of `source`, one after the other, where `mask` is true."""
    mask = jnp.broadcast_to(mask, x.shape)
    which = jnp.cumsum(mask.reshape(-1)) - 1
    return jnp.where(mask, source.reshape(-1)[jnp.maximum(which, 0)].reshape(x.shape), x)


@operation("bucketize.Tensor")
def bucketize(x, boundaries, out_int32=False, right=False):
    return jnp.searchsorted(boundaries, x, side="right" if right else "left")


@operation("searchsorted.Tensor")
def searchsorted(sorted_sequence, x, out_int32=False, right=False, side=None, sorter=None):
    side = "right" if right or side == "right" else "left"
    if sorted_sequence.ndim == 1:
        return jnp.searchsorted(sorted_sequence, x, side=side)
    rows = jax.vmap(lambda row, values: jnp.searchsorted(row, values, side=side))
    return rows(sorted_sequence.reshape(-1, sorted_sequence.shape[-1]), x.reshape(-1, x.shape[-1])).reshape(
        x.shape
    )
