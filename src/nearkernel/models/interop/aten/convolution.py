"""Convolutions in any dimension, transposed, dilated and grouped, and the patches they act on."""

import itertools

import jax
import jax.numpy as jnp

from .table import operation


def _each(value, count):
    """One setting for every spatial dimension."""
    value = tuple(value) if isinstance(value, list | tuple) else (value,)
    return value * count if len(value) == 1 else value


@operation("convolution")
def convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    count = weight.ndim - 2
    stride, padding, dilation, extra = (_each(v, count) for v in (stride, padding, dilation, output_padding))
    single = x.ndim == weight.ndim - 1  # without a batch
    x = x[None] if single else x
    if transposed:
        reach = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
        pads = [(r - p, r - p + e) for r, p, e in zip(reach, padding, extra, strict=True)]
        # (in, out / groups, ...) becomes (out, in / groups, ...), and the kernel is turned around.
        parts = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
        parts = jnp.swapaxes(parts, 1, 2)
        weight = jnp.flip(parts.reshape(-1, *parts.shape[2:]), tuple(range(2, count + 2)))
        strides, spread = (1,) * count, stride
    else:
        pads, strides, spread = [(p, p) for p in padding], stride, (1,) * count
    z = jax.lax.conv_general_dilated(
        x, weight, strides, pads, lhs_dilation=spread, rhs_dilation=dilation, feature_group_count=groups
    )
    if bias is not None:
        z = z + bias.reshape(-1, *(1,) * count)
    return z[0] if single else z


def _places(size, kernel, dilation, padding, stride):
    """Per dimension, for each entry of the kernel: the slice of the padded input that it meets."""
    counts = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(size, kernel, dilation, padding, stride, strict=True)
    ]
    offsets = itertools.product(*(range(k) for k in kernel))
    cuts = [
        tuple(
            slice(o * d, o * d + s * (c - 1) + 1, s)
            for o, d, s, c in zip(offset, dilation, stride, counts, strict=True)
        )
        for offset in offsets
    ]
    return counts, cuts


@operation("im2col")
def patches(x, kernel_size, dilation, padding, stride):
    """(n, c, h, w) to (n, c kh kw, places)."""
    counts, cuts = _places(x.shape[-2:], kernel_size, dilation, padding, stride)
    edges = [(0, 0)] * (x.ndim - 2) + [(p, p) for p in padding]
    padded = jnp.pad(x, edges)
    windows = jnp.stack([padded[(..., *cut)] for cut in cuts], axis=-3)  # (n, c, kh kw, places)
    return windows.reshape(*x.shape[:-3], x.shape[-3] * len(cuts), counts[0] * counts[1])


@operation("col2im")
def sum_of_patches(x, output_size, kernel_size, dilation, padding, stride):
    """The transpose of `im2col`: patches that overlap are added."""
    counts, cuts = _places(output_size, kernel_size, dilation, padding, stride)
    blocks = x.reshape(*x.shape[:-2], x.shape[-2] // len(cuts), len(cuts), *counts)
    whole = [n + 2 * p for n, p in zip(output_size, padding, strict=True)]
    z = jnp.zeros((*blocks.shape[:-3], *whole), x.dtype)
    for index, cut in enumerate(cuts):
        z = z.at[(..., *cut)].add(blocks[..., index, :, :])
    inside = tuple(slice(p, p + n) for n, p in zip(output_size, padding, strict=True))
    return z[(..., *inside)]
