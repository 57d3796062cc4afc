"""Newton's method for a convex loss of the values of a function, plus its squared norm."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import one_of, one_real, positive

_STEPS, _TOLERANCE = 200, 1e-11


def logistic(f: jax.Array, y: jax.Array) -> jax.Array:
    """sum log(1 + exp(-y f))."""
    return jnp.sum(jnp.logaddexp(0.0, -y * f))


def minimizer(matrix: np.ndarray, y: np.ndarray, ridge: float, loss: str | Callable) -> np.ndarray:
    """Coefficients a (n,) that minimize loss(K a, y) + ridge/2 a^T K a; see `representer`."""
    ridge = positive(ridge, "ridge")
    if not callable(loss):
        one_of(loss, "loss", ("squared", "logistic"))
        if not np.isin(y, (-1.0, 1.0)).all():
            raise ValueError("`y` must hold -1 and 1 only for the loss 'logistic'.")
        loss = logistic
    value, slope, curvature = _derivatives(loss, jnp.asarray(y))
    a = np.zeros(len(y))
    f = matrix @ a
    if not (np.isfinite(value(f)) and np.isfinite(slope(f)).all()):
        raise ValueError("`loss` or its derivative is not finite at outputs 0: it must be finite there.")
    first = max(float(np.abs(slope(f)).max()), 1e-300)
    for _ in range(_STEPS):
        rest = slope(f) + ridge * a
        if np.abs(rest).max() <= _TOLERANCE * first:
            return a
        # (loss'' K + ridge) step = -(loss' + ridge a): a direction of descent for every convex loss
        step = -np.linalg.solve(curvature(f) @ matrix + ridge * np.eye(len(y)), rest)
        now, size = value(f) + 0.5 * ridge * a @ f, 1.0
        while size > 1e-10:
            there = a + size * step
            if value(matrix @ there) + 0.5 * ridge * there @ matrix @ there <= now + 1e-12 * abs(now):
                break
            size /= 2
        else:
            break
        a = a + size * step
        f = matrix @ a
    raise ValueError(
        "Newton's method found no minimum of `loss`: it must be convex and smooth in the outputs."
    )


def _derivatives(loss: Callable, y: jax.Array) -> tuple[Callable, Callable, Callable]:
    value = jax.jit(lambda f: one_real(loss, "loss(f, y)", f, y))
    slope, curvature = jax.jit(jax.grad(value)), jax.jit(jax.hessian(value))
    return (
        lambda f: float(value(f)),
        lambda f: np.asarray(slope(f), dtype=np.float64),
        lambda f: np.asarray(curvature(f), dtype=np.float64),
    )
