"""What leaves a kernel is finite, or the number that overflowed is named."""

import numpy as np

_SMALLEST = 1e-290  # below, products with rounding errors have lost their digits


def require_finite(found: np.ndarray, x1: np.ndarray, x2: np.ndarray | None, name: str) -> np.ndarray:
    """`found` (n1, n2, ...) or (n1,), refused unless its entries, and their sum, are finite: one pass over memory."""
    with np.errstate(over="ignore", invalid="ignore"):
        if found.dtype == np.float32:  # whose sum in float64 is finite if its extremes are
            fine = bool(np.isfinite(found.max()) and np.isfinite(found.min()))
        else:
            fine = bool(np.isfinite(found.sum(dtype=np.float64)))
        if fine:
            return found if x2 is not None or found.ndim != 2 else _above_underflow(found, name)
    bad = np.argwhere(~np.isfinite(found))
    if not len(bad):
        raise ValueError(
            f"`{name}` has entries up to {np.abs(found).max():.3g}, whose sum overflows: scale the inputs or the "
            "kernel towards 1."
        )
    at = tuple(int(i) for i in bad[0])
    rows = (
        [(at[0], x1)] if found.ndim == 1 else [(at[0], x1), (at[found.ndim // 2], x1 if x2 is None else x2)]
    )
    lengths = " and ".join(f"row {i}, of length {length(x[i]):.3g}" for i, x in rows)
    raise ValueError(
        f"`{name}` is {found[at]} for {lengths}: the computation overflows. Scale the inputs or the settings of "
        "the kernel towards 1."
    )


def _above_underflow(gram: np.ndarray, name: str) -> np.ndarray:
    largest = float(np.diagonal(gram).max())
    if 0 < largest < _SMALLEST:
        raise ValueError(
            f"`{name}` has no diagonal entry above {largest:.3g}: numbers underflow. Scale the inputs or the settings "
            "of the kernel towards 1."
        )
    return gram


def length(row: np.ndarray) -> float:
    """|row|, also where its square is beyond all numbers."""
    largest = float(np.abs(row).max(initial=0.0))
    return largest * float(np.linalg.norm(row / largest)) if largest > 0 else 0.0
