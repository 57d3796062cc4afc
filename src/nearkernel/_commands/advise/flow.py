"""How signals and gradients grow over the hidden layers: predicted, and measured on random networks."""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

import nearkernel as nk

from ..._run.blas import one_thread
from .blocks import Block
from .starts import Start

_DRAWN_WEIGHTS = 6 * 10**7  # all networks of one initialization together, a second or two
_MOST_WEIGHTS = 4 * 10**8  # ... if so few networks as below need more
_MOST_NETWORKS = 32
_FEWEST_NETWORKS = 4
# Of a uniform number: its range, the factor that makes its variance 1, whether erfinv makes it normal before that.
LAWS = {
    "uniform": (1.0, math.sqrt(3.0), False),
    "normal": (1.0, math.sqrt(2.0), True),
    "truncated_normal": (math.erf(math.sqrt(2.0)), math.sqrt(2.0) / 0.87962566103423978, True),  # cut at 2
}
LAWS["orthogonal"] = LAWS["normal"]  # of biases


@dataclasses.dataclass(frozen=True)
class Flow:
    """Mean squares in hidden layers 1 ... L: of the signal, and of a small change that was 1 in layer 1; each (L,)."""

    signal: np.ndarray
    gradient: np.ndarray
    signal_error: np.ndarray  # relative standard errors
    gradient_error: np.ndarray
    networks: int = 0
    width: int = 0
    alike: np.ndarray | None = None  # correlation of two tokens, of transformers
    alike_error: np.ndarray | None = None

    @property
    def signal_factor(self) -> float:
        """By how much the size (root of the mean square) of the signal changes from the first to the last layer."""
        return float(np.sqrt(self.signal[-1] / self.signal[0]))

    @property
    def gradient_factor(self) -> float:
        return float(np.sqrt(self.gradient[-1]))

    @property
    def signal_factor_sem(self) -> float:
        return self.signal_factor * float(np.hypot(self.signal_error[-1], self.signal_error[0])) / 2

    @property
    def gradient_factor_sem(self) -> float:
        return self.gradient_factor * float(self.gradient_error[-1]) / 2


def predicted(
    activation: str, block: Block, start: Start, depth: int, width: int, in_dim: int, size: float
) -> Flow:
    """At infinite width, for inputs of mean square `size`.

    K' = C_b + C_W E[s^2] and the product of C_W E[s'^2]; if z is normalized, with averages at variance 1 and gradients
    over K; if it is added, plus K and 1.
    """
    weight_var, bias_var = start.first(in_dim, width)
    signal, gradient = [bias_var + weight_var * size], [1.0]
    weight_var, bias_var = start.variances(width, width)
    s = nk.activations.get(activation)
    for _ in range(depth - 1):
        k = signal[-1]
        moments = nk.theory.moments(s, 1.0 if block.norm else k)
        slope = weight_var * float(moments.slope) / (max(k, 1e-300) if block.norm else 1.0)
        signal.append(block.skip * k + bias_var + weight_var * float(moments.value))
        gradient.append(gradient[-1] * (block.skip + slope))
    zero = np.zeros(depth)
    return Flow(np.array(signal), np.array(gradient), zero, zero)


