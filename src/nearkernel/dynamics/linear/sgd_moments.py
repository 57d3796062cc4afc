r"""Mean and covariance of SGD on a linear model, over batches, noise and starts: a closed linear recursion.

With theta = theta_0 + c theta_0 + f_A^T a + eta, the coefficients a and their velocity v follow

    e = (z(0) - y) + c f_A theta_0 + K a + f_A eta,   v <- b v - lr_t w * e,   a <- q a + v

where the weights w of a batch have E[w] = 1 and E[w w^T] = W, q = 1 - lr weight_decay, c <- q c - (1 - q) if decay is
to zero, and eta, of covariance s 1, is what noise has made of the parameters: nu <- b nu + lr_t noise, eta <- q eta +
nu. E[(w * e)(w * e)^T] = W * E[e e^T] closes the second moments. Every covariance with eta is a matrix times f_A; every
one with a random start z(0) a matrix times its covariance at the training set: (n, n) matrices are all there is.
"""

import dataclasses
import functools
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._run.memory import require_fits
from ..algorithms.sgd import SGD

Array: TypeAlias = jax.Array | np.ndarray


class Moments(eqx.Module):
    """After some steps: means (N, c) of a and v, and their covariances, (c, c, N, N) for pairs of columns.

    `shift` is the c of theta_0. `with_start` (N, N) and `with_start_v` are the means of a and v per unit of the start.
    Of noise: `s` its variances (eta, eta), (eta, nu), (nu, nu), and covariances (N, N) of a and v with eta and nu.
    """

    a: Array
    v: Array
    shift: Array
    aa: Array
    va: Array
    vv: Array
    with_start: Array
    with_start_v: Array
    s: Array
    a_eta: Array
    a_nu: Array
    v_eta: Array
    v_nu: Array


class Task(eqx.Module):
    """A linear problem: `matrix` K (N, N), `error` z(0) - y and `drift` f_A theta_0 (N, c), both at the mean start.

    `weights` W (N, N); `start`, the covariance of z(0) (N, N) or None; `drifting`, whether a random start drifts with
    theta_0 (features with Gaussian weights).
    """

    matrix: np.ndarray
    error: np.ndarray
    drift: np.ndarray
    weights: np.ndarray
    start: np.ndarray | None = None
    drifting: bool = eqx.field(static=True, default=False)


def weights_of(sgd: SGD, n: int, out: int) -> np.ndarray:
    """W for `n` points with `out` outputs each, which enter together: (n out, n out)."""
    own, both = sgd.weights(n)
    weights = np.full((n, n), both)
    np.fill_diagonal(weights, own)
    return np.kron(weights, np.ones((out, out))) if out > 1 else weights


class TrainedMoments(eqx.Module):
    """Mean and covariance of outputs after SGD, on a `task` and at new points with kernels `cross` k (M, N).

    `spread`, whether anything is random. Covariances and variances take what belongs to the new points themselves:
    `own` k (M, M), and of a random start the covariances `start` of new with training points (M, N) and of new points
    (M, M); for variances the diagonals (M,) of `own` and of the latter.
    """

    task: Task
    reached: Moments
    spread: bool = eqx.field(static=True)

    def loss(self) -> float:
        """The mean of half the sum of squared errors on the training set."""
        task, reached = self.task, self.reached
        mean = task.error + reached.shift * task.drift + task.matrix @ reached.a
        loss = 0.5 * float((mean**2).sum())
        if not self.spread:
            return loss
        covariance = np.asarray(_error_covariance(task, reached))
        return loss + 0.5 * float(np.einsum("iiaa->", covariance))

    def mean(self, start: np.ndarray, drift: np.ndarray, cross: np.ndarray) -> np.ndarray:
        """(M, c), from outputs `start` before training and their `drift` f theta_0 (M, c)."""
        return start + float(self.reached.shift) * drift + cross @ self.reached.a

    def covariance(
        self, cross: np.ndarray, own: np.ndarray, start: tuple[np.ndarray, np.ndarray] | None = None
    ) -> np.ndarray:
        """(c, c, M, M)."""
        m = self.reached
        mixed = cross @ m.a_eta @ cross.T
        alone = mixed + mixed.T + m.s[0] * own
        if start is not None:
            share = float(_start_share(m, self.task))
            mixed = share * cross @ m.with_start @ start[0].T
            alone = alone + mixed + mixed.T + share**2 * start[1]
        eye = np.eye(m.a.shape[1])[:, :, None, None]
        return cross @ m.aa @ cross.T + eye * alone

    def variance(
        self, cross: np.ndarray, own: np.ndarray, start: tuple[np.ndarray, np.ndarray] | None = None
    ) -> np.ndarray:
        """(M, c), the diagonal of `covariance` without the matrix."""
        m = self.reached
        alone = 2.0 * _products(cross @ m.a_eta, cross) + m.s[0] * own
        if start is not None:
            share = float(_start_share(m, self.task))
            mixed = 2.0 * share * _products(cross @ m.with_start, start[0])
            alone = alone + mixed + share**2 * start[1]
        columns = range(m.a.shape[1])
        return np.stack([alone + _products(cross @ m.aa[k, k], cross) for k in columns], axis=1)


