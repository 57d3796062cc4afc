"""Operations that act on each entry.

At kinks, derivatives are those that PyTorch chooses: 0 for relu and abs at 0, for clamp 1 and for hardtanh 0 at their
bounds.
"""

import math

import jax
import jax.numpy as jnp
import jax.scipy.special as special

from ...._base.types import Array
from .table import enter_all, operation

_LINEAR_FROM = 40.0  # log(1 + e^x) is x to the last digit

enter_all(
    {
        "__lshift__": jnp.left_shift,
        "__rshift__": jnp.right_shift,
        "acos": jnp.arccos,
        "acosh": jnp.arccosh,
        "angle": jnp.angle,
        "asin": jnp.arcsin,
        "asinh": jnp.arcsinh,
        "atan": jnp.arctan,
        "atan2": jnp.arctan2,
        "atanh": jnp.arctanh,
        "bitwise_and": jnp.bitwise_and,
        "bitwise_left_shift": jnp.left_shift,
        "bitwise_not": jnp.bitwise_not,
        "bitwise_or": jnp.bitwise_or,
        "bitwise_right_shift": jnp.right_shift,
        "bitwise_xor": jnp.bitwise_xor,
        "cos": jnp.cos,
        "cosh": jnp.cosh,
        "digamma": special.digamma,
        "eq": jnp.equal,
        "erf": special.erf,
        "erfc": special.erfc,
        "erfinv": special.erfinv,
        "exp": jnp.exp,
        "exp2": jnp.exp2,
        "expm1": jnp.expm1,
        "ge": jnp.greater_equal,
        "gt": jnp.greater,
        "hypot": jnp.hypot,
        "isfinite": jnp.isfinite,
        "isinf": jnp.isinf,
        "isnan": jnp.isnan,
        "le": jnp.less_equal,
        "lgamma": special.gammaln,
        "log": jnp.log,
        "log10": jnp.log10,
        "log1p": jnp.log1p,
        "log2": jnp.log2,
        "logaddexp": jnp.logaddexp,
        "logical_and": jnp.logical_and,
        "logical_not": jnp.logical_not,
        "logical_or": jnp.logical_or,
        "logical_xor": jnp.logical_xor,
        "lt": jnp.less,
        "mul": jnp.multiply,
        "ne": jnp.not_equal,
        "neg": jnp.negative,
        "pow": lambda x, exponent: power(x, exponent),
        "reciprocal": lambda x: 1 / x,
        "rsqrt": lambda x: 1 / jnp.sqrt(x),
        "sigmoid": jax.nn.sigmoid,
        "silu": lambda x: x * jax.nn.sigmoid(x),
        "sin": jnp.sin,
        "sinh": jnp.sinh,
        "special_i0": special.i0,
        "special_i1": special.i1,
        "sqrt": jnp.sqrt,
        "square": lambda x: x * x,
        "tan": jnp.tan,
        "tanh": jnp.tanh,
        "where.self": jnp.where,
    }
)
enter_all(
    {
        "abs": lambda x: x * jnp.sign(x) if jnp.issubdtype(x.dtype, jnp.floating) else jnp.abs(x),
        "ceil": jnp.ceil,
        "floor": jnp.floor,
        "floor_divide": jnp.floor_divide,
        "fmod": jnp.fmod,
        "maximum": jnp.maximum,
        "minimum": jnp.minimum,
        "remainder": jnp.remainder,
        "round": lambda x: jnp.round(x),
        "round.decimals": lambda x, *, decimals: jnp.round(x * 10.0**decimals) / 10.0**decimals,
        "sgn": jnp.sign,
        "sign": jnp.sign,
        "trunc": jnp.trunc,
    },
    kinked=True,
)


@operation("add")
def add(x, other, alpha=1):
    return x + (other if alpha == 1 else alpha * other)


@operation("sub")
def subtract(x, other, alpha=1):
    return jnp.subtract(x, other if alpha == 1 else alpha * other)


@operation("rsub")
def subtract_from(x, other, alpha=1):
    return jnp.subtract(other, x if alpha == 1 else alpha * x)


@operation("div.Tensor", "div.Scalar")
def divide(x, other):
    return jnp.true_divide(x, other)


