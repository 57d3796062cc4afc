"""Pooling in one, two and three dimensions, one dimension after the other.

A window is a few slices of the padded input, so that derivatives of every order exist. Among equal maxima the first
gets the derivative, as in PyTorch.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from .table import OPERATIONS, operation


def _each(value, count, default=None):
    value = list(value) if isinstance(value, list | tuple) else [value]
    if not value:
        return list(default)
    return value * count if len(value) == 1 else value


def _count(size, kernel, stride, padding, dilation, ceil_mode):
    """Windows along one dimension; with `ceil_mode` the last may stick out, but must start inside."""
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return room // stride + 1
    count = -(-room // stride) + 1
    return count - 1 if (count - 1) * stride >= size + padding else count


def _windows(x, axis, kernel, stride, padding, dilation, ceil_mode, fill):
    """One array for each place in the window: all first entries, all second ones, ..."""
    size = x.shape[axis]
    count = _count(size, kernel, stride, padding, dilation, ceil_mode)
    needed = (count - 1) * stride + dilation * (kernel - 1) + 1
    edges = [(0, 0, 0)] * x.ndim
    edges[axis] = (padding, max(needed - size - padding, 0), 0)
    x = jax.lax.pad(x, jnp.asarray(fill, x.dtype), edges)
    return [
        jax.lax.slice_in_dim(x, k * dilation, k * dilation + (count - 1) * stride + 1, stride, axis)
        for k in range(kernel)
    ]


def _larger(first, second):
    """Of two (values, places), entry by entry."""
    better = (second[0] > first[0]) | jnp.isnan(second[0])
    return jnp.where(better, second[0], first[0]), jnp.where(better, second[1], first[1])


def _max_pool(count):
    def pooled(x, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
        kernel = _each(kernel_size, count)
        stride = _each(stride, count, kernel)
        padding, dilation = _each(padding, count), _each(dilation, count)
        spatial = x.shape[-count:]
        places = jnp.broadcast_to(jnp.arange(math.prod(spatial)).reshape(spatial), x.shape)
        least = -jnp.inf if jnp.issubdtype(x.dtype, jnp.floating) else jnp.iinfo(x.dtype).min
        for k in range(count - 1, -1, -1):  # the last dimension first: rows decide among equals
            axis = x.ndim - count + k
            setting = (axis, kernel[k], stride[k], padding[k], dilation[k], ceil_mode)
            pairs = list(zip(_windows(x, *setting, least), _windows(places, *setting, 0), strict=True))
            x, places = pairs[0]
            for pair in pairs[1:]:
                x, places = _larger((x, places), pair)
        return x, places

    return pooled


def _average_pool(count):
    def pooled(
        x,
        kernel_size,
        stride=(),
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    ):
        kernel = _each(kernel_size, count)
        stride, padding = _each(stride, count, kernel), _each(padding, count)
        for k in range(count):
            axis = x.ndim - count + k
            size = x.shape[axis]
            x = sum(_windows(x, axis, kernel[k], stride[k], padding[k], 1, ceil_mode, 0))
            if divisor_override is None:
                starts = np.arange(x.shape[axis]) * stride[k] - padding[k]
                ends = np.minimum(starts + kernel[k], size + padding[k])
                covered = ends - starts
                if not count_include_pad:
                    covered = np.minimum(ends, size) - np.maximum(starts, 0)
                x = x / jnp.asarray(covered, x.dtype).reshape(-1, *(1,) * (x.ndim - 1 - axis))
        return x if divisor_override is None else x / divisor_override

    return pooled


def _adaptive_bounds(size, count):
    return [(k * size // count, -(-(k + 1) * size // count)) for k in range(count)]


def _adaptive_average_pool(count):
    def pooled(x, output_size):
        for k, out in enumerate(_each(output_size, count)):
            axis = x.ndim - count + k
            weights = np.zeros((out, x.shape[axis]))
            for row, (start, end) in enumerate(_adaptive_bounds(x.shape[axis], out)):
                weights[row, start:end] = 1 / (end - start)
            x = jnp.moveaxis(jnp.tensordot(x, jnp.asarray(weights, x.dtype), axes=(axis, 1)), -1, axis)
        return x

    return pooled


def _adaptive_max_pool(count):
    def pooled(x, output_size):
        spatial = x.shape[-count:]
        places = jnp.broadcast_to(jnp.arange(math.prod(spatial)).reshape(spatial), x.shape)
        sizes = _each(output_size, count)
        for k in range(count - 1, -1, -1):
            axis = x.ndim - count + k
            rows = []
            for start, end in _adaptive_bounds(x.shape[axis], sizes[k]):
                at = [
                    tuple(jax.lax.slice_in_dim(a, i, i + 1, axis=axis) for a in (x, places))
                    for i in range(start, end)
                ]
                best = at[0]
                for pair in at[1:]:
                    best = _larger(best, pair)
                rows.append(best)
            x, places = (jnp.concatenate(parts, axis=axis) for parts in zip(*rows, strict=True))
        return x, places

    return pooled


for _n in (1, 2, 3):
    operation(f"max_pool{_n}d_with_indices", kinked=True)(_max_pool(_n))
    operation(f"adaptive_max_pool{_n}d", kinked=True)(_adaptive_max_pool(_n))
    operation(f"avg_pool{_n}d")(_average_pool(_n))
    operation(f"adaptive_avg_pool{_n}d")(_adaptive_average_pool(_n))
for _n in (2, 3):
    OPERATIONS[f"_adaptive_avg_pool{_n}d"] = OPERATIONS[f"adaptive_avg_pool{_n}d"]
