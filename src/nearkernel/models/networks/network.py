"""Networks made of layers."""

import abc
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax

from ..._base.check import sizes
from ..._base.keys import Key, random_key
from ..._base.types import ArrayLike
from ..._run.memory import require_fits
from ..._run.precision import drawing, in_float64, is_traced, working_dtype
from ..base import AbstractModel, Params, in_one_dtype, rows_of
from ..containers.repeat import grouped
from ..containers.sequential import Sequential, layer_list, plain
from ..layers.base import AbstractLayer, AbstractWideLayer, Shape, located
from ..layers.conv import AbstractFilter
from ..layers.dense import Dense
from ..layers.flatten import Dropout
from ..layers.weights import AbstractWeights
from ..params import require_params


class AbstractNetwork(AbstractModel):
    """A model that is a sequence of layers."""

    @property
    @abc.abstractmethod
    def in_shape(self) -> Shape:
        """The shape of one input."""

    @property
    @abc.abstractmethod
    def layers(self) -> Sequential:
        """The layers of the network."""

    @drawing
    def init(self, key: Key) -> Params:
        key = random_key(key)
        self.require_memory(key)
        return _draw(self.layers, key, self.in_shape)

    def require_memory(self, key: Key) -> None:
        """Raises `MemoryError` if the parameters, and the random bits to draw them with `key`, do not fit."""
        if is_traced(key):
            return
        sizes = [leaf.size for leaf in jax.tree.leaves(self.parameter_shapes())] or [0]
        require_fits(
            working_dtype().itemsize
            * (sum(sizes) + 2 * max(sizes)),  # a draw makes as many random bits, twice
            f"`init` of a network with {sum(sizes):,} parameters",
            "use fewer neurons; infinite-width theory needs none",
        )

    @in_float64
    def parameter_shapes(self) -> Params:
        return jax.eval_shape(lambda key: self.layers.init(key, self.in_shape), jax.random.key(0))

    @in_float64
    def __call__(self, params: Params, x: ArrayLike, key: Key | None = None) -> jax.Array:
        require_params(self, params)
        params, x = in_one_dtype(params, rows_of(x, self.in_shape))
        return self.layers.run(plain if key is None else _dropping(random_key(key)), params, x)

    @in_float64
    def lr_factors(self) -> Params:
        """Learning-rate factors of gradient descent, a tree like the parameters, by the layers' parametrizations.

        They are those of the `nk.MLP` with the same layers. Training uses them unless told otherwise.
        """
        return self.layers.lr_factors(self.in_shape)

    def own_factors(self, optimizer: str) -> Params | None:
        # Steps of Adam do not depend on the size of a gradient.
        return self.lr_factors() if optimizer == "sgd" else None

    @property
    def maximal(self) -> bool:
        """Whether it is in the maximal update parametrization, which has no kernels."""
        return self.tuned_width() is not None

    def tuned_width(self) -> int | None:
        """Of the maximal update parametrization, the width at which it is the standard network."""
        return None

    @property
    def mean_field(self) -> bool:
        """Whether a layer has mean-field scaling; the tangent kernel then changes even at infinite width."""
        return any(
            isinstance(layer, Dense) and layer.parametrization == "mean_field"
            for layer in leaves(self.layers)
        )

    def readout(self) -> Dense | None:
        """The last layer, if it is dense and acts on the features of hidden layers; None otherwise."""
        *hidden, last = self.layers.layers
        if not isinstance(last, Dense) or not any(layer.has_params() for layer in hidden):
            return None
        return last if len(Sequential(hidden).shape(self.in_shape)) == 1 else None

    def hidden_features(self, params: Params, x: jax.Array) -> jax.Array:
        """The inputs of the last layer, (n, width), at `params` and `x`, of a network that has a `readout`."""
        return Sequential(self.layers.layers[:-1])(params[:-1], x)

    def layer_outputs(self, params: Params, x: jax.Array) -> list[jax.Array]:
        """Outputs of every layer with parameters, at `params` and `x`, in the order in which they are computed."""
        found: list[jax.Array] = []

        def leaf(layer: AbstractLayer, own: Params, x: jax.Array) -> jax.Array:
            after = layer(own, x)
            if layer.has_params():
                found.append(after)
            return after

        self.layers.run(leaf, params, x)
        return found

    def cut(self, layer: int) -> tuple[Sequential, Sequential]:
        """The layers up to layer `layer` = 1, 2, ... of those with parameters, and the layers after it."""
        places = [k for k, each in enumerate(self.layers.layers) if each.has_params()]
        end = places[layer - 1] + 1
        return Sequential(self.layers.layers[:end]), Sequential(self.layers.layers[end:])

    def of_width(self, width: int) -> "AbstractNetwork":
        """The same network with a first layer of `width` channels, and the others in proportion."""
        factor = width / self.first_width()
        return self.widened(lambda own: max(1, round(own * factor)))

    def first_width(self) -> int:
        """Channels of the first layer with weights."""
        return next(each.width for each in leaves(self.layers) if isinstance(each, Dense | AbstractFilter))

    def widened(self, times: Callable[[int], int]) -> "AbstractNetwork":
        """The same network of widths `times(width)`, apart from that of the last layer."""
        *hidden, last = self.layers.layers
        resizes = lambda node: isinstance(node, AbstractWeights)
        wider = jax.tree.map(
            lambda node: node.resized(times) if resizes(node) else node, Sequential(hidden), is_leaf=resizes
        )
        return Network(self.in_shape, [*wider.layers, last])

    def require_limit(self, verb: str) -> None:
        """Raises an error that names `verb` unless every layer has a wide limit and may follow the one before it."""
        layers = self.layers
        found = missing(layers, AbstractWideLayer)
        if found:
            raise TypeError(
                f"{verb} does not support `{found[0]}`, {found[1]!r}: its infinite-width limit is not known."
            )
        with located("layers", layers):
            layers.after("inputs")

    def limit(self) -> Sequential:
        """The layers in the limit of infinitely many channels."""
        return grouped(self.layers.limit(self.in_shape), self.in_shape)


