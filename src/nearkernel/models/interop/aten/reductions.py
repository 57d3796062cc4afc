"""Sums, means, extremes, orders and scans."""

import jax
import jax.numpy as jnp
import jax.scipy.special as special
import numpy as np

from .table import enter_all, operation


def axes(x, dim):
    """`dim` of PyTorch as axes: None or nothing is all of them."""
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return tuple(range(x.ndim))
    return tuple(dim) if isinstance(dim, list | tuple) else (dim,)


def _over_axes(function):
    return lambda x, dim=None, keepdim=False: function(x, axis=axes(x, dim), keepdims=keepdim)


def _over_one(function):
    def applied(x, dim=None, keepdim=False):
        return function(x, axis=dim, keepdims=keepdim)

    return applied


enter_all(
    {
        "all": _over_axes(jnp.all),
        "any": _over_axes(jnp.any),
        "argmax": _over_one(jnp.argmax),
        "argmin": _over_one(jnp.argmin),
        "count_nonzero": lambda x, dim=None: jnp.count_nonzero(x, axis=axes(x, dim)),
        "cumprod": lambda x, dim: jnp.cumprod(x, axis=dim) if x.ndim else x,
        "cumsum": lambda x, dim: jnp.cumsum(x, axis=dim) if x.ndim else x,
        "logcumsumexp": lambda x, dim: jax.lax.cumlogsumexp(x, axis=dim % x.ndim) if x.ndim else x,
        "logsumexp": lambda x, dim, keepdim=False: special.logsumexp(x, axes(x, dim), keepdims=keepdim),
        "mean": _over_axes(jnp.mean),
        "prod": _over_axes(jnp.prod),
        "sum": _over_axes(jnp.sum),
    }
)
enter_all(
    {
        "amax": _over_axes(jnp.max),
        "amin": _over_axes(jnp.min),
        "max": _over_axes(jnp.max),
        "min": _over_axes(jnp.min),
    },
    kinked=True,
)


def _extreme(choose):
    """The extreme entries along one dimension, and where they are; a derivative goes to the first of equals."""

    def found(x, dim, keepdim=False):
        if x.ndim == 0:
            return x, jnp.zeros((), jnp.int64)
        index = choose(x, axis=dim, keepdims=True)
        values = jnp.take_along_axis(x, index, axis=dim)
        return (values, index) if keepdim else (jnp.squeeze(values, dim), jnp.squeeze(index, dim))

    return found


enter_all({"max.dim": _extreme(jnp.argmax), "min.dim": _extreme(jnp.argmin)}, kinked=True)


def _divisor(x, dim, correction):
    count = int(np.prod([x.shape[axis] for axis in axes(x, dim)]))
    return max(count - (1 if correction is None else correction), 0)


def variance(x, dim=None, correction=None, keepdim=False):
    centered = x - jnp.mean(x, axis=axes(x, dim), keepdims=True)
    total = jnp.sum(centered * centered, axis=axes(x, dim), keepdims=keepdim)
    return jnp.divide(total, _divisor(x, dim, correction))


operation("var.correction")(variance)


@operation("var.dim")
def variance_along(x, dim, unbiased=True, keepdim=False):
    return variance(x, dim, int(unbiased), keepdim)


@operation("std.correction")
def deviation(x, dim=None, correction=None, keepdim=False):
    return jnp.sqrt(variance(x, dim, correction, keepdim))


@operation("var_mean.correction")
def variance_and_mean(x, dim=None, correction=None, keepdim=False):
    return variance(x, dim, correction, keepdim), jnp.mean(x, axis=axes(x, dim), keepdims=keepdim)


@operation("linalg_vector_norm", kinked=True)
def vector_norm(x, ord=2, dim=None, keepdim=False):
    """At 0 its derivative is 0, as in PyTorch."""
    along = {"axis": axes(x, dim), "keepdims": keepdim}
    size = x * jnp.sign(x) if jnp.issubdtype(x.dtype, jnp.floating) else jnp.abs(x)
    if ord == np.inf:
        return jnp.max(size, **along)
    if ord == -np.inf:
        return jnp.min(size, **along)
    if ord == 0:
        return jnp.sum(size != 0, **along).astype(x.dtype)
    if ord == 1:
        return jnp.sum(size, **along)
    powers = jnp.sum(size * size if ord == 2 else size**ord, **along)
    zero = powers == 0
    safe = jnp.where(zero, 1.0, powers)
    return jnp.where(zero, 0.0, jnp.sqrt(safe) if ord == 2 else safe ** (1 / ord))


def _sorted(x, dim, descending, stable=True):
    index = jnp.argsort(x, axis=dim, descending=descending, stable=stable)
    return jnp.take_along_axis(x, index, axis=dim), index


@operation("sort.default", kinked=True)
def sort(x, dim=-1, descending=False):
    return _sorted(x, dim, descending)


@operation("sort.stable", kinked=True)
def stable_sort(x, *, stable=True, dim=-1, descending=False):
    return _sorted(x, dim, descending)


@operation("topk", kinked=True)
def top(x, k, dim=-1, largest=True, sorted=True):
    values, index = _sorted(x, dim, descending=largest)
    first = lambda a: jax.lax.slice_in_dim(a, 0, k, axis=dim % x.ndim)
    return first(values), first(index)


@operation("kthvalue", kinked=True)
def kth_value(x, k, dim=-1, keepdim=False):
    values, index = _sorted(x, dim, descending=False)
    pick = lambda a: jax.lax.index_in_dim(a, k - 1, dim % x.ndim, keepdims=keepdim)
    return pick(values), pick(index)


@operation("median.dim", kinked=True)
def median(x, dim, keepdim=False):
    return kth_value(x, (x.shape[dim] + 1) // 2, dim, keepdim)


@operation("median.default", kinked=True)
def median_of_all(x):
    return kth_value(x.reshape(-1), (x.size + 1) // 2)[0]


@operation("cummax", kinked=True)
def running_maximum(x, dim):
    return _running(x, dim, jnp.greater_equal)


@operation("cummin", kinked=True)
def running_minimum(x, dim):
    return _running(x, dim, jnp.less_equal)


def _running(x, dim, better):
    """The last of equals, as in PyTorch."""
    axis = dim % x.ndim
    places = jnp.broadcast_to(jnp.expand_dims(jnp.arange(x.shape[axis]), _others(x, axis)), x.shape)

    def later(left, right):
        choose = better(right[0], left[0])
        return jnp.where(choose, right[0], left[0]), jnp.where(choose, right[1], left[1])

    index = jax.lax.associative_scan(later, (jax.lax.stop_gradient(x), places), axis=axis)[1]
    return jnp.take_along_axis(x, index, axis=axis), index


def _others(x, axis):
    return tuple(other for other in range(x.ndim) if other != axis)
