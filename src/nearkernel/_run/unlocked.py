"""Triangular and symmetric products of BLAS that let other threads run meanwhile.

SciPy's functions hold Python's lock while they compute, so that threads which call them take turns. These call the same
BLAS through the pointers that SciPy offers to other compiled programs, without the lock.
"""

import ctypes
import functools
from collections.abc import Callable

import numpy as np

_LETTER = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}


def solved(lower: np.ndarray, right: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """L^-1 right, or with `transposed` L^-T right, for a lower triangular L (n, n) of which nothing else is read."""
    return _triangular("trsm", lower, right, transposed)


def multiplied(lower: np.ndarray, right: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """L right, or with `transposed` L^T right, for a lower triangular L (n, n) of which nothing else is read."""
    return _triangular("trmm", lower, right, transposed)


def gram(rows: np.ndarray) -> np.ndarray:
    """The upper half of rows^T rows (m, m), in the type of `rows` (n, m); zero below the diagonal."""
    dtype, (n, m) = rows.dtype, rows.shape
    product = np.zeros((m, m), dtype, order="F")
    if rows.size:
        columns, number = np.ascontiguousarray(rows).T, _integer()
        one, zero = np.ones((), dtype), np.zeros((), dtype)
        _blas(_LETTER[dtype] + "syrk")(
            b"U", b"N", number(m), number(n), one.ctypes.data, columns.ctypes.data, number(m), zero.ctypes.data,
            product.ctypes.data, number(m),
        )  # fmt: skip
    return product


def _triangular(name: str, lower: np.ndarray, right: np.ndarray, transposed: bool) -> np.ndarray:
    dtype = np.result_type(lower, right)
    product = np.array(right if right.ndim == 2 else right[:, None], dtype, order="F")
    matrix, half, (n, m) = np.asarray(lower, dtype), b"L", product.shape
    if not matrix.flags.f_contiguous:  # the transpose of its rows is what BLAS reads
        matrix, half, transposed = np.ascontiguousarray(matrix).T, b"U", not transposed
    if product.size:
        number, one = _integer(), np.ones((), dtype)
        _blas(_LETTER[dtype] + name)(
            b"L", half, b"T" if transposed else b"N", b"N", number(n), number(m), one.ctypes.data,
            matrix.ctypes.data, number(n), product.ctypes.data, number(n),
        )  # fmt: skip
    return product.reshape(right.shape)


@functools.cache
def _blas(name: str) -> Callable:
    capsule, signature = _capsule(name)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    count = signature.count(b"*")
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)(pointer(capsule, signature))


@functools.cache
def _integer() -> Callable:
    """A pointer to an integer as SciPy's BLAS counts: 32 bits, or 64 in a few builds."""
    _, signature = _capsule("dtrsm")
    kind = ctypes.c_int if b" int *" in signature else ctypes.c_int64
    return lambda number: ctypes.byref(kind(number))


def _capsule(name: str) -> tuple[object, bytes]:
    """SciPy's pointer, and what it says of its arguments."""
    from scipy.linalg import cython_blas

    capsule = cython_blas.__pyx_capi__[name]
    signature = ctypes.pythonapi.PyCapsule_GetName
    signature.restype, signature.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return capsule, signature(capsule)
