"""Normalization layers and softmax."""

import jax
import jax.numpy as jnp

from .table import operation


def _normalized(x, axes, eps):
    mean = jnp.mean(x, axis=axes, keepdims=True)
    centered = x - mean
    scale = 1 / jnp.sqrt(jnp.mean(centered * centered, axis=axes, keepdims=True) + eps)
    return centered * scale, mean, scale


def _affine(x, weight, bias):
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _by_channel(values, x):
    """Parameters of the channels, which are the second dimension."""
    return None if values is None else values.reshape(-1, *(1,) * (x.ndim - 2))


@operation("native_layer_norm")
def layer_norm(x, normalized_shape, weight, bias, eps):
    z, mean, scale = _normalized(x, tuple(range(-len(normalized_shape), 0)), eps)
    return _affine(z, weight, bias), mean, scale


@operation("native_group_norm")
def group_norm(x, weight, bias, N, C, HxW, group, eps):
    z, mean, scale = _normalized(x.reshape(N, group, -1), (2,), eps)
    z = _affine(z.reshape(x.shape), _by_channel(weight, x), _by_channel(bias, x))
    return z, mean.reshape(N, group), scale.reshape(N, group)


@operation("_native_batch_norm_legit_no_training")
def batch_norm(x, weight, bias, running_mean, running_var, momentum, eps):
    scale = _by_channel(1 / jnp.sqrt(running_var + eps), x)
    z = (x - _by_channel(running_mean, x)) * scale
    return _affine(z, _by_channel(weight, x), _by_channel(bias, x)), jnp.zeros(0), jnp.zeros(0)


@operation("_native_batch_norm_legit.no_stats")
def batch_norm_without_statistics(x, weight, bias, training, momentum, eps):
    """Of instance normalization, which makes a channel of every (input, channel)."""
    z, mean, scale = _normalized(x, (0, *range(2, x.ndim)), eps)
    return _affine(z, _by_channel(weight, x), _by_channel(bias, x)), mean.reshape(-1), scale.reshape(-1)


@operation("_softmax")
def softmax(x, dim, half_to_float=False):
    if x.ndim == 0:
        return jnp.ones_like(x)
    powers = jnp.exp(x - jax.lax.stop_gradient(jnp.max(x, axis=dim, keepdims=True)))
    return powers / jnp.sum(powers, axis=dim, keepdims=True)


@operation("_log_softmax")
def log_softmax(x, dim, half_to_float=False):
    if x.ndim == 0:
        return jnp.zeros_like(x)
    x = x - jax.lax.stop_gradient(jnp.max(x, axis=dim, keepdims=True))
    return x - jnp.log(jnp.sum(jnp.exp(x), axis=dim, keepdims=True))


def safe_softmax(x, dim):
    """Softmax that is 0 where everything is masked."""
    masked = jnp.all(x == -jnp.inf, axis=dim, keepdims=True)
    return jnp.where(masked, 0.0, softmax(jnp.where(masked, 0.0, x), dim))
