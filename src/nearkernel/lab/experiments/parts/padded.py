"""Networks in the shape of the widest and deepest, points in the number of the most: sliders of sizes compile nothing
anew."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import nearkernel as nk

from ...._run.precision import in_float64


class Switched(nk.models.AbstractModel):
    """A model with one input more, by which its output is multiplied.

    Where that is 0, output and gradient are 0: such a row changes nothing in training.
    """

    model: nk.models.AbstractModel

    @property
    def in_shape(self) -> tuple[int, ...] | None:
        inner = self.model.in_shape
        return None if inner is None else (inner[0] + 1,)

    def init(self, key: Any) -> Any:
        return self.model.init(key)

    def own_factors(self, optimizer: str) -> Any:
        return self.model.own_factors(optimizer)

    @in_float64
    def __call__(self, params: Any, x: Any) -> jax.Array:
        return self.model(params, x[:, :-1]) * x[:, -1:]


def switched(x: np.ndarray) -> np.ndarray:
    """Rows that count."""
    return np.column_stack([x, np.ones(len(x))])


def more_rows(x: np.ndarray, y: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """`x` for a `Switched` model and `y`, with rows that do not count up to `most`."""
    rows = most - len(x)
    return np.pad(switched(x), ((0, rows), (0, 0))), np.pad(y, (0, rows))


def more_neurons(
    net: nk.MLP, theta: list[dict[str, np.ndarray]], most: int
) -> tuple[nk.MLP, list[dict[str, np.ndarray]]]:
    """A network of `most` neurons per hidden layer that computes and learns the same as `net` at `theta`.

    Those added have weights 0 on both sides. Then neither side has a gradient, if the activation is 0 at 0, and they
    never move. Variances of the weights make up for the larger fan-in.
    """
    width, depth = net.widths[0], len(net.widths)
    grown = float(net.weight_var) * most / width
    widened = nk.MLP(
        net.in_dim,
        (most,) * depth,
        net.out_dim,
        net.activation,
        weight_var=(float(net.weight_var), *(grown,) * depth),
        bias_var=(float(net.bias_var),) * (depth + 1),
    )
    shapes = zip(widened.sizes[:-1], widened.sizes[1:], strict=True)
    padded = []
    for entry, (fan_in, fan_out) in zip(theta, shapes, strict=True):
        weight, bias = np.zeros((fan_in, fan_out)), np.zeros(fan_out)
        old = np.asarray(entry["weight"])
        weight[: old.shape[0], : old.shape[1]], bias[: old.shape[1]] = old, np.asarray(entry["bias"])
        padded.append({"weight": weight, "bias": bias})
    return widened, padded


class Shallow(nk.models.AbstractModel):
    """The first `used` hidden layers of `net`, whose hidden layers have one width, and its last layer.

    `used` is not compiled in. The other layers change nothing: they have no gradient, so they never move.
    """

    net: nk.MLP
    used: np.ndarray

    @property
    def in_shape(self) -> tuple[int, ...]:
        return self.net.in_shape

    def init(self, key: Any) -> Any:
        return self.net.init(key)

    def own_factors(self, optimizer: str) -> Any:
        return self.net.own_factors(optimizer)

    @in_float64
    def __call__(self, params: Any, x: Any) -> jax.Array:
        (first, *hidden, last), activation = self.net.layers.layers[::2], self.net.activation
        z = first(params[0], x)
        for k, layer in enumerate(hidden, start=1):
            z = jnp.where(k < self.used, layer(params[k], activation(z)), z)
        return last(params[-1], activation(z))


def more_layers(
    net: nk.MLP, theta: list[dict[str, np.ndarray]], most: int
) -> tuple[Shallow, list[dict[str, np.ndarray]]]:
    """A model of `most` hidden layers that computes and learns the same as `net`, of one width, at `theta`."""
    depth, width = len(net.widths), net.widths[0]
    more = most - depth
    longer = lambda each: (*each[:depth], *(each[depth],) * more, each[depth])
    deepest = nk.MLP(
        net.in_dim, (width,) * most, net.out_dim, net.activation,
        longer(net.weight_var), longer(net.bias_var),
    )  # fmt: skip
    nothing = {"weight": np.zeros((width, width)), "bias": np.zeros(width)}
    return Shallow(deepest, np.asarray(depth)), [*theta[:-1], *[nothing] * more, theta[-1]]