def measured(
    activation: str, block: Block, start: Start, depth: int, width: int, in_dim: int, size: float, seed: int
) -> Flow:
    """The same on random networks, each drawn as the framework draws it; narrower ones if they would take too long."""
    drawn_width = min(width, int(np.sqrt(_MOST_WEIGHTS / _FEWEST_NETWORKS / depth)))
    networks = int(np.clip(_DRAWN_WEIGHTS // (depth * drawn_width**2), _FEWEST_NETWORKS, _MOST_NETWORKS))
    first = start.first(in_dim, width)
    inner = start.variances(width, width)
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(seed), networks)
        signal, gradient = _draw(
            nk.activations.get(activation),
            (block.norm, block.skip, start.law == "orthogonal"),
            LAWS[start.law],
            depth,
            drawn_width,
            min(in_dim, 4096),
            first,
            inner,
            size,
            keys,
        )
    mean_signal, signal_error = mean_and_error(np.asarray(signal))
    mean_gradient, gradient_error = mean_and_error(np.asarray(gradient))
    return Flow(mean_signal, mean_gradient, signal_error, gradient_error, networks, drawn_width)


def mean_and_error(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over networks and its relative standard error; squares of 1e-200 would be lost."""
    mean = draws.mean(axis=0)
    relative = draws / np.where(mean > 0, mean, 1.0)
    return mean, relative.std(axis=0, ddof=1) / np.sqrt(len(draws))


@functools.partial(jax.jit, static_argnums=(1, 3, 4, 5))
def _draw(activation, kind, law, depth: int, width: int, in_dim: int, first, inner, size, keys):
    """(networks, depth) each: mean squares of the preactivations and of a change of them, layer by layer.

    A layer's weights are drawn when they are needed and forgotten: memory holds one layer.
    """

    def affine(key, vectors, variances):
        """A random layer on two rows of `vectors`, with variances C_W / fan_in and C_b; the bias on the first only."""
        weight_key, bias_key = jax.random.split(key)
        weight_var, bias_var = variances
        fan_in = vectors.shape[1]
        bias = standard(law, bias_key, (width,)).astype(vectors.dtype)
        if orthogonal:
            moved = _turned(weight_key, vectors, width)
        else:
            moved = vectors @ standard(law, weight_key, (fan_in, width)).astype(vectors.dtype)
        return (jnp.sqrt(weight_var / fan_in) * moved).at[0].add(jnp.sqrt(bias_var) * bias)

    norm, skip, orthogonal = kind
    head = (lambda z: activation(nk.layers.LayerNorm()(None, z[None])[0])) if norm else activation

    def network(key):
        keys = jax.random.split(key, depth + 2)
        x = jax.random.normal(keys[0], (1, in_dim))
        x = x * jnp.sqrt(size / jnp.mean(x**2))
        z = affine(keys[1], jnp.concatenate([x, jnp.zeros_like(x)]), first)[0]
        change = jax.random.normal(keys[2], (width,))
        change = change / jnp.sqrt(jnp.mean(change**2))

        def layer(carry, key):
            z, change, log_scale = carry
            made = affine(key, jnp.stack(jax.jvp(head, (z,), (change,))), inner)
            z, change = made + jnp.stack([z, change]) if skip else made
            root = jnp.sqrt(jnp.mean(change**2))  # kept at 1, so that it neither under- nor overflows
            log_scale = log_scale + jnp.log(jnp.maximum(root, 1e-300))
            return (z, change / jnp.maximum(root, 1e-300), log_scale), (
                jnp.mean(z**2),
                jnp.exp(2 * log_scale),
            )

        _, (signal, gradient) = jax.lax.scan(layer, (z, change, 0.0), keys[3:])
        return jnp.concatenate([jnp.mean(z**2)[None], signal]), jnp.concatenate([jnp.ones(1), gradient])

    return jax.lax.map(network, keys)


def _turned(key, vectors, width: int) -> jax.Array:
    """Two rows after a random orthogonal matrix whose entries have variance 1; only lengths and angle matter to it."""
    size = max(vectors.shape[1], width)
    one, other = jax.random.normal(key, (2, size))
    one = one / jnp.linalg.norm(one)
    other = other - (one @ other) * one
    frame = jnp.stack([one, other / jnp.linalg.norm(other)])
    a, b = vectors
    length = jnp.maximum(jnp.linalg.norm(a), 1e-300)
    along = a @ b / length
    across = jnp.sqrt(jnp.maximum(b @ b - along**2, 0.0))
    return jnp.sqrt(size) * (jnp.array([[length, 0.0], [along, across]]) @ frame)[:, :width]


def orthogonal_weights(rng: np.random.Generator, count: int, fan_in: int, fan_out: int) -> np.ndarray:
    """(count, fan_in, fan_out), rows or columns orthogonal, entries of variance 1 / fan_in.

    By NumPy: within a compiled program that keeps all threads busy, JAX's factorization may never end.
    """
    tall = rng.normal(size=(count, max(fan_in, fan_out), min(fan_in, fan_out)))
    with one_thread():
        q, r = np.linalg.qr(tall)
    q = q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None]
    return np.sqrt(max(fan_in, fan_out) / fan_in) * (q if fan_in >= fan_out else q.swapaxes(1, 2))


def drawn_layer(law, key, fan_in: int, fan_out: int, weight_var, bias_var=0.0) -> dict[str, jax.Array]:
    """Weights (fan_in, fan_out) of variance C_W / fan_in and biases (fan_out,) of variance C_b."""
    weight, bias = jax.random.split(key)
    return {
        "weight": jnp.sqrt(weight_var / fan_in) * standard(law, weight, (fan_in, fan_out)),
        "bias": jnp.sqrt(bias_var) * standard(law, bias, (fan_out,)),
    }


def through(layer: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    """x W + b."""
    return x @ layer["weight"] + layer["bias"]


def standard(law, key, shape) -> jax.Array:
    """Mean 0 and variance 1, in float32, since drawing takes the time here; one compilation for all laws."""
    reach, scale, normal = (jnp.asarray(part) for part in law)
    uniform = reach.astype(jnp.float32) * jax.random.uniform(key, shape, jnp.float32, -1 + 1e-7, 1)
    return scale.astype(jnp.float32) * jnp.where(normal, jax.scipy.special.erfinv(uniform), uniform)


def verdict(flow: Flow) -> str:
    """What becomes of a network that starts so, in a word or two. Powers of the depth are fine, as tanh has them."""
    large = max(10.0, len(flow.signal))
    for factor, words in ((flow.gradient_factor, ""), (flow.signal_factor, "signal ")):
        if factor < 1 / large:
            return f"{words}vanishes"
        if factor > large:
            return f"{words}explodes"
    return "fine"