def _products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Scalar products of rows."""
    return np.einsum("ij,ij->i", left, right)


def trained_moments(task: Task, sgd: SGD) -> TrainedMoments:
    """After all steps of `sgd`."""
    size, columns = task.error.shape
    spread = sgd.random or task.start is not None
    if spread:
        require_fits(
            8 * (6 * columns**2 + 10) * size**2,
            f"the covariance of SGD on {size} training outputs",
            "use fewer points, or nk.simulate",
        )
    reached = _run(
        task, sgd.rates(), float(sgd.momentum), sgd.kept, float(sgd.noise), spread, sgd.decay_to == "zero"
    )
    return TrainedMoments(task=task, reached=jax.tree.map(np.asarray, reached), spread=spread)


def _transposed(pairs: Array) -> jax.Array:
    """The covariance the other way round: Cov(x_i, y_j)^T = Cov(y_j, x_i)."""
    return jnp.transpose(pairs, (1, 0, 3, 2))


def _start_share(m: Moments, task: Task) -> Array | float:
    """The share of the random initial outputs that remains, apart from the contribution of `a`."""
    return 1.0 + m.shift if task.drifting else 1.0


def _error_covariance(task: Task, m: Moments) -> Array:
    """Of the training errors e, (c, c, N, N)."""
    eye = jnp.eye(m.a.shape[1])[:, :, None, None]
    mixed = task.matrix @ m.a_eta @ task.matrix
    own = mixed + mixed.T + m.s[0] * task.matrix
    if task.start is not None:
        share = _start_share(m, task)
        mixed = share * task.matrix @ m.with_start @ task.start
        own = own + mixed + mixed.T + share**2 * task.start
    return task.matrix @ m.aa @ task.matrix + eye * own


@functools.partial(jax.jit, static_argnames=("spread", "to_zero"))
def _run(
    task: Task, rates: Array, momentum: Array, kept: Array, noise: Array, spread: bool, to_zero: bool
) -> Moments:
    """Moments after steps at learning `rates`; without `spread` means alone."""
    matrix, weights = task.matrix, task.weights
    size, columns = task.error.shape
    eye, unit = jnp.eye(columns)[:, :, None, None], jnp.eye(size)

    def step(m: Moments, rate: Any) -> tuple[Moments, None]:
        e = task.error + m.shift * task.drift + matrix @ m.a
        v = momentum * m.v - rate * e
        shift = kept * m.shift - (1.0 - kept) if to_zero else m.shift
        means = dataclasses.replace(m, a=kept * m.a + v, v=v, shift=shift)
        if not spread:
            return means, None
        share = _start_share(m, task)
        ee = _error_covariance(task, m)
        outer = jnp.einsum("ai,bj->ijab", e, e)
        own_a, own_v = matrix @ m.a_eta.T, matrix @ m.v_eta.T
        if task.start is not None:
            own_a = own_a + share * task.start @ m.with_start.T
            own_v = own_v + share * task.start @ m.with_start_v.T
        ea = matrix @ m.aa + eye * own_a
        ev = matrix @ _transposed(m.va) + eye * own_v
        pulled = rate * momentum * ev
        # E[(w * e)(w * e)^T] = W * E[e e^T]: this is where the second moments close.
        vv = momentum**2 * m.vv - pulled - _transposed(pulled)
        vv = vv + rate**2 * (weights * ee + (weights - 1.0) * outer)
        va = momentum * m.va - rate * ea
        aa = kept**2 * m.aa + kept * (va + _transposed(va)) + vv
        with_v = momentum * m.with_start_v - rate * (share * unit + matrix @ m.with_start)
        # Noise: first what the gradients do to the covariances with eta and nu, then the step of these two.
        v_eta = momentum * m.v_eta - rate * (matrix @ m.a_eta + m.s[0] * unit)
        v_nu = momentum * m.v_nu - rate * (matrix @ m.a_nu + m.s[1] * unit)
        a_eta, a_nu = kept * m.a_eta + v_eta, kept * m.a_nu + v_nu
        s_nu = momentum**2 * m.s[2] + (rate * noise) ** 2
        s_both = kept * momentum * m.s[1] + s_nu
        s_eta = kept**2 * m.s[0] + 2.0 * kept * momentum * m.s[1] + s_nu
        all_moments = dataclasses.replace(
            means,
            aa=aa,
            va=kept * va + vv,
            vv=vv,
            with_start=kept * m.with_start + with_v,
            with_start_v=with_v,
            s=jnp.stack([s_eta, s_both, s_nu]),
            a_eta=kept * a_eta + momentum * a_nu,
            a_nu=momentum * a_nu,
            v_eta=kept * v_eta + momentum * v_nu,
            v_nu=momentum * v_nu,
        )
        return all_moments, None

    inner = size if spread else 0
    means, alone = jnp.zeros((size, columns)), jnp.zeros((inner, inner))
    pairs = jnp.zeros((columns, columns, inner, inner))
    first = Moments(
        a=means, v=means, shift=jnp.zeros(()), aa=pairs, va=pairs, vv=pairs, with_start=alone,
        with_start_v=alone, s=jnp.zeros(3), a_eta=alone, a_nu=alone, v_eta=alone, v_nu=alone,
    )  # fmt: skip
    return jax.lax.scan(step, first, rates)[0]
