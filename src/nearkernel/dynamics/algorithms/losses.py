"""What training makes small. Losses are sums over points, never means; a new one is one class."""

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import ClassVar, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from ..._base.check import nearest, one_real, plain_array, positive, shown, targets
from ..._base.types import Array, ArrayLike
from ..._run.precision import is_traced

_ROUNDING = 1e-5  # of probabilities that come in float32


@dataclasses.dataclass(frozen=True)
class AbstractLoss(abc.ABC):
    """A sum over points of a differentiable function of the outputs `z` (n, out) and the targets `y` (n, out).

    A new loss is a frozen dataclass with `__call__`. It may also define which targets it accepts (`columns`), class
    probabilities (`probabilities`), and the Fisher information (`fisher`).
    """

    name: ClassVar[str] = ""
    quadratic: ClassVar[bool] = False  # whether the derivative by z is z - y: then theory is in closed form

    @abc.abstractmethod
    def __call__(self, z: jax.Array, y: jax.Array) -> jax.Array:
        """The sum over points."""

    def columns(self, y: ArrayLike, n: int, out: int | None = None) -> Array:
        """`y` as targets (`n`, out), checked; `out` is None if any number of outputs is allowed."""
        if is_traced(y):
            y = jnp.asarray(y)
            return y[:, None] if y.ndim == 1 else y
        return targets(y, n, out=out)

    def is_vector(self, y: ArrayLike) -> bool:
        """Whether predictions have the shape (m,) because `y` has the shape (n,)."""
        return np.ndim(y) == 1

    def probabilities(self, z: ArrayLike) -> np.ndarray:
        """Class probabilities (..., out) of outputs `z` (..., out)."""
        raise ValueError(f"`probabilities` need classes: train with loss='cross_entropy', not {self.label}.")

    def fisher(self, z: jax.Array, dz: jax.Array) -> jax.Array:
        """F `dz` with F the Fisher information of the outputs `z`, for labels drawn from the model."""
        raise ValueError(
            '`loss` must be "squared" or "cross_entropy": other losses do not define a distribution of labels.'
        )

    @property
    def label(self) -> str:
        """The name of the loss in messages."""
        return repr(self.name) if self.name else repr(self)


@dataclasses.dataclass(frozen=True)
class Squared(AbstractLoss):
    r"""The squared loss, $\frac12 \sum (z - y)^2$."""

    name: ClassVar[str] = "squared"
    quadratic: ClassVar[bool] = True

    def __call__(self, z: jax.Array, y: jax.Array) -> jax.Array:
        return 0.5 * jnp.sum((z - y) ** 2)

    def fisher(self, z: jax.Array, dz: jax.Array) -> jax.Array:
        return dz


@dataclasses.dataclass(frozen=True)
class CrossEntropy(AbstractLoss):
    r"""The cross-entropy $-\sum y \log \mathrm{softmax}(z)$; `y` holds probabilities (n, classes) or labels (n,)."""

    name: ClassVar[str] = "cross_entropy"

    def __call__(self, z: jax.Array, y: jax.Array) -> jax.Array:
        return -jnp.sum(y * jax.nn.log_softmax(z, axis=-1))

    def columns(self, y: ArrayLike, n: int, out: int | None = None) -> Array:
        if is_traced(y):
            y = jnp.asarray(y)
            if out is not None and y.ndim == 1 and jnp.issubdtype(y.dtype, jnp.integer):
                return jax.nn.one_hot(y, out)
            return super().columns(y, n, out)
        raw = plain_array(y, "y")
        if raw.ndim == 1 and raw.dtype.kind in "iu":
            return _one_hot(raw, n, out)
        found = targets(y, n, out=out)
        if found.shape[1] < 2:
            raise ValueError(
                '`loss="cross_entropy"` needs integer labels in `y` (n,), or one column per class (one-hot); got one '
                f"column of {raw.dtype.name}."
            )
        _require_probabilities(found)
        return found

    def is_vector(self, y: ArrayLike) -> bool:
        return False

    def probabilities(self, z: ArrayLike) -> np.ndarray:
        return scipy.special.softmax(z, axis=-1)

    def fisher(self, z: jax.Array, dz: jax.Array) -> jax.Array:
        p = jax.nn.softmax(z, axis=-1)
        scores = p[:, None, :] - jnp.eye(z.shape[1])  # (n, label, out): dl/dz if the label were that
        return jnp.einsum("nc,nco,ncj,nj->no", p, scores, scores, dz)


