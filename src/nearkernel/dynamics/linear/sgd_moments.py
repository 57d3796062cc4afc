r"""Mean and covariance of SGD on a linear model, over batches, noise and starts: a closed linear recursion.

With theta = theta_0 + c theta_0 + f_A^T a + eta, the coefficients a and their velocity v follow

    e = (z(0) - y) + c f_A theta_0 + K a + f_A eta,   v <- b v - lr_t w * e,   a <- q a + v

where the weights w of a batch have E[w] = 1 and E[w w^T] = W, q = 1 - lr weight_decay, c <- q c - (1 - q) if decay is
to zero, and eta, of covariance s 1, is what noise has made of the parameters: nu <- b nu + lr_t noise, eta <- q eta +
nu. E[(w * e)(w * e)^T] = W * E[e e^T] closes the second moments. Every covariance with eta is a matrix times f_A; every
one with a random start z(0) a matrix times its covariance at the training set: (n, n) matrices are all there is.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..._run.memory import require_fits
from ..algorithms.sgd import SGD


class Moments(NamedTuple):
    """After some steps: means (N, c) of a and v, and their covariances, (c, c, N, N) for pairs of columns.

    `shift` is the c of theta_0. `with_start` (N, N) and `with_start_v` are the means of a and v per unit of the start.
    Of noise: `s` its variances (eta, eta), (eta, nu), (nu, nu), and covariances (N, N) of a and v with eta and nu.
    """

    a: Any
    v: Any
    shift: Any
    aa: Any
    va: Any
    vv: Any
    with_start: Any
    with_start_v: Any
    s: Any
    a_eta: Any
    a_nu: Any
    v_eta: Any
    v_nu: Any


class Task(NamedTuple):
    """A linear problem: `matrix` K (N, N), `error` z(0) - y and `drift` f_A theta_0 (N, c), both at the mean start.

    `weights` W (N, N); `start`, the covariance of z(0) (N, N) or None; `drifting`, whether a random start drifts with
    theta_0 (features with Gaussian weights).
    """

    matrix: np.ndarray
    error: np.ndarray
    drift: np.ndarray
    weights: np.ndarray
    start: np.ndarray | None
    drifting: bool


def weights_of(sgd: SGD, n: int, out: int) -> np.ndarray:
    """W for `n` points with `out` outputs each, which enter together: (n out, n out)."""
    own, both = sgd.weights(n)
    found = np.full((n, n), both)
    np.fill_diagonal(found, own)
    return np.kron(found, np.ones((out, out))) if out > 1 else found


def moments_after(task: Task, sgd: SGD) -> Moments:
    """After all steps of `sgd`."""
    size, columns = task.error.shape
    drawn = sgd.random or task.start is not None
    if drawn:
        require_fits(
            8 * (6 * columns**2 + 10) * size**2,
            f"the covariance of SGD on {size} training outputs",
            "use fewer points, or nk.simulate",
        )
    start = task.start if task.start is not None else np.zeros((0, 0))
    return jax.tree.map(
        np.asarray,
        _run(
            task.matrix,
            task.error,
            task.drift,
            task.weights,
            start,
            sgd.rates(),
            (float(sgd.momentum), sgd.kept, float(sgd.noise)),
            task.start is not None,
            drawn,
            task.drifting,
            sgd.decay_to == "zero",
        ),
    )


def _transposed(pairs):
    """The covariance the other way round: Cov(x_i, y_j)^T = Cov(y_j, x_i)."""
    return jnp.transpose(pairs, (1, 0, 3, 2))


def start_share(shift, drifting: bool):
    """How much of a random start is still in the outputs, beside what a made of it."""
    return 1.0 + shift if drifting else 1.0


def error_covariance(task: Task, m: Moments) -> np.ndarray:
    """Of the training errors e, (c, c, N, N)."""
    return np.asarray(_errors(task.matrix, task.start, start_share(m.shift, task.drifting), m))


def _errors(matrix, start, share, m: Moments):
    eye = jnp.eye(m.a.shape[1])[:, :, None, None]
    mixed = matrix @ m.a_eta @ matrix
    own = mixed + mixed.T + m.s[0] * matrix
    if start is not None:
        mixed = share * matrix @ m.with_start @ start
        own = own + mixed + mixed.T + share**2 * start
    return matrix @ m.aa @ matrix + eye * own


@functools.partial(jax.jit, static_argnums=(7, 8, 9, 10))
def _run(matrix, error, drift, weights, start, rates, numbers, started, drawn, drifting, to_zero):
    momentum, kept, noise = numbers
    size, columns = error.shape
    eye, unit = jnp.eye(columns)[:, :, None, None], jnp.eye(size)
    covariance = start if started else None

    def step(m: Moments, rate):
        e = error + m.shift * drift + matrix @ m.a
        v = momentum * m.v - rate * e
        shift = kept * m.shift - (1.0 - kept) if to_zero else m.shift
        m_new = m._replace(a=kept * m.a + v, v=v, shift=shift)
        if not drawn:
            return m_new, None
        share = start_share(m.shift, drifting)
        ee = _errors(matrix, covariance, share, m)
        outer = jnp.einsum("ai,bj->ijab", e, e)
        own_a, own_v = matrix @ m.a_eta.T, matrix @ m.v_eta.T
        if started:
            own_a = own_a + share * covariance @ m.with_start.T
            own_v = own_v + share * covariance @ m.with_start_v.T
        ea = matrix @ m.aa + eye * own_a
        ev = matrix @ _transposed(m.va) + eye * own_v
        pulled = rate * momentum * ev
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
        return (
            m_new._replace(
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
            ),
            None,
        )

    def zero(*shape):
        return jnp.zeros(shape)

    inner = size if drawn else 0
    pairs, alone = (columns, columns, inner, inner), (inner, inner)
    first = Moments(
        zero(size, columns), zero(size, columns), zero(), zero(*pairs), zero(*pairs), zero(*pairs),
        zero(*alone), zero(*alone), zero(3), zero(*alone), zero(*alone), zero(*alone), zero(*alone),
    )  # fmt: skip
    return jax.lax.scan(step, first, rates)[0]


class NewOutputs(NamedTuple):
    """What is needed at new points: `start` and `drift` (M, c), `cross` k (M, N), `own` k (M, M) or its diagonal."""

    start: np.ndarray
    drift: np.ndarray
    cross: np.ndarray
    own: np.ndarray


def output_mean(new: NewOutputs, m: Moments) -> np.ndarray:
    """(M, c)."""
    return new.start + float(m.shift) * new.drift + new.cross @ m.a


def output_covariance(
    new: NewOutputs, m: Moments, start: tuple[np.ndarray, np.ndarray] | None, share: float
) -> np.ndarray:
    """(c, c, M, M); `start` has the covariances of a random start, new with training (M, N) and new (M, M)."""
    mixed = new.cross @ m.a_eta @ new.cross.T
    own = mixed + mixed.T + m.s[0] * new.own
    if start is not None:
        mixed = share * new.cross @ m.with_start @ start[0].T
        own = own + mixed + mixed.T + share**2 * start[1]
    eye = np.eye(m.a.shape[1])[:, :, None, None]
    return new.cross @ m.aa @ new.cross.T + eye * own


def output_variance(
    new: NewOutputs, m: Moments, start: tuple[np.ndarray, np.ndarray] | None, share: float
) -> np.ndarray:
    """(M, c), the diagonal of `output_covariance` without the matrix.

    `new.own` and the second part of `start` are (M,), the diagonals of theirs.
    """
    own = 2.0 * _products(new.cross @ m.a_eta, new.cross) + m.s[0] * new.own
    if start is not None:
        own = own + 2.0 * share * _products(new.cross @ m.with_start, start[0]) + share**2 * start[1]
    columns = range(m.a.shape[1])
    return np.stack([own + _products(new.cross @ m.aa[k, k], new.cross) for k in columns], axis=1)


def _products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Of row with row."""
    return np.einsum("ij,ij->i", left, right)
