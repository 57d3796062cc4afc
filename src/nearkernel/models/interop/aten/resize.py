"""Interpolation: resizing along one dimension after the other, and sampling at given places."""

import jax.numpy as jnp
import numpy as np

from .table import operation


def _sources(size, out, scale, align_corners):
    """Where each new entry lies among the old ones, at the centers of pixels or at their corners."""
    if align_corners:
        return np.arange(out) * ((size - 1) / (out - 1) if out > 1 else 0.0)
    ratio = 1 / scale if scale else size / out
    return (np.arange(out) + 0.5) * ratio - 0.5


def _linear_weights(size, out, scale, align_corners):
    places = np.maximum(_sources(size, out, scale, align_corners), 0.0)
    low = np.minimum(places.astype(int), size - 1)
    share = np.clip(places - low, 0.0, 1.0)
    weights = np.zeros((out, size))
    np.add.at(weights, (np.arange(out), low), 1 - share)
    np.add.at(weights, (np.arange(out), np.minimum(low + 1, size - 1)), share)
    return weights


def _cubic(t, a=-0.75):
    t = np.abs(t)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


def _cubic_weights(size, out, scale, align_corners):
    places = _sources(size, out, scale, align_corners)
    low = np.floor(places).astype(int)
    weights = np.zeros((out, size))
    for offset in (-1, 0, 1, 2):
        at = np.clip(low + offset, 0, size - 1)
        np.add.at(weights, (np.arange(out), at), _cubic(places - low - offset))
    return weights


def _resized(x, output_size, scale_factors, align_corners, weights, count):
    sizes = _sizes(x, output_size, scale_factors, count)
    for k, out in enumerate(sizes):
        axis = x.ndim - count + k
        scale = scale_factors[k] if scale_factors else None
        matrix = jnp.asarray(weights(x.shape[axis], out, scale, align_corners), x.dtype)
        x = jnp.moveaxis(jnp.tensordot(x, matrix, axes=(axis, 1)), -1, axis)
    return x


def _sizes(x, output_size, scale_factors, count):
    if output_size is not None:
        return list(output_size)
    return [int(n * s) for n, s in zip(x.shape[-count:], scale_factors, strict=True)]


def _nearest(count, exact):
    def resized(x, output_size, scale_factors=None):
        for k, out in enumerate(_sizes(x, output_size, scale_factors, count)):
            axis = x.ndim - count + k
            size = x.shape[axis]
            ratio = 1 / scale_factors[k] if scale_factors else size / out
            places = np.floor((np.arange(out) + (0.5 if exact else 0.0)) * ratio).astype(int)
            x = jnp.take(x, np.minimum(places, size - 1), axis=axis)
        return x

    return resized


def _smooth(weights, count):
    def resized(x, output_size, align_corners, scale_factors=None):
        return _resized(x, output_size, scale_factors, align_corners, weights, count)

    return resized


for _n, _name in ((1, "linear1d"), (2, "bilinear2d"), (3, "trilinear3d")):
    operation(f"upsample_{_name}.vec")(_smooth(_linear_weights, _n))
    operation(f"upsample_nearest{_n}d.vec")(_nearest(_n, exact=False))
    operation(f"_upsample_nearest_exact{_n}d.vec")(_nearest(_n, exact=True))
operation("upsample_bicubic2d.vec")(_smooth(_cubic_weights, 2))


@operation("grid_sampler_2d", kinked=True)
def sample(x, grid, interpolation_mode, padding_mode, align_corners):
    """Values of images (n, c, h, w) at places (n, h', w', 2) in [-1, 1]; between pixels, linear or the nearest."""
    if interpolation_mode > 1:
        raise NotImplementedError("bicubic grid_sample is not supported; use mode='bilinear'.")
    height, width = x.shape[-2:]
    across = _place(grid[..., 0], width, padding_mode, align_corners)
    down = _place(grid[..., 1], height, padding_mode, align_corners)
    if interpolation_mode == 1:
        return _pixels(x, jnp.round(down), jnp.round(across))
    top, left = jnp.floor(down), jnp.floor(across)
    total = 0.0
    for row, row_share in ((top, top + 1 - down), (top + 1, down - top)):
        for column, column_share in ((left, left + 1 - across), (left + 1, across - left)):
            total = total + _pixels(x, row, column) * (row_share * column_share)[:, None]
    return total


def _place(t, size, padding_mode, align_corners):
    """From [-1, 1] to pixels; 0: zeros outside, 1: the border goes on, 2: reflected."""
    place = (t + 1) / 2 * (size - 1) if align_corners else ((t + 1) * size - 1) / 2
    if padding_mode == 2:
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
        if span == 0:
            return jnp.zeros_like(place)
        away = jnp.abs(place - low)
        rest, turns = jnp.fmod(away, span), jnp.floor(away / span)
        place = jnp.where(turns % 2 == 0, rest + low, span - rest + low)
    return place if padding_mode == 0 else jnp.clip(place, 0.0, size - 1.0)


def _pixels(x, row, column):
    """(n, c, h', w') of x at whole `row` and `column` (n, h', w'), zero outside."""
    height, width = x.shape[-2:]
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    at = jnp.clip(row, 0, height - 1).astype(jnp.int64) * width + jnp.clip(column, 0, width - 1).astype(
        jnp.int64
    )
    flat = x.reshape(*x.shape[:2], -1)
    picked = jnp.take_along_axis(flat, at.reshape(len(x), 1, -1), axis=2)
    return picked.reshape(*x.shape[:2], *at.shape[1:]) * inside[:, None]
