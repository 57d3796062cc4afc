"""The advised initialization as code: functions `init_` that initialize a whole model in PyTorch, Flax and Keras.

Matrices and convolutions have the variance C_W / fan-in, biases C_b; norms and embeddings keep what they have. Where
weights are orthogonal, their rows or columns are, whichever are fewer. Packed weights of attention (`in_proj_weight` of
PyTorch) and heads of separate axes (Flax, Keras) have the fan-in of a head.
"""

from __future__ import annotations

import math

_TORCH = """\
def init_(model):{begin}
    for module in model.modules():
        if "Norm" in type(module).__name__ or isinstance(module, torch.nn.Embedding):
            continue
        for name, p in module.named_parameters(recurse=False):
            if "bias" in name:
                torch.nn.init.{bias}
            elif p.ndim > 1 and "embed" not in name and "token" not in name:
                fan_in = len(p) if type(module).__name__ == "Conv1D" else p[0].numel()  # of GPT-2
                torch.nn.init.{weight}{more}"""
_TORCH_ENDS = """
    for p in (weights[0], weights[-1]):  # outside of the blocks
        torch.nn.init.normal_(p, std=p[0].numel() ** -0.5)"""
_FLAX = """\
def init_(params, key, name=""):
    keys = dict(zip(params, jax.random.split(key, len(params))))
    if "kernel" not in params:
        return {{n: init_(p, keys[n], n) if hasattr(p, "items") else p for n, p in params.items()}}
    draw = lambda n: jax.random.normal(keys[n], params[n].shape, params[n].dtype)
    outputs = params["bias"].size if "bias" in params else params["kernel"].shape[-1]
    fan_in = params["kernel"].size // outputs{before}
    new = {{"kernel": {weight}}}
    return {{**new, "bias": {bias} * draw("bias")}} if "bias" in params else new"""
_KERAS = """\
def init_(model):
    kernels = []
    for v in model.trainable_variables:
        if v.name == "kernel":
            heads = any(f"/{{word}}/" in v.path for word in ("query", "key", "value"))
            kernels.append((v, v.shape[0] if heads else math.prod(v.shape[:-1])))
        elif v.name == "bias":
            v.assign({bias})
    for v, fan_in in kernels:{before}
        v.assign({weight})"""
_KERAS_ENDS = """
    for v, fan_in in (kernels[0], kernels[-1]):  # outside of the blocks
        v.assign(keras.random.normal(v.shape, stddev=fan_in**-0.5))"""
# Weights as drawn in the frameworks, of shape (fan_in, n) or (n, fan_in), whose orthogonal matrices have entries of
# variance 1 / max(fan_in, n).
_WEIGHTS = {
    False: {
        "PyTorch": "normal_(p, std=({scale} / fan_in) ** 0.5)",
        "Flax": 'std * draw("kernel")',
        "Keras": "keras.random.normal(v.shape, stddev=({scale} / fan_in) ** 0.5)",
    },
    True: {
        "PyTorch": "orthogonal_(p, gain=({scale} * max(1, p.numel() / fan_in**2)) ** 0.5)",
        "Flax": 'orthogonal(keys["kernel"], (fan_in, outputs)).reshape(params["kernel"].shape)',
        "Keras": "keras.ops.reshape(orthogonal((fan_in, n)), v.shape)",
    },
}
_FLAX_NORMAL = """
    std = ({scale} / fan_in) ** 0.5"""
_FLAX_ORTHOGONAL = """
    orthogonal = jax.nn.initializers.orthogonal(({scale} * max(1, outputs / fan_in)) ** 0.5)"""
_KERAS_ORTHOGONAL = """
        n = math.prod(v.shape) // fan_in
        orthogonal = keras.initializers.Orthogonal(({scale} * max(1, n / fan_in)) ** 0.5)"""


def how_to_type(
    weight_var: float, bias_var: float, depth: int, unit_ends: bool = False, orthogonal: bool = False
) -> dict[str, str]:
    """`init_(model)` in three frameworks; `unit_ends`: the first and the last weights have C_W = 1."""
    scale, deviation = f"{weight_var:.8g}", f"{math.sqrt(bias_var):.8g}"
    torch_bias, flax_bias, keras_bias = "zeros_(p)", "0.0", "keras.ops.zeros(v.shape)"
    if bias_var > 0:
        torch_bias = f"normal_(p, std={deviation})"
        flax_bias = deviation
        keras_bias = f"keras.random.normal(v.shape, stddev={deviation})"
    flax_scale = f'(1.0 if name in ("Dense_0", "Dense_{depth}") else {scale})' if unit_ends else scale
    weights = {name: text.format(scale=scale) for name, text in _WEIGHTS[orthogonal].items()}
    flax = (_FLAX_ORTHOGONAL if orthogonal else _FLAX_NORMAL).format(scale=flax_scale)
    keras = _KERAS_ORTHOGONAL.format(scale=scale) * orthogonal
    begin = "\n    weights = []" * unit_ends
    more = "\n                weights.append(p)" * unit_ends
    return {
        "PyTorch": _TORCH.format(weight=weights["PyTorch"], bias=torch_bias, begin=begin, more=more)
        + _TORCH_ENDS * unit_ends,
        "Flax": _FLAX.format(weight=weights["Flax"], bias=flax_bias, before=flax),
        "Keras": _KERAS.format(weight=weights["Keras"], bias=keras_bias, before=keras)
        + _KERAS_ENDS * unit_ends,
    }
