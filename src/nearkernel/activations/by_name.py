"""Activations by name, by callable, or as they are."""

import functools
import re
from collections.abc import Callable

import jax
import jax.numpy as jnp

from .._base.check import nearest, shown
from .._run.precision import in_float64
from .averages.series import series
from .base import AbstractActivation
from .closed import LARGEST_SLOPE, Erf, Gaussian, Gelu, PiecewiseLinear, Sine
from .formula import formula, is_formula
from .monomial import Monomial


def _tanh(z):  # functions of this module, since JAX's own compiled ones cannot be pickled
    return jnp.tanh(z)


def _sigmoid(z):
    return jax.nn.sigmoid(z)


def _silu(z):
    return jax.nn.silu(z)


def _softplus(z):
    return jax.nn.softplus(z)


def _mish(z):
    return jax.nn.mish(z)


def _elu(z):
    return jax.nn.elu(z)


def _selu(z):
    return jax.nn.selu(z)


_BY_SERIES: dict[str, Callable] = {
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "silu": _silu,
    "swish": _silu,
    "mish": _mish,
    "softplus": _softplus,
    "elu": _elu,
    "selu": _selu,
}
_CLOSED: dict[str, Callable[[], AbstractActivation]] = {
    "linear": lambda: PiecewiseLinear(1.0, 1.0),
    "relu": lambda: PiecewiseLinear(1.0, 0.0),
    "leaky_relu": lambda: PiecewiseLinear(1.0, 0.01),
    "abs": lambda: PiecewiseLinear(1.0, -1.0),
    "erf": Erf,
    "gelu": Gelu,
    "sin": Sine,
    "cos": lambda: Sine(cosine=True),
    "gaussian": Gaussian,
}


def names() -> list[str]:
    """The names of activations; "leaky_relu(slope)" and "monomial(degree)" take a number."""
    return [*_CLOSED, *_BY_SERIES, "monomial(2)", "monomial(3)"]


@in_float64
def get(activation: str | Callable | AbstractActivation) -> AbstractActivation:
    """The activation for `activation`: a name such as "leaky_relu(0.1)", a formula, or any JAX function.

    A formula is a string in `z`, such as `"tanh(z) + 0.1*z^2"`. It is parsed and never executed as code: numbers, `z`,
    `pi`, `e`, `+ - * / ^`, parentheses, and functions such as `tanh`, `erf`, `relu`, `mish`, `exp`, `max(z, 0)`.
    """
    if isinstance(activation, AbstractActivation):
        return activation
    if isinstance(activation, str):
        return _by_name(activation)
    if not callable(activation) or isinstance(activation, type):
        raise TypeError(f"`activation` must be a name or a function; got {shown(activation)}.")
    try:
        hash(activation)
    except TypeError:
        raise TypeError(
            "`activation` contains arrays, so its results cannot be cached: wrap it, e.g. lambda z: activation(z)."
        ) from None
    return _by_callable(activation)


@functools.lru_cache(maxsize=64)
def _by_callable(function: Callable) -> AbstractActivation:
    return series(function, "activation")


@functools.lru_cache(maxsize=64)
def _by_name(name: str) -> AbstractActivation:
    if name in _CLOSED:
        return _CLOSED[name]()
    if name in _BY_SERIES:
        return series(_BY_SERIES[name], name)
    with_number = re.fullmatch(
        r"(leaky_relu|monomial)\((-?(?:\d+\.?\d*|\.\d+)(?:e-?\d+)?)\)", name.replace(" ", "")
    )
    if with_number and with_number[1] == "leaky_relu":
        slope = float(with_number[2])
        if abs(slope) > LARGEST_SLOPE:
            raise ValueError(f"`activation` {name!r} has too large a slope: use at most {LARGEST_SLOPE:g}.")
        return PiecewiseLinear(1.0, slope)
    if with_number and re.fullmatch(r"[1-9]|1[0-9]", with_number[2]):
        return Monomial(int(with_number[2]))
    if with_number:
        raise ValueError(f'`activation` {name!r}: "monomial(degree)" takes an integer degree from 1 to 19.')
    if is_formula(name):
        return series(formula(name), "activation")
    raise ValueError(
        f"`activation` {shown(name)} is unknown; known: {', '.join(names())}.{nearest(name, names())}"
    )
