r"""Features from one large gradient step: an algorithm that beats fixed kernels on targets of few directions.

The network $f(x) = \sum_j a_j\, \text{relu}(w_j \cdot x + b_j)$ with $w_j \sim \mathcal{N}(0, 1/d)$, $a_j = \pm 1$ and
$b_j = 0$ has output 0 at initialization, because neuron $m + 1 - j$ has $w_j$ and $-a_j$. One step of size $\eta$ on
the $w_j$ alone, with weight decay $1/\eta$, removes the initial weights and leaves

$$w_j = -\eta\, \frac{dL}{dw_j} = 2 \eta\, a_j\, \frac1n \sum_i y_i x_i\, 1_{w_j \cdot x_i > 0}
\approx 2 \eta\, a_j\, \frac{H w_j}{\sqrt{2\pi}\, \lVert w_j\rVert},$$

so that all neurons lie in the span of $H = \mathbb{E}[\nabla^2 f_*]$, the directions on which the target depends. The
constant and linear part of $y$, which would outweigh $H$, are subtracted before. Then the biases are drawn again, and
the head is ridge regression.
"""

import dataclasses

import equinox as eqx
import numpy as np

from ..._base.check import between, finite_result, inputs, positive, targets, whole
from ..._base.keys import Key, generator
from ..._base.result import Result
from ..._base.status import Status, StatusKind
from ..._base.types import ArrayLike
from ..._run.memory import require_fits, rows_that_fit
from ..algorithms.spectral import GradientDescent
from .last_layer import RidgeHead
from .subspace import checked_subspace, subspace_overlap, top_directions

_SPREAD = 0.5  # root mean square of w.x after the step, where the biases are of size 1


class OneStepFeaturesResult(Result, eqx.Module):
    r"""Features $\text{relu}(W x + b)$ after one gradient step.

    **Fields:** `weights` W (m, d); `biases` b (m,); `start` (m, d), the weights before the step; `signs` (m, out),
    the initial head; `constant` (out,) and `linear` (d, out), the part of y that was subtracted; `lr`, $\eta$,
    where $1/\eta$ is the weight decay; `hessian`, the estimate $\frac1n \sum_i y_i (x_i x_i^\top - 1)$ of $H$, (d, d)
    or (out, d, d). If a true subspace was given (otherwise None): `overlap` of the r leading directions of W with it;
    `share`, the fraction of $\lVert W\rVert^2$ within it.
    """

    weights: np.ndarray
    biases: np.ndarray
    start: np.ndarray
    signs: np.ndarray
    constant: np.ndarray
    linear: np.ndarray
    lr: float
    hessian: np.ndarray
    overlap: float | None
    share: float | None
    vector: bool = eqx.field(static=True)

    @property
    def weight_decay(self) -> float:
        r"""The weight decay $1/\eta$, for which the step removes the initial weights."""
        return 1.0 / self.lr

    def __call__(self, x: ArrayLike) -> np.ndarray:
        """The learned features (n, m) of `x` (n, d)."""
        x = inputs(x, "x", self.weights.shape[1])
        require_fits(
            8 * len(x) * len(self.weights), f"{len(self.weights)} features of {len(x)} points", "use fewer"
        )
        return np.maximum(x @ self.weights.T + self.biases, 0.0)

    def removed(self, x: ArrayLike) -> np.ndarray:
        """The subtracted constant and linear parts (n, out) at `x`."""
        return self.constant + inputs(x, "x", self.weights.shape[1]) @ self.linear

    def directions(self, count: int) -> np.ndarray:
        """The `count` leading directions (count, d) of the weights W, an estimate of the true subspace."""
        return top_directions(self.weights.T @ self.weights, count)

    def overlap_with(self, subspace: ArrayLike) -> float:
        r"""The overlap of true directions `subspace` (r, d) with learned ones: 1 if they agree, $r/d$ if random.

        With the projections $P$ on both, it is $\lVert P_{\text{learned}} P_{\text{true}}\rVert^2 / r$.
        """
        true = checked_subspace(subspace, self.weights.shape[1])
        return subspace_overlap(self.directions(len(true)), true)

    def share_in(self, subspace: ArrayLike) -> float:
        r"""The fraction $\lVert W P\rVert^2/\lVert W\rVert^2$ of the weights in true directions; initially $r/d$.

        $P$ is the projection on the true directions, `subspace` (r, d).
        """
        basis = np.linalg.qr(checked_subspace(subspace, self.weights.shape[1]).T)[0]
        return (
            float(np.sum((self.weights @ basis) ** 2) / np.sum(self.weights**2))
            if self.weights.any()
            else 0.0
        )

    def fit(
        self, x: ArrayLike, y: ArrayLike, ridge: float, descent: "GradientDescent | bool" = False
    ) -> "OneStepNetwork":
        r"""Fits the head $a$ to `x`, `y`: minimizes $\frac12 \sum (f - y)^2 + \frac{\text{ridge}}{2} \lVert
        a\rVert^2$.

        **Arguments:** `ridge` >= 0; `descent`: False, the closed form; True, gradient descent (heavy ball at its
        optimal rate) to convergence; or an `nk.GradientDescent`. Descent starts from `signs`.
        """
        x = inputs(x, "x", self.weights.shape[1])
        left = targets(y, len(x), out=len(self.constant)) - self.removed(x)
        positive(ridge, "ridge", zero=True)
        problem = RidgeHead(self(x), left)
        if descent is False:
            return OneStepNetwork(self, problem.exact(ridge), Status(StatusKind.converged, "closed form"))
        chosen = problem.best_descent(ridge) if descent is True else descent
        if not isinstance(chosen, GradientDescent):
            raise TypeError(
                f"`descent` must be True, False or an nk.GradientDescent; got {type(descent).__name__}."
            )
        return OneStepNetwork(self, *problem.descended(ridge, chosen, self.signs))