@jax.jit(static_argnums=2)
def _draw(layers: Sequential, key: jax.Array, shape: Shape) -> Params:
    """All parameters in one program."""
    return layers.init(key, shape)


def _dropping(key: jax.Array):
    """Evaluates layers, with a fresh mask in each `Dropout`."""
    count = 0

    def leaf(layer: AbstractLayer, params: Params, x: jax.Array) -> jax.Array:
        nonlocal count
        if not isinstance(layer, Dropout):
            return layer(params, x)
        count += 1
        return layer.dropped(jax.random.fold_in(key, count), x)

    return leaf


class Network(AbstractNetwork):
    """A sequence of layers for inputs of a given shape: `nk.Network((8, 8, 3), [layers.Conv(64, (3, 3)), ...])`.

    **Arguments:** `in_shape`, of one input: (features,) for vectors, (length, channels) for sequences, (height,
    width, channels) for images; `layers`, a list. The last layer must return one value per output, (out,). Parameters
    are a list with one entry per layer with parameters.
    """

    _in_shape: Shape = eqx.field(static=True)
    _layers: Sequential

    def __init__(self, in_shape: Any, layers: Any):
        self._in_shape = sizes(in_shape, "in_shape")
        if not self.in_shape:
            raise ValueError("`in_shape` must be the shape of one input, such as (32, 32, 3); got ().")
        self._layers = Sequential(layer_list(layers))
        _require_layers(self._layers, "layers")
        with located("layers", self._layers):
            shape = self._layers.shape(self.in_shape)
        if len(shape) != 1:
            raise ValueError(
                f"`layers` end in shape {shape}, which still has positions: add Flatten(), GlobalAvgPool() or "
                "GlobalSumPool()."
            )

    @property
    def in_shape(self) -> Shape:
        return self._in_shape

    @property
    def layers(self) -> Sequential:
        return self._layers

    def __repr__(self) -> str:
        return f"Network({self.in_shape}, [{', '.join(map(repr, self._layers.layers))}])"


def _require_layers(layer: AbstractLayer, path: str) -> None:
    for name, layers in layer.branches():
        here = path if isinstance(layer, Sequential) and name == "layers" else f"{path}.{name}"
        for i, each in enumerate(layers):
            if not isinstance(each, AbstractLayer):
                raise TypeError(f"`{here}[{i}]` must be a layer of nk.layers; got {each!r}.")
            _require_layers(each, f"{here}[{i}]")


def leaves(layer: AbstractLayer) -> Iterator[AbstractLayer]:
    """The layers that are not made of others, in order."""
    if not layer.branches():
        yield layer
    for _, layers in layer.branches():
        for each in layers:
            yield from leaves(each)


def missing(layer: AbstractLayer, kind: type, path: str = "layers") -> tuple[str, AbstractLayer] | None:
    """The first layer that is not of a kind, and where it stands."""
    if not isinstance(layer, kind):
        return path, layer
    for name, layers in layer.branches():
        here = path if isinstance(layer, Sequential) else f"{path}.{name}"
        for i, each in enumerate(layers):
            found = missing(each, kind, f"{here}[{i}]")
            if found:
                return found
    return None


def require_wide(net: Any, verb: str) -> None:
    """Raises, for `verb`, unless every layer has a wide limit and may follow the one before it."""
    if not isinstance(net, AbstractNetwork):
        raise TypeError(
            f"`net` must be an nk.MLP or nk.Network, whose layers {verb} can read; got {type(net).__name__}."
        )
    if net.maximal:
        raise ValueError(
            f'`net` with parametrization="mup" is for training; for {verb} use "mean_field", its large-width limit.'
        )
    net.require_limit(verb)
