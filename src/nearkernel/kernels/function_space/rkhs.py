"""Functions of a kernel's Hilbert space: representer form, norms and inner products, and their feature form."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import numpy as np
import scipy.linalg
import scipy.optimize

from ..._base.check import finite_number, finite_result, inputs, numeric, positive
from ..._base.result import Result
from ..._base.types import ArrayLike, Number
from ..._run.precision import in_float64
from ..algebra import Multiple, Product, Sum
from ..classical.stationary import Linear, Polynomial
from ..features import AbstractFeatureKernel
from .norm_minimizer import minimizer
from .positivity import KernelLike, cross, gram, positive_gram


class RKHSFunction(Result, eqx.Module):
    r"""A function of the kernel's reproducing kernel Hilbert space, $f = \sum_i a_i\, k(x_i, \cdot)$.

    The inner product is $\langle f, g\rangle = a^\top k(x, x')\, b$, and $k(x, \cdot)$ has the reproducing property:
    $\langle f, k(x, \cdot)\rangle = f(x)$, so $|f(x)| \le \lVert f\rVert \sqrt{k(x, x)}$. Functions of the same kernel
    can be added, subtracted and scaled.

    **Arguments:** `kernel`, of this library or any function k(x1, x2) -> (n1, n2); `x` (n, d); `coefficients` a (n,).
    """

    kernel: KernelLike
    x: np.ndarray
    coefficients: np.ndarray

    def __init__(self, kernel: KernelLike, x: ArrayLike, coefficients: ArrayLike):
        self.kernel = kernel
        self.x = inputs(x)
        self.coefficients = numeric(coefficients, "coefficients")
        if self.coefficients.shape != (len(self.x),):
            raise ValueError(
                f"`coefficients` must have shape ({len(self.x)},), one per point; got {self.coefficients.shape}."
            )

    def __call__(self, x_new: ArrayLike) -> np.ndarray:
        """$f(x)$ at new points (m, d): (m,)."""
        return cross(self.kernel, inputs(x_new, "x_new", self.x.shape[1:]), self.x) @ self.coefficients

    def inner(self, other: "RKHSFunction") -> float:
        r"""The inner product $\langle f, g\rangle$ with `other`, a function of the same kernel."""
        self._require_same_space(other)
        return float(self.coefficients @ cross(self.kernel, self.x, other.x) @ other.coefficients)

    def norm(self) -> float:
        r"""The norm $\lVert f\rVert = \sqrt{a^\top K a}$."""
        square = self.coefficients @ gram(self.kernel, self.x) @ self.coefficients
        if square < 0:
            positive_gram(self.kernel, self.x)  # raises, unless it is a rounding error
        return float(np.sqrt(max(finite_result(square, "`coefficients` are"), 0.0)))

    def weights(self) -> np.ndarray:
        r"""The same function in feature form, $w$ (f,): $f(x) = \phi(x) \cdot w$ and $\lVert w\rVert = \lVert f\rVert$.

        $\phi$ is `feature_map` of the kernel.
        """
        return feature_map(self.kernel, self.x).T @ self.coefficients

    def __add__(self, other: object) -> "RKHSFunction":
        if not isinstance(other, RKHSFunction):
            return NotImplemented
        self._require_same_space(other)
        both = np.concatenate([self.coefficients, other.coefficients])
        return RKHSFunction(self.kernel, np.concatenate([self.x, other.x]), both)

    def __mul__(self, factor: Number) -> "RKHSFunction":
        factor = finite_number(factor, "the factor of a function")
        return RKHSFunction(self.kernel, self.x, factor * self.coefficients)

    __rmul__ = __mul__

    def __sub__(self, other: object) -> "RKHSFunction":
        return self + (-1.0 * other if isinstance(other, RKHSFunction) else other)

    def _require_same_space(self, other: object) -> None:
        if not isinstance(other, RKHSFunction):
            raise TypeError(f"`other` must be an RKHSFunction; got {type(other).__name__}.")
        if self.kernel is not other.kernel and not eqx.tree_equal(self.kernel, other.kernel):
            raise ValueError("the two functions have different kernels, so they belong to different spaces.")
        if self.x.shape[1] != other.x.shape[1]:
            raise ValueError(
                f"the two functions have inputs of {self.x.shape[1]} and {other.x.shape[1]} features."
            )


@in_float64
def representer(
    kernel: KernelLike, x: ArrayLike, y: ArrayLike, ridge: float = 0.0, loss: str | Callable = "squared"
) -> RKHSFunction:
    r"""The function that minimizes $\text{loss}(f(x), y) + \frac{\lambda}{2} \lVert f\rVert^2$ over the whole space.

    By the representer theorem it is a combination of the $k(x_i, \cdot)$. For the squared loss
    $\frac12 \sum_i (f(x_i) - y_i)^2$ the coefficients are $a = (K + \lambda)^{-1} y$; with $\lambda = 0$ this is the
    minimum-norm interpolant (or the least-squares solution, if no function of the space interpolates). Other losses
    are minimized by Newton's method; at the minimum $a = -\text{loss}'(f)/\lambda$.

    **Arguments:**

    - `kernel`: positive semidefinite.
    - `x`: inputs (n, d).
    - `y`: targets (n,).
    - `ridge`: $\lambda \ge 0$, and > 0 for losses other than "squared".
    - `loss`: "squared"; "logistic", $\sum \log(1 + e^{-y f})$ with `y` of -1 and 1; or any JAX function loss(f, y) of
      vectors (n,) that is convex and smooth in f.
    """
    x, y = inputs(x), numeric(y, "y")
    if y.shape != (len(x),):
        raise ValueError(f"`y` must have shape ({len(x)},), one value per point; got {y.shape}.")
    ridge = positive(ridge, "ridge", zero=True)
    matrix = positive_gram(kernel, x)
    if not isinstance(loss, str) or loss != "squared":
        return RKHSFunction(kernel, x, minimizer(matrix, y, ridge, loss))
    if ridge > 0:
        shifted = matrix + ridge * np.eye(len(x))
        return RKHSFunction(kernel, x, scipy.linalg.solve(shifted, y, assume_a="pos"))
    values, vectors = scipy.linalg.eigh(matrix)
    real = values > len(x) * np.finfo(float).eps * values[-1]
    return RKHSFunction(kernel, x, vectors[:, real] @ ((vectors[:, real].T @ y) / values[real]))


class NormBoundedResult(NamedTuple):
    """A minimizer `function` (an `RKHSFunction`) and its `ridge`, which is 0 if the norm bound is not active."""

    function: RKHSFunction
    ridge: float


@in_float64
def norm_bounded(kernel: KernelLike, x: ArrayLike, y: ArrayLike, norm: float) -> NormBoundedResult:
    r"""The minimizer of $\sum_i (f(x_i) - y_i)^2$ over $\lVert f\rVert \le$ `norm`, with its equivalent ridge.

    $\lVert f\rVert^2 = y^\top K (K + \lambda)^{-2} y$ decreases as the ridge $\lambda$ grows, so every norm below the
    norm of the interpolant corresponds to one ridge.

    **Arguments:** `kernel`, positive semidefinite; `x` (n, d); `y` (n,); `norm` > 0.
    """
    norm = float(positive(norm, "norm"))
    free = representer(kernel, x, y)
    if free.norm() <= norm:
        return NormBoundedResult(free, 0.0)
    values, vectors = scipy.linalg.eigh(positive_gram(kernel, free.x))
    parts = np.maximum(values, 0.0) * (vectors.T @ numeric(y, "y")) ** 2

    def excess(log_ridge: float) -> float:
        return 0.5 * np.log(np.sum(parts / (values + np.exp(log_ridge)) ** 2)) - np.log(norm)

    high = 0.5 * np.log(parts.sum()) - np.log(norm)  # |f| <= sqrt(y^T K y) / ridge
    low = high - 1.0
    while excess(low) < 0:
        low -= 2 * (high - low)
    ridge = float(np.exp(scipy.optimize.brentq(excess, low, high + 1e-9, xtol=1e-13)))
    return NormBoundedResult(representer(kernel, x, y, ridge), ridge)


@in_float64
def feature_map(kernel: KernelLike, x: ArrayLike) -> np.ndarray:
    """Explicit features (n, f) of a kernel of finite rank: `feature_map(k, x) @ feature_map(k, y).T` is k(x, y).

    **Arguments:** `kernel`: linear, polynomial, of given or random features, or made by `mercer`; also sums (features
    side by side), products (all products of two features) and multiples of such kernels. `x`: inputs (n, d).
    """
    x = inputs(x)
    if isinstance(kernel, Linear):
        return x
    if isinstance(kernel, Polynomial | AbstractFeatureKernel):
        return finite_result(np.asarray(kernel.features(x), dtype=np.float64), "features of `x` are")
    if isinstance(kernel, Multiple):
        return np.sqrt(float(kernel.factor)) * feature_map(kernel.kernel, x)
    if isinstance(kernel, Sum | Product):
        left, right = feature_map(kernel.left, x), feature_map(kernel.right, x)
        if isinstance(kernel, Sum):
            return np.column_stack([left, right])
        return (left[:, :, None] * right[:, None, :]).reshape(len(x), -1)
    raise TypeError(
        f"`kernel` {getattr(kernel, '__name__', type(kernel).__name__)} has no finite feature map: "
        "nk.theory.mercer(kernel, x) gives the leading features."
    )