class OneStepNetwork(eqx.Module):
    r"""The trained network $c + l \cdot x + \sum_j a_j\, \mathrm{relu}(w_j \cdot x + b_j)$.

    **Fields:** `features`, a `OneStepFeaturesResult`; `head` a (m, out); `status`, an `nk.Status`: how the head was
    found, and its `ok`.
    """

    features: OneStepFeaturesResult
    head: np.ndarray
    status: Status = eqx.field(static=True)

    @property
    def ok(self) -> bool:
        return self.status.ok

    def predict(self, x_new: ArrayLike) -> np.ndarray:
        """Outputs at `x_new` (m, d), in the shape of `y`; infinite where descent diverges."""
        x_new = inputs(x_new, "x_new", self.features.weights.shape[1])
        found = np.full((len(x_new), self.head.shape[1]), np.inf)
        chunk = rows_that_fit(8 * len(self.head))
        for at in range(0, len(x_new) if np.isfinite(self.head).all() else 0, chunk):
            part = x_new[at : at + chunk]
            found[at : at + chunk] = self.features.removed(part) + self.features(part) @ self.head
        return found[:, 0] if self.features.vector else found


def one_step_features(
    x: ArrayLike,
    y: ArrayLike,
    width: int = 800,
    key: Key | None = None,
    *,
    lr: float | None = None,
    subspace: ArrayLike | None = None,
    head: float | None = None,
) -> OneStepFeaturesResult:
    r"""Features learned by one large gradient step on the first layer of a two-layer ReLU network.

    The weight decay is $1/\eta$ with $\eta$ = `lr`. The formulas hold for isotropic inputs, ideally standard normal:
    standardize other inputs. The constant and linear parts of $y$ are subtracted by least squares; in the limit of many
    points they are the means of $y$ and $y x$.

    **Arguments:**

    - `x` (n, d), `y` (n,) or (n, out).
    - `width`: number of neurons m, even.
    - `key`: for drawing weights, signs and biases; `jax.random.key(0)` by default.
    - `lr`: size of the step, for the mean of $(f - y)^2$; by default the mean square of $w_j \cdot x$ after the step
      is $0.5^2$, so `lr` grows as $\sqrt d$ and does not depend on the units of x or y.
    - `subspace`: true directions (r, d), if known, for comparison.
    - `head`: None for neurons in pairs of opposite signs, so that the output is 0 at initialization; a number for
      independent neurons with $a_j = \pm$ `head`, whose small output at initialization enters the gradient.

    ```python
    features = nk.theory.one_step_features(x, y, 800, jax.random.key(0))
    network = features.fit(x, y, ridge=0.1)
    network.predict(x_new), features.directions(2)
    ```
    """
    x = inputs(x)
    vector = np.ndim(y) == 1
    y = targets(y, len(x))
    n, d = x.shape
    if whole(width, "width", 2) % 2:
        raise ValueError(f"`width` must be even, because neurons come in pairs; got {width}.")
    if lr is not None:
        between(positive(lr, "lr"), "lr", 1e-150, 1e150)
    if head is not None:
        between(positive(head, "head"), "head", 1e-150, 1e150)
    require_fits(6 * 8 * width * max(d, 1), f"`width` = {width} neurons of {d} inputs", "use fewer")
    true = None if subspace is None else checked_subspace(subspace, d)
    constant, linear = _linear_part(x, y)
    rest = y - constant - x @ linear
    rest[:, np.linalg.norm(rest, axis=0) < 1e-10 * np.linalg.norm(y, axis=0)] = 0.0  # rounding is no signal
    rng = generator(0 if key is None else key)
    if head is None:
        half = rng.normal(size=(width // 2, d)) / np.sqrt(d)
        sign = rng.choice([-1.0, 1.0], (width // 2, y.shape[1]))
        start, signs = np.concatenate([half, half[::-1]]), np.concatenate([sign, -sign[::-1]])
        gradient = np.concatenate([g := _gradient(x, rest, half, sign), -g[::-1]])
    else:
        start = rng.normal(size=(width, d)) / np.sqrt(d)
        signs = head * rng.choice([-1.0, 1.0], (width, y.shape[1]))
        gradient = _gradient(x, rest - _outputs(x, start, signs), start, signs)
    if lr is None:
        size = np.sqrt(np.mean((gradient @ (x.T @ x / n)) * gradient) * d)
        lr = _SPREAD / size if size > 0 else 1.0
    weights = -lr * gradient
    hessian = np.einsum("io,ij,ik->ojk", rest, x, x, optimize=True) / n - rest.mean(axis=0)[
        :, None, None
    ] * np.eye(d)
    made = OneStepFeaturesResult(
        weights=finite_result(weights, "1 / (`x` times `y`) is"),
        biases=rng.normal(size=width),
        start=start,
        signs=signs,
        constant=constant,
        linear=linear,
        lr=float(lr),
        hessian=hessian[0] if vector else hessian,
        overlap=None,
        share=None,
        vector=vector,
    )
    if true is None:
        return made
    return dataclasses.replace(made, overlap=made.overlap_with(true), share=made.share_in(true))


def _linear_part(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(out,) and (d, out) by least squares, of minimum norm where points are fewer than features."""
    center = x.mean(axis=0)
    linear = np.linalg.lstsq(x - center, y - y.mean(axis=0), rcond=None)[0]
    return y.mean(axis=0) - center @ linear, linear


def _outputs(x: np.ndarray, weights: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """sum_j a_j relu(w_j.x), (n, out)."""
    total, chunk = np.zeros((len(x), signs.shape[1])), rows_that_fit(8 * 2 * len(x))
    for at in range(0, len(weights), chunk):
        total += np.maximum(x @ weights[at : at + chunk].T, 0.0) @ signs[at : at + chunk]
    return total


def _gradient(x: np.ndarray, y: np.ndarray, weights: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """dL/dw_j of mean (f - y)^2, from what f leaves of y: -2 a_j mean_i [y_i x_i 1(w_j.x_i > 0)], (m, d)."""
    found = np.empty_like(weights)
    chunk = rows_that_fit(8 * 2 * len(x))
    for at in range(0, len(weights), chunk):
        part = slice(at, at + chunk)
        active = x @ weights[part].T > 0
        found[part] = (-2 / len(x)) * ((y @ signs[part].T) * active).T @ x
    return found
