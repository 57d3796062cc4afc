"""Scaled dot-product attention."""

import math

import jax.numpy as jnp

from .normalization import safe_softmax
from .table import operation


@operation("scaled_dot_product_attention")
def attention(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    scale=None,
    enable_gqa=False,
):
    """softmax(q k^T scale + mask) v; a mask of booleans keeps what is true, one of numbers is added."""
    if enable_gqa:
        key, value = (jnp.repeat(each, query.shape[-3] // each.shape[-3], axis=-3) for each in (key, value))
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = jnp.einsum("...qd,...kd->...qk", query, key) * scale
    if is_causal:
        attn_mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    if attn_mask is not None:
        if attn_mask.dtype == bool:
            scores = jnp.where(attn_mask, scores, -jnp.inf)
        else:
            scores = scores + attn_mask
    return jnp.einsum("...qk,...kd->...qd", safe_softmax(scores, -1), value)
