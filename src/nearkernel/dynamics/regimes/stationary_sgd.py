r"""Stochastic gradient descent when it has become stationary: what it gains by gradients it loses by noise.

A step is $\theta \leftarrow \theta - \eta\, g$ with the gradient $g$ of a random batch. If the distribution of $\theta$
no longer changes, then averages over it satisfy, to all orders in $\eta$,

$$\langle\nabla L\rangle = 0, \qquad
\langle\theta\, \nabla L^\top\rangle + \langle\nabla L\, \theta^\top\rangle = \eta\, \langle C\rangle, \qquad
\langle\theta \cdot \nabla L\rangle = \frac{\eta}{2} \langle\operatorname{tr} C\rangle$$

with $C = \mathbb{E}[g g^\top]$ the second moment (not the covariance) of batch gradients. Batches of $b$ of the $n$
points, drawn without replacement, with gradients $g = \frac{n}{b} \sum_{\text{batch}} g_i$ and full gradient $G$, have

$$C = \frac{n}{b} \left((1 - r) \sum_i g_i g_i^\top + r\, G G^\top\right), \qquad r = \frac{b - 1}{n - 1}.$$
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax.flatten_util import ravel_pytree

from ..._base.check import inputs, numeric, positive, shown, targets, whole
from ..._base.keys import Key, random_key
from ..._base.result import Result
from ..._base.status import Status, StatusKind
from ..._base.types import ArrayLike
from ..._run.memory import require_fits
from ..._run.precision import in_float64
from ...models.base import AbstractModel, Params
from ...models.params import checked_params, root_factors, training_factors
from ..algorithms.losses import AnyLoss, get_loss, require_loss
from ..algorithms.sgd import SGD
from ..simulation.simulate import Record, Trajectory, simulate

_EVERY = 10  # steps between two looks at both sides of the relation
_FIRST_WINDOW = 400
_STATIONARY = Status(StatusKind.stationary, "stationary")


class StationarySGD(Result, eqx.Module):
    r"""The stationary distribution of SGD on a linear model: first and second moments of its parameters.

    **Fields:** `mean` (f,), the least-squares weights; `covariance` (f, f) of the weights; `gradient_moment` (f,
    f), $\langle C\rangle$; `dissipation`, $\langle\theta \cdot \nabla L\rangle$, and `fluctuation`,
    $\frac{\eta}{2} \langle\mathrm{tr}\, C\rangle$, which are equal; `loss`, the mean loss; `status`, an `nk.Status`:
    stationary or diverged; `ok`.
    """

    mean: np.ndarray
    covariance: np.ndarray
    gradient_moment: np.ndarray
    dissipation: float
    fluctuation: float
    loss: float
    status: Status = eqx.field(static=True)

    @property
    def ok(self) -> bool:
        return self.status.ok


def sgd_stationary(features: ArrayLike, y: ArrayLike, sgd: SGD) -> StationarySGD:
    r"""The exact stationary moments of SGD on a linear model, $\phi \cdot \theta$, with the squared loss.

    Solves $S = S - \eta (H S + S H) + \eta^2 C(S)$ for the covariance $S$. If the second moment grows forever, which
    happens before the learning rate reaches $2/\lambda_{\max}$, the status says so and the moments are infinite.

    **Arguments:** `features`, $\phi$, (n, f), of full column rank; `y` (n,); `sgd`, an `nk.SGD` with `lr` and
    `batch_size` only.
    """
    phi = inputs(features, "features")
    y = targets(y, len(phi), x_name="features", out=1)[:, 0]
    n, f = phi.shape
    lr, share, rest = plain_sampling(sgd, n)
    if np.linalg.matrix_rank(phi) < f:
        raise ValueError(
            f"`features` must have full column rank {f}: SGD has no stationary distribution along flat directions."
        )
    require_fits(24 * f**4, f"the moment equation of {f} features", "use fewer features")
    mean = np.linalg.lstsq(phi, y, rcond=None)[0]
    residual = phi @ mean - y
    hessian = phi.T @ phi

    def moment(second: np.ndarray, noise: np.ndarray) -> np.ndarray:
        each = np.einsum("if,fg,ig->i", phi, second, phi) + noise
        return share * (phi.T * each) @ phi + rest * hessian @ second @ hessian

    eye = np.eye(f)
    quartic = np.einsum("ia,ib,ic,id->abcd", phi, phi, phi, phi, optimize=True).reshape(f * f, f * f)
    kept = lr * (np.kron(hessian, eye) + np.kron(eye, hessian))
    kept = kept - lr**2 * (share * quartic + rest * np.kron(hessian, hessian))
    # A step maps S to (1 - kept) S, which keeps positive matrices positive: its largest eigenvalue is its radius.
    try:
        factor = scipy.linalg.cho_factor(kept)
    except np.linalg.LinAlgError:
        growth = 1 - float(scipy.linalg.eigvalsh(kept, subset_by_index=[0, 0])[0])
        infinite = np.full((f, f), np.inf)
        message = (
            f"not stationary: at lr = {lr:.4g} the second moment grows by a factor of {growth:.4g} per step"
        )
        status = Status(StatusKind.diverged, message)
        return StationarySGD(mean, infinite, infinite, np.inf, np.inf, np.inf, status)
    source = lr**2 * moment(np.zeros((f, f)), residual**2)
    covariance = scipy.linalg.cho_solve(factor, source.ravel()).reshape(f, f)
    covariance = 0.5 * (covariance + covariance.T)
    gradient = moment(covariance, residual**2)
    spread = float(np.sum(hessian * covariance))
    return StationarySGD(
        mean=mean,
        covariance=covariance,
        gradient_moment=gradient,
        dissipation=spread,
        fluctuation=float(0.5 * lr * np.trace(gradient)),
        loss=float(0.5 * residual @ residual + 0.5 * spread),
        status=_STATIONARY,
    )


def plain_sampling(sgd: object, n: int) -> tuple[float, float, float]:
    """lr, and the factors of sum_i g_i g_i^T and of G G^T in the second moment of a batch gradient."""
    if not isinstance(sgd, SGD):
        raise TypeError(f"`sgd` must be an nk.SGD; got {type(sgd).__name__}.")
    if not sgd.plain:
        raise ValueError(
            "`sgd` must have no momentum, weight_decay, schedule or noise: use nk.SGD(lr, batch_size, steps)."
        )
    own, both = sgd.weights(n)
    return float(sgd.lr), own - both, both


@in_float64
def gradient_moment(
    model: AbstractModel,
    params: Params,
    x: ArrayLike,
    y: ArrayLike,
    batch_size: int,
    loss: AnyLoss = "squared",
) -> np.ndarray:
    r"""The second moment $C = \mathbb{E}[g g^\top]$ (P, P) of the gradient of a random batch at fixed `params`.

    **Arguments:** `model`; `params`; `x` (n, d); `y`; `batch_size`; `loss`: same as `nk.simulate`.
    """
    x, y, function = checked_data(model, params, x, y, loss)
    _, share, rest = plain_sampling(SGD(1.0, batch_size, 1), len(x))
    params = jax.tree.map(lambda leaf: jnp.asarray(numeric(leaf, "params")), params)
    each = np.asarray(_gradients(model, params, x, y, function))
    total = each.sum(axis=0)
    return share * each.T @ each + rest * np.outer(total, total)


def checked_data(
    model: AbstractModel, params: Params, x: ArrayLike, y: ArrayLike, loss: AnyLoss, name: str = "params"
) -> tuple[np.ndarray, np.ndarray, Callable]:
    checked_params(model, params, name)
    x = inputs(x, "x", model.in_shape)
    function = get_loss(loss)
    columns = np.asarray(function.columns(y, len(x), jax.eval_shape(model, params, x[:1]).shape[1]))
    require_loss(function, lambda: model(params, x), columns)
    return x, columns, function


def _point_gradient(model, params, x, y, loss):
    return ravel_pytree(jax.grad(lambda p: loss(model(p, x[None]), y[None]))(params))[0]


@jax.jit(static_argnums=4)
def _gradients(model, params, x, y, loss):
    return jax.vmap(lambda a, b: _point_gradient(model, params, a, b, loss))(x, y)


def fluctuation_observables(
    model: AbstractModel,
    origin: Params,
    x: ArrayLike,
    y: ArrayLike,
    sgd: SGD,
    loss: AnyLoss = "squared",
    *,
    lr_factors: Params | float | None = None,
) -> dict[str, Callable]:
    r"""Both sides of the fluctuation-dissipation relation as observables for `nk.Record`.

    Their averages agree when SGD is stationary.

    **Arguments:** `model`, `x`, `y`, `sgd`, `loss`, `lr_factors`: same as `nk.simulate`; `origin`, parameters from
    which $\theta$ is measured. Any origin is valid, because $\langle\nabla L\rangle = 0$; one near the mean has the
    smallest fluctuations.

    **Returns:** a dict of two functions of the parameters: dissipation, $(\theta - \text{origin}) \cdot
    \nabla L$, and fluctuation, $\frac{\eta}{2} \operatorname{tr} C$, with $C$ of gradients times
    the roots of the learning-rate factors.
    """
    x, y, function = checked_data(model, origin, x, y, loss, "origin")
    lr, share, rest = plain_sampling(sgd, len(x))
    origin = jax.tree.map(lambda leaf: numeric(leaf, "origin"), origin)
    arguments = (model, x, y, function, lr, share, rest, _roots(model, origin, lr_factors))
    return {
        "dissipation": lambda params: _dissipation_and_fluctuation(params, origin, *arguments)[0],
        "fluctuation": lambda params: _dissipation_and_fluctuation(params, origin, *arguments)[1],
    }


@in_float64
def _roots(model: AbstractModel, params: Params, lr_factors: Params | float | None) -> np.ndarray | float:
    """Roots of learning-rate factors: parameters divided by them train with one learning rate."""
    found = root_factors(training_factors(model, params, lr_factors), params)
    return 1.0 if found is None else np.asarray(found)


def _dissipation_and_fluctuation(params, origin, model, x, y, loss, lr, share, rest, roots):
    """(theta - origin) . grad L and lr/2 tr C, point by point: memory for two gradients only."""

    def add(sums, row):
        gradient = roots * _point_gradient(model, params, row[0], row[1], loss)
        return (sums[0] + gradient, sums[1] + jnp.sum(gradient**2)), None

    moved = ravel_pytree(jax.tree.map(jnp.subtract, params, origin))[0]
    moved = jnp.where(roots > 0, moved / jnp.where(roots > 0, roots, 1.0), 0.0)
    start = (jnp.zeros_like(moved), jnp.zeros((), moved.dtype))
    (total, squares), _ = jax.lax.scan(add, start, (jnp.asarray(x), jnp.asarray(y)))
    return moved @ total, 0.5 * lr * (share * squares + rest * total @ total)


class _Anchored(AbstractModel):
    """A model that carries along parameters which it does not use, and which therefore do not move."""

    model: AbstractModel

    def init(self, key):
        theta = self.model.init(key)
        return {"theta": theta, "origin": theta}

    def __call__(self, params, x):
        return self.model(params["theta"], x)


@in_float64
def sgd_until_stationary(
    model: AbstractModel,
    params: Params,
    x: ArrayLike,
    y: ArrayLike,
    sgd: SGD,
    key: Key,
    *,
    tol: float = 0.1,
    loss: AnyLoss = "squared",
    lr_factors: Params | float | None = None,
) -> Trajectory:
    r"""Runs SGD until its fluctuations balance its dissipation: a criterion for stopping or lowering the learning rate.

    It averages over windows of 400, 800, 1600, ... steps, with $\theta$ measured from the beginning of the window,
    until $\langle\theta \cdot \nabla L\rangle$ agrees with $\frac{\eta}{2} \langle\mathrm{tr}\, C\rangle$ to a
    relative `tol` in two consecutive windows. Over a window of $T$ steps the two differ by $\lVert\theta_T -
    \theta_0\rVert^2 / (2 \eta T)$, which decreases with $T$ if $\theta$ fluctuates around one point, and does not if
    it drifts.

    **Arguments:** `model`, `params`, `x`, `y`, `key`, `loss`, `lr_factors`: same as `nk.simulate`; `sgd`, whose `steps`
    is the maximum number of steps; `tol`.

    **Returns:** a `Trajectory` with "dissipation" and "fluctuation" in its history; its status is `stationary`,
    `not_converged` or `diverged`.
    """
    positive(tol, "tol")
    key = random_key(key)
    if not isinstance(sgd, SGD):
        raise TypeError(f"`sgd` must be an nk.SGD; got {shown(sgd)}.")
    most = whole(sgd.steps, "steps", _FIRST_WINDOW)
    x, y, function = checked_data(model, params, x, y, loss)
    arguments = (model, x, y, function, *plain_sampling(sgd, len(x)), _roots(model, params, lr_factors))
    factors = training_factors(model, params, lr_factors)
    both = 1.0 if factors is None else {"theta": factors, "origin": factors}
    sides = {
        "dissipation": lambda pair: _dissipation_and_fluctuation(pair["theta"], pair["origin"], *arguments)[
            0
        ],
        "fluctuation": lambda pair: _dissipation_and_fluctuation(pair["theta"], pair["origin"], *arguments)[
            1
        ],
    }
    record, anchored = Record(sides, every=_EVERY), _Anchored(model)
    histories: list[dict] = []
    done, window, ratio, near = 0, _FIRST_WINDOW, np.nan, False
    while done + window <= most:
        run = simulate(
            anchored,
            {"theta": params, "origin": params},  # the same observables for every window: one compilation
            x,
            y,
            SGD(sgd.lr, sgd.batch_size, window, batches=sgd.batches),
            record,
            loss=loss,
            lr_factors=both,
            key=jax.random.fold_in(key, len(histories)),
        )
        history = {name: values[:-1] for name, values in run.history.items()}
        histories.append({**history, "time": history["time"] + done})
        params, done = run.params["theta"], done + window
        if not run.ok:
            return Trajectory(params, _joined(histories), run.status, done)
        ratio = float(history["dissipation"].mean() / history["fluctuation"].mean())
        near, before = abs(ratio - 1) < tol, near
        if near and before:
            return Trajectory(params, _joined(histories), _STATIONARY, done)
        window *= 2
    message = f"not stationary after {done} steps: dissipation / fluctuation = {ratio:.3g}"
    return Trajectory(params, _joined(histories), Status(StatusKind.not_converged, message), done)


def _joined(histories: list[dict]) -> dict:
    return {name: np.concatenate([history[name] for history in histories]) for name in histories[0]}
