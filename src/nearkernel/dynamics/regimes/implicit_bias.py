r"""Which interpolating solution gradient flow finds in a diagonal network: the minimum of a potential.

Let $\beta = u^2 - v^2$ with $u$ = `plus` and $v$ = `minus`, both $\alpha \theta_0$ at initialization, and
$s = \alpha^2 \theta_0^2$. The flow keeps $u v$ and moves along $\beta(t) = 2 s \sinh(X^\top \nu(t))$. Among all $\beta$
with $X \beta = y$ it ends at the minimum of

$$Q(\beta) = \sum_i s_i\, q(\beta_i / s_i), \qquad q(u) = 2 - \sqrt{4 + u^2} + u \operatorname{arcsinh}(u/2).$$

For $\alpha \to \infty$, $\alpha^2 Q \to \frac14 \sum_i \beta_i^2/\theta_{0,i}^2$, weighted least squares. For
$\alpha \to 0$, $Q / \log(1/\alpha^2) \to \lVert\beta\rVert_1$, sparse, though slowly: only the logarithm of $\alpha$
counts.
"""

import numpy as np

from ..._base.check import inputs, numeric, positive, targets
from ..._base.rooms import renamed
from ..._base.types import ArrayLike

_MOST_STEPS = 200


def implicit_potential(beta: ArrayLike, alpha: float, theta0: ArrayLike | None = None) -> float:
    r"""The potential $Q(\beta)$ that gradient flow of a diagonal network minimizes among interpolating weights.

    **Arguments:** `beta` (d,); `alpha` > 0, the scale of the initialization; `theta0` (d,), its shape, 1 by default;
    it must be nonzero wherever `beta` is.
    """
    beta = numeric(beta, "beta")
    scale = _scale(alpha, theta0, beta.shape[0] if beta.ndim == 1 else -1, "beta")
    if np.any((scale == 0) & (beta != 0)):
        raise ValueError("`beta` must be 0 wherever `theta0` is 0: these weights never move.")
    u = np.divide(beta, scale, out=np.zeros_like(beta), where=scale > 0)
    # 2 - sqrt(4 + u^2) without cancellation at small u.
    return float(np.sum(scale * (u * np.arcsinh(u / 2) - u**2 / (2 + np.sqrt(4 + u**2)))))


@renamed(X="x")
def implicit_minimizer(
    x: ArrayLike, y: ArrayLike, alpha: float, theta0: ArrayLike | None = None
) -> np.ndarray:
    r"""The weights $\beta$ (d,) to which gradient flow of a diagonal network converges on data it can interpolate.

    Minimizes `implicit_potential` subject to $X \beta = y$ through its convex dual,
    $\sum 2 s \cosh(X^\top \nu) - \nu \cdot y$, by damped Newton steps along a decreasing sequence of $\alpha$.

    **Arguments:** `x` (n, d); `y` (n,); `alpha` > 0, the scale of the initialization; `theta0` (d,) or one number,
    its shape, 1 by default. Weights with $\theta_0 = 0$ stay 0.
    """
    x = inputs(x, "x")
    y = targets(y, len(x), x_name="x", out=1)[:, 0]
    scale = _scale(alpha, theta0, x.shape[1], "x")
    moving = scale > 0
    beta = np.zeros(x.shape[1])
    left, sigma, right = np.linalg.svd(x[:, moving], full_matrices=False)
    kept = sigma > max(x.shape) * np.finfo(float).eps * sigma.max(initial=0.0)
    rows, goal = right[kept], (left[:, kept].T @ y) / sigma[kept]  # orthonormal constraints: rows beta = goal
    missed = np.linalg.norm(x[:, moving] @ (rows.T @ goal) - y)
    if missed > 1e-9 * np.linalg.norm(y):
        raise ValueError(
            "`x` cannot interpolate `y`: no weights give X beta = y (more points than features?)."
        )
    if not np.any(goal):
        return beta
    size = np.abs(rows.T @ goal).max()
    s = scale[moving] / size  # weights in units of the minimum-norm solution
    beta[moving] = size * _dual_newton(rows, goal / size, s)
    return beta


def _dual_newton(rows: np.ndarray, goal: np.ndarray, s: np.ndarray) -> np.ndarray:
    """2 s sinh(rows^T nu) with rows beta = goal, at `s` reached from above by factors of ten."""
    nu = np.zeros(len(rows))
    count = max(1, int(np.ceil(np.log10(max(1.0, 1.0 / s.min())))) + 1)
    for factor in np.geomspace(max(1.0, 1.0 / s.min()), 1.0, count):
        nu = _newton(rows, goal, s * factor, nu, 1e-15 if factor == 1.0 else 1e-4)  # others only lead the way
    return 2 * s * np.sinh(rows.T @ nu)


def _newton(rows: np.ndarray, goal: np.ndarray, s: np.ndarray, nu: np.ndarray, tol: float) -> np.ndarray:
    def look(nu):
        """The dual, its gradient, and the largest entry of that."""
        with np.errstate(over="ignore", invalid="ignore"):
            inner = rows.T @ nu
            gradient = rows @ (2 * s * np.sinh(inner)) - goal
            return np.sum(2 * s * np.cosh(inner)) - nu @ goal, gradient, np.abs(gradient).max()

    value, gradient, size = look(nu)
    for _ in range(_MOST_STEPS):
        if size < tol * (1 + np.abs(goal).max()):
            break
        step = -np.linalg.solve((rows * (2 * s * np.cosh(rows.T @ nu))) @ rows.T, gradient)
        length = 1.0
        while length > 1e-9:
            new_value, new_gradient, new_size = look(nu + length * step)
            # Near the end the value is lost in rounding, and the gradient tells.
            if new_value <= value + 1e-4 * length * (gradient @ step) or new_size < 0.5 * size:
                break
            length /= 2
        if length <= 1e-9 or (size < 1e-10 and new_size >= size):
            break
        nu, value, gradient, size = nu + length * step, new_value, new_gradient, new_size
    return nu


def _scale(alpha: float, theta0: ArrayLike | None, d: int, name: str) -> np.ndarray:
    """s = alpha^2 theta_0^2 (d,)."""
    if d < 0:
        raise ValueError(f"`{name}` must be a vector (d,).")
    alpha = positive(alpha, "alpha")
    shape = np.ones(d) if theta0 is None else numeric(theta0, "theta0")
    shape = np.full(d, shape) if shape.ndim == 0 else shape
    if shape.shape != (d,):
        raise ValueError(f"`theta0` must have shape ({d},), one value per feature; got {shape.shape}.")
    if not np.any(shape):
        raise ValueError("`theta0` is 0: no weight would move; give at least one nonzero value.")
    return alpha**2 * shape**2
