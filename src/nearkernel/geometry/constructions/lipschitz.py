"""The optimal code of Lipschitz functions: encoding to bits, and decoding."""

import numpy as np

from ..._base.check import numeric, plain_array, positive, shown
from ..._base.types import ArrayLike


def lipschitz_code(values: ArrayLike, length: float = 1.0, constant: float = 1.0) -> np.ndarray:
    r"""The optimal code of a function with $f(0) = 0$ and Lipschitz constant $C$ = `constant`: n bits, True where the
    slope is positive.

    **Arguments:** `values` (n + 1,) of f at $h, 2 h, \ldots, (n + 1) h$ = `length`; `length`; `constant`.

    The decoded function is 0 on the first cell and has slope $\pm C$ on each of the n others, toward f. If it is
    within $h C$ of f at one end of a cell, the right sign keeps it within $h C$ at the other end, and the difference
    is monotone in between.
    """
    values = numeric(values, "values")
    if values.ndim != 1 or len(values) < 1:
        raise ValueError(f"`values` must have shape (n + 1,), n at least 0; got {values.shape}.")
    step = float(positive(constant, "constant")) * float(positive(length, "length")) / len(values)
    if np.abs(np.diff(values, prepend=0.0)).max() > step * (1 + 1e-12):
        raise ValueError(
            f"`values` change by more than {step:g} per cell, the limit for `constant` = {constant:g}."
        )
    code, at = [], 0.0
    for value in values[1:]:
        code.append(bool(value >= at))
        at += step if code[-1] else -step
    return np.array(code, dtype=bool)


def lipschitz_decode(code: ArrayLike, x: ArrayLike, length: float = 1.0, constant: float = 1.0) -> np.ndarray:
    """Decodes `lipschitz_code`: the function at `x` in [0, length].

    **Arguments:** `code`, the bits; `x`; `length`, `constant`: same as `lipschitz_code`.
    """
    code = plain_array(code, "code")
    if code.ndim != 1 or code.dtype.kind not in "biu" or not np.isin(code, (0, 1)).all():
        raise ValueError(f"`code` must be a vector of bits, e.g. from `lipschitz_code`; got {shown(code)}.")
    code = code.astype(bool)
    x, length = numeric(x, "x"), float(positive(length, "length"))
    if np.any((x < 0) | (x > length)):
        raise ValueError(f"`x` must be between 0 and `length` = {length:g}.")
    cells = len(code) + 1
    slopes = np.concatenate([[0.0, 0.0], np.where(code, 1.0, -1.0)])
    ends = float(positive(constant, "constant")) * length / cells * np.cumsum(slopes)
    return np.interp(x, np.linspace(0, length, cells + 1), ends)