@operation("div.Tensor_mode", "div.Scalar_mode", kinked=True)
def divide_rounded(x, other, rounding_mode=None):
    if rounding_mode is None:
        return jnp.true_divide(x, other)
    if rounding_mode == "floor":
        return jnp.floor_divide(x, other)
    whole = jnp.issubdtype(jnp.result_type(x, other), jnp.integer)
    if not whole:
        return jnp.trunc(x / other)
    down = jnp.floor_divide(x, other)
    return down + ((down < 0) & (down * other != x))


def power(x: Array, exponent: Array) -> jax.Array:
    """x^e; with powers that are integers or 1/2 as such, so that derivatives at 0 are finite where they should be."""
    if isinstance(exponent, float) and exponent == int(exponent) and abs(exponent) < 64:
        exponent = int(exponent)
    if isinstance(exponent, int) and not isinstance(x, int | float):
        # A negative power of integers is not an integer; PyTorch refuses it, so that it does not occur.
        return jax.lax.integer_pow(x, exponent)
    return jnp.sqrt(x) if isinstance(exponent, float) and exponent == 0.5 else jnp.power(x, exponent)


@operation("addcmul")
def add_product(x, tensor1, tensor2, value=1):
    return x + value * tensor1 * tensor2


@operation("addcdiv")
def add_quotient(x, tensor1, tensor2, value=1):
    return x + value * tensor1 / tensor2


@operation("lerp")
def interpolate(x, end, weight):
    return x + weight * (end - x)


@operation("relu", kinked=True)
def relu(x):
    return jnp.where(x > 0, x, 0)


@operation("clamp", kinked=True)
def clamp(x, min=None, max=None):
    if min is not None:
        x = jnp.where(x < min, min, x)
    return x if max is None else jnp.where(x > max, max, x)


@operation("clamp_min", kinked=True)
def clamp_min(x, min):
    return clamp(x, min)


@operation("clamp_max", kinked=True)
def clamp_max(x, max):
    return clamp(x, None, max)


@operation("hardtanh", kinked=True)
def hard_tanh(x, min_val=-1.0, max_val=1.0):
    return jnp.where(x <= min_val, min_val, jnp.where(x >= max_val, max_val, x))


@operation("hardsigmoid", kinked=True)
def hard_sigmoid(x):
    return hard_tanh(x / 6 + 0.5, 0.0, 1.0)


@operation("hardswish", kinked=True)
def hard_swish(x):
    return jnp.where(x <= -3, 0.0, jnp.where(x >= 3, x, x * (x + 3) / 6))


@operation("leaky_relu", kinked=True)
def leaky_relu(x, negative_slope=0.01):
    return jnp.where(x > 0, x, negative_slope * x)


@operation("_prelu_kernel", kinked=True)
def leaky_relu_of_given_slopes(x, weight):
    return jnp.where(x > 0, x, weight * x)


@operation("threshold", kinked=True)
def threshold(x, threshold, value):
    return jnp.where(x <= threshold, value, x)


@operation("elu", kinked=True)
def elu(x, alpha=1.0, scale=1.0, input_scale=1.0):
    below = jnp.where(x > 0, 0.0, x)  # e^x must not overflow where it is not used
    return jnp.where(x > 0, scale * x, scale * alpha * jnp.expm1(input_scale * below))


@operation("gelu")
def gelu(x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + jnp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + special.erf(x * math.sqrt(0.5)))


@operation("softplus")
def softplus(x, beta=1, threshold=20):
    far = x * beta > threshold
    near = jnp.where(far, 0.0, x * beta)
    return jnp.where(far, x, jnp.log1p(jnp.exp(near)) / beta)


@operation("mish")
def mish(x):
    return x * jnp.tanh(softplus(x, 1, _LINEAR_FROM))


@operation("log_sigmoid_forward")
def log_sigmoid(x):
    return -softplus(-x, 1, _LINEAR_FROM), jnp.zeros(0)


@operation("nan_to_num")
def replace_nan(x, nan=None, posinf=None, neginf=None):
    return jnp.nan_to_num(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


@operation("complex")
def complex_from_parts(real, imag):
    return jax.lax.complex(real, imag)


enter_all(
    {
        "_conj": jnp.conj,
        "_conj_physical": jnp.conj,
        "polar": lambda abs, angle: jax.lax.complex(abs * jnp.cos(angle), abs * jnp.sin(angle)),
        "view_as_complex": lambda x: jax.lax.complex(x[..., 0], x[..., 1]),
        "view_as_real": lambda x: jnp.stack([x.real, x.imag], axis=-1),
    }
)
