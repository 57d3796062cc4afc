"""Activations typed as formulas, like `tanh(z) + 0.1*z^2`. They are read as grammar and never run as Python."""

import ast
import functools
import math
import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from .._base.check import nearest
from .._base.types import Array

LONGEST = 120
# Functions in a formula, and inside each other: derivatives of all of them are compiled.
MOST, DEEPEST = 12, 4
_VARIABLE = ("z", "x")
_NAMES = {"pi": math.pi, "e": math.e}
_ONE: dict[str, tuple[Callable, str]] = {
    **{name: (getattr(jnp, name), f"jnp.{name}") for name in
       ("tanh", "sin", "cos", "exp", "abs", "arctan", "sinh", "cosh", "log1p", "sqrt", "expm1")},
    **{name: (getattr(jax.nn, name), f"jax.nn.{name}") for name in
       ("relu", "sigmoid", "silu", "swish", "mish", "softplus", "elu", "selu")},
    "erf": (jax.scipy.special.erf, "jax.scipy.special.erf"),
    "gelu": (functools.partial(jax.nn.gelu, approximate=False), "jax.nn.gelu"),
}  # fmt: skip
_TWO: dict[str, tuple[Callable, str]] = {
    "max": (jnp.maximum, "jnp.maximum"),
    "min": (jnp.minimum, "jnp.minimum"),
}
_SIGNS: dict[type, tuple[Callable, str]] = {
    ast.Add: (lambda a, b: a + b, "+"),
    ast.Sub: (lambda a, b: a - b, "-"),
    ast.Mult: (lambda a, b: a * b, "*"),
    ast.Div: (lambda a, b: a / b, "/"),
}
_Tree = tuple[Callable[[Array | float], Array | float], str]  # a function of z, and how Python would write it


class Formula:
    """A function of z, and `source`, the Python that means the same."""

    def __init__(self, text: str):
        self.text = text
        self._function, self.source = _read(text)
        _require_sane(self)

    def __call__(self, z):
        return self._function(z)

    def __reduce__(self) -> tuple:
        return formula, (self.text,)


# The compiler knows functions by identity: the same text must be the same function.
@functools.lru_cache(maxsize=64)
def formula(text: str) -> Formula:
    """The function that a text means."""
    return Formula(text.strip())


def is_formula(text: str) -> bool:
    """Whether a text is meant as a formula and not as a name: z or x stands in it by itself, or a sign."""
    return bool(re.search(r"\b[zx]\b|[+*/^]", text))


def _read(text: str) -> _Tree:
    if not text or len(text) > LONGEST:
        raise ValueError(
            f"`activation` must be a formula in z of 1 to {LONGEST} characters; got {len(text)}."
        )
    try:
        # The parser alone: what comes out is data, of which only the forms below are understood.
        tree = ast.parse(text.replace("^", "**"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(
            f"`activation` {text}: not a formula; write one in z, like tanh(z) + 0.1*z^2."
        ) from None
    _require_small(tree, text)
    return _tree(tree, text)


def _require_small(tree: ast.AST, text: str) -> None:
    def depth(node: ast.AST) -> int:
        inside = max(map(depth, ast.iter_child_nodes(node)), default=0)
        return inside + isinstance(node, ast.Call)

    count, deep = sum(isinstance(node, ast.Call) for node in ast.walk(tree)), depth(tree)
    if count > MOST or deep > DEEPEST:
        raise ValueError(
            f"`activation` {text}: has {count} functions, nested {deep} deep; "
            f"use at most {MOST}, nested at most {DEEPEST} deep."
        )


def _tree(node: ast.AST, text: str) -> _Tree:
    """A part without z is a number, and is computed here."""
    f, written = _part(node, text)
    if any(isinstance(inner, ast.Name) and inner.id in _VARIABLE for inner in ast.walk(node)):
        return f, written
    try:
        with jax.enable_x64(True):
            value = float(f(0.0))
    except ArithmeticError:  # Python's own numbers do not divide by 0
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"`activation` {text}: {ast.unparse(node)} has no value.")
    return lambda z: value, written


def _part(node: ast.AST, text: str) -> _Tree:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            constant = _bounded(float(number) if abs(number) < 1e9 else math.inf, text)
            return lambda z: constant, repr(number)
        case ast.Name(id=name) if name in _VARIABLE:
            return lambda z: z, "z"
        case ast.Name(id=name) if name in _NAMES:
            value = _NAMES[name]
            return lambda z: value, repr(value)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            f, written = _tree(inner, text)
            return lambda z: -f(z), f"-({written})"
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return _tree(inner, text)
        case ast.BinOp(left=base, op=ast.Pow(), right=power):
            return _power(base, power, text)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _SIGNS:
            (f, one), (g, two), (combine, symbol) = _tree(left, text), _tree(right, text), _SIGNS[type(sign)]
            return lambda z: combine(f(z), g(z)), f"({one} {symbol} {two})"
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in _ONE:
            (f, one), (outer, word) = _tree(inner, text), _ONE[name]
            extra = ", approximate=False" * (name == "gelu")
            return lambda z: outer(f(z)), f"{word}({one}{extra})"
        case ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[]) if name in _TWO:
            (f, one), (g, two), (combine, word) = _tree(left, text), _tree(right, text), _TWO[name]
            return lambda z: combine(f(z), g(z)), f"{word}({one}, {two})"
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)):
            known = [*_ONE, *_TWO]
            raise ValueError(
                f"`activation` {text}: {name[:30]} is not known; use z, numbers, pi, e and "
                f"{', '.join(known)}.{nearest(name, known)}"
            )
    raise ValueError(
        f"`activation` {text}: not a formula; use z, numbers, + - * / ^, parentheses and functions like tanh(z)."
    )


def _power(base: ast.AST, power: ast.AST, text: str) -> _Tree:
    """Whole powers up to 8: larger ones overflow, and others are not defined where z is negative."""
    if not (isinstance(power, ast.Constant) and power.value in range(1, 9)):
        raise ValueError(
            f"`activation` {text}: powers must be integers from 1 to 8; write exp(z) for the exponential."
        )
    (f, one), exponent = _tree(base, text), int(power.value)  # type: ignore[arg-type]
    return lambda z: f(z) ** exponent, f"({one}) ** {exponent}"


def _bounded(number: float, text: str) -> float:
    if not abs(number) <= 1e6:
        raise ValueError(f"`activation` {text}: numbers must be at most 1e6.")
    return number


def _require_sane(formula: Formula) -> None:
    """Finite where preactivations live, not constant, and not so steep that no average exists."""
    z = np.linspace(-8, 8, 1601)
    with jax.enable_x64(True):
        values = np.broadcast_to(np.asarray(formula(jnp.asarray(z))), z.shape)
    if not np.isfinite(values).all():
        at = z[~np.isfinite(values)][0]
        raise ValueError(
            f"`activation` {formula.text}: has no value at z = {at:g}; it must have one everywhere."
        )
    if np.ptp(values) == 0:
        raise ValueError(f"`activation` {formula.text}: is constant; it must depend on z.")
    if np.abs(values).max() > 1e6:
        most = np.abs(values).max()
        raise ValueError(
            f"`activation` {formula.text}: reaches {most:.1g} between z = -8 and 8; at most 1e6 is allowed."
        )