@dataclasses.dataclass(frozen=True)
class Huber(AbstractLoss):
    r"""The Huber loss, which limits the influence of outliers.

    It is $r^2/2$ for $r = |z - y| \le \delta$, and $\delta\,(r - \delta/2)$ beyond.

    **Arguments:** `delta`, $\delta$ > 0.
    """

    delta: float = 1.0
    name: ClassVar[str] = "huber"

    def __post_init__(self):
        positive(self.delta, "delta")

    def __call__(self, z: jax.Array, y: jax.Array) -> jax.Array:
        size = jnp.abs(z - y)
        near = jnp.minimum(size, self.delta)
        return jnp.sum(near * (size - 0.5 * near))


@dataclasses.dataclass(frozen=True)
class FunctionLoss(AbstractLoss):
    """Any JAX function loss(z, y) that is a sum over points."""

    function: Callable

    def __call__(self, z: jax.Array, y: jax.Array) -> jax.Array:
        return self.function(z, y)


AnyLoss: TypeAlias = str | AbstractLoss | Callable[[jax.Array, jax.Array], jax.Array]
_NAMED: dict[str, AbstractLoss] = {loss.name: loss for loss in (Squared(), CrossEntropy(), Huber())}

_SOUND = {type(loss) for loss in _NAMED.values()}  # finite, and so are their derivatives


def loss_of_zero(loss: AbstractLoss, y: Array, outputs: Array | None = None) -> float:
    """The size of the loss of outputs 0, beside which losses are small or not; 0 if it is not finite."""
    size = abs(float(loss(jnp.zeros_like(y if outputs is None else outputs), jnp.asarray(y))))
    return size if math.isfinite(size) else 0.0


def require_loss(loss: AbstractLoss, outputs: Callable[[], Array], y: Array) -> None:
    """Raises unless `loss` is one number, finite and with a finite derivative, at `outputs()` (n, out) and `y`.

    Outputs that are traced or infinite tell nothing of its values.
    """
    if type(loss) in _SOUND:
        return
    z = outputs()
    value = lambda z: one_real(loss.function if isinstance(loss, FunctionLoss) else loss, "loss(z, y)", z, y)
    jax.eval_shape(value, z)
    if is_traced(z, y) or not np.isfinite(z).all():
        return
    found, slope = jax.value_and_grad(value)(jnp.asarray(z, float))
    if not (jnp.isfinite(found) and jnp.isfinite(slope).all()):
        wrong = f"returns {found:g}" if not jnp.isfinite(found) else "has a derivative that is not finite"
        raise ValueError(f"`loss` {wrong} at the outputs before training: it must be finite there.")


def get_loss(loss: AnyLoss) -> AbstractLoss:
    """A loss by its name, as itself, or of any JAX function loss(z, y)."""
    if isinstance(loss, AbstractLoss):
        return loss
    if callable(loss) and not isinstance(loss, type):
        return FunctionLoss(loss)
    if isinstance(loss, str) and loss in _NAMED:
        return _NAMED[loss]
    raise ValueError(
        f"`loss` must be one of {', '.join(map(repr, _NAMED))}, a loss such as nk.dynamics.Huber(0.5), or a JAX "
        f"function loss(z, y); got {shown(loss)}.{nearest(loss, tuple(_NAMED))}"
    )


def _one_hot(labels: np.ndarray, n: int, out: int | None) -> np.ndarray:
    targets(labels, n)
    classes = max(int(labels.max(initial=0)) + 1, 2) if out is None else out
    if labels.min(initial=0) < 0 or labels.max(initial=0) >= classes:
        raise ValueError(
            f"`y` as labels must be integers from 0 to {classes - 1}, one per output; got {int(labels.min())} to "
            f"{int(labels.max())}."
        )
    return np.eye(classes)[labels]


def _require_probabilities(y: np.ndarray) -> None:
    wrong = (y.min(axis=1) < -_ROUNDING) | (np.abs(y.sum(axis=1) - 1.0) > _ROUNDING)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            '`loss="cross_entropy"` needs rows of `y` that are probabilities, at least 0 and with sum 1; row '
            f"{row} has the sum {y[row].sum():.4g} and the smallest value {y[row].min():.4g}."
        )
