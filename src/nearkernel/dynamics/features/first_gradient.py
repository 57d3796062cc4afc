r"""The gradient of a ReLU neuron before anything is learned, as a series in the derivatives of the target.

For $f(x) = \sum_j a_j\, \text{relu}(w_j \cdot x + b_j) = 0$ at initialization, the loss $\mathbb{E}(f - f_*)^2$,
$x \sim \mathcal{N}(0, 1)$ and $\lVert w\rVert = 1$,

$$\frac{dL}{dw} = -2 a\, \mathbb{E}[f_*(x)\, x\, 1_{w \cdot x + b > 0}]
= -2 a \sum_k \frac{1}{k!} \left[c_{k+1} C_{k+1}(w^k) + c_{k+2}\, w\, C_k(w^k)\right]$$

with $C_k = \mathbb{E}[\nabla^k f_*]$ and $c_k = \mathbb{E}[\text{relu}^{(k)}(z + b)]$. Along a random $w$ the $k$-th
term is of size $d^{-k/2}$. For a target without constant and linear part, the first term is $-2 a H w/\sqrt{2\pi}$ and
the next $a\, w\, (w \cdot H w)/\sqrt{2\pi}$, with $H = C_2$. For a polynomial of degree $p$ the sum ends with $k = p$,
where only its second half is left.
"""

import numpy as np
from numpy.polynomial.hermite_e import hermeval
from scipy.special import ndtr

from ..._base.check import inputs, numeric, whole
from ..._base.types import ArrayLike
from ...models.target_directions import MultiIndexPolynomial


def first_gradient(
    target: MultiIndexPolynomial,
    weights: ArrayLike,
    head: ArrayLike = 1.0,
    bias: ArrayLike = 0.0,
    order: int | None = None,
) -> np.ndarray:
    r"""The gradient $dL/dw_j$ of each neuron (m, d) at an initialization with zero output, for standard normal inputs.

    **Arguments:** `target`; `weights` (m, d), without zero rows; `head`, $a_j$, (m,) or one number; `bias`, $b_j$, (m,)
    or one number; `order`: the highest power of w to include; None includes all powers and is exact. Order 1 is $-2 a H
    w/(\lVert w\rVert \sqrt{2 \pi})$.
    """
    if not isinstance(target, MultiIndexPolynomial):
        raise TypeError(f"`target` must be an nk.theory.MultiIndexPolynomial; got {type(target).__name__}.")
    weights = inputs(weights, "weights", target.directions.shape[1])
    lengths = np.linalg.norm(weights, axis=1)
    if lengths.min() == 0:
        raise ValueError(
            "`weights` has a row of zeros: a neuron without weights has no direction; remove it."
        )
    head, bias = (_per_neuron(value, name, len(weights)) for value, name in ((head, "head"), (bias, "bias")))
    last = target.degree if order is None else min(whole(order, "order", 0), target.degree)
    unit, shift = weights / lengths[:, None], bias / lengths
    latent = unit @ target.directions.T
    total = np.zeros_like(weights)
    for k in range(last + 1):
        total += _hermite(k + 1, shift)[:, None] * (_slope(target, k + 1, latent) @ target.directions)
        total += (_hermite(k + 2, shift) * _form(target, k, latent))[:, None] * unit
    return -2 * head[:, None] * total


def _hermite(k: int, shift: np.ndarray) -> np.ndarray:
    """c_k = E[relu(z + b) He_k(z)] for k >= 1."""
    if k == 1:
        return ndtr(shift)
    return hermeval(-shift, [0.0] * (k - 2) + [1.0]) * np.exp(-(shift**2) / 2) / np.sqrt(2 * np.pi)


def _form(target: MultiIndexPolynomial, k: int, u: np.ndarray) -> np.ndarray:
    """C_k(u^k)/k! = sum over |a| = k of c_a u^a, (m,)."""
    found = np.zeros(len(u))
    for powers, c in zip(target.powers, target.coefficients, strict=True):
        if powers.sum() == k:
            found += c * np.prod(u**powers, axis=1)
    return found


def _slope(target: MultiIndexPolynomial, k: int, u: np.ndarray) -> np.ndarray:
    """C_k(u^(k-1))/(k-1)!, the gradient of `_form`, (m, r)."""
    found = np.zeros_like(u)
    for powers, c in zip(target.powers, target.coefficients, strict=True):
        if powers.sum() == k:
            for i in np.flatnonzero(powers):
                lower = powers - np.eye(len(powers), dtype=int)[i]
                found[:, i] += c * powers[i] * np.prod(u**lower, axis=1)
    return found


def _per_neuron(value: ArrayLike, name: str, count: int) -> np.ndarray:
    array = numeric(value, name)
    if array.shape not in ((), (count,)):
        raise ValueError(f"`{name}` must be one number or have shape ({count},); got {array.shape}.")
    return np.broadcast_to(array, (count,))
