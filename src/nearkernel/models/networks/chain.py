"""A network as a chain of stages, weights and activations in turn, whatever the layers that it was made of.

All theory of fully connected networks reads its networks here: an `nk.MLP` and an `nk.Network` of the same stages
are the same chain.
"""

import dataclasses
import functools
import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ... import activations
from ..._base.check import inputs
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...activations.base import AbstractActivation
from ..base import Params
from ..containers.branches import Residual
from ..containers.repeat import Repeat
from ..containers.sequential import Sequential
from ..layers.activation import Activation
from ..layers.base import AbstractLayer
from ..layers.dense import Dense
from ..layers.flatten import Flatten, Identity
from .mlp import MLP
from .network import AbstractNetwork, Network
from .stage import Entry, Stage, Step

SUPPORTED = "alternating Dense and Activation, also in Repeat"
WITH_RESIDUAL = f"{SUPPORTED} and as the branch of Residual"


@dataclasses.dataclass(frozen=True)
class Chain:
    """The `stages` of a network `net`, the outputs last."""

    net: AbstractNetwork
    stages: tuple[Stage, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The input, hidden and output dimensions."""
        return (self.stages[0].fan_in, *(stage.dense.width for stage in self.stages))

    @property
    def widths(self) -> tuple[int, ...]:
        return self.sizes[1:-1]

    @property
    def in_dim(self) -> int:
        return self.sizes[0]

    @property
    def out_dim(self) -> int:
        return self.sizes[-1]

    @property
    def activations(self) -> tuple[AbstractActivation, ...]:
        """Those of the hidden layers."""
        return tuple(stage.activation for stage in self.stages[1:])

    @property
    def parametrization(self) -> str | None:
        """That of all stages; "mean_field" if only the last one is in it. None for mixed ones."""
        kinds = {stage.dense.parametrization for stage in self.stages}
        return "mean_field" if "mean_field" in kinds else kinds.pop() if len(kinds) == 1 else None

    @property
    def residual(self) -> bool:
        """Whether a stage adds what a block skips."""
        return any(stage.skip is not None for stage in self.stages)

    def inputs(self, x: ArrayLike) -> np.ndarray:
        """`x` (n, *in_shape), checked, as vectors (n, d)."""
        return inputs(x, "x", self.net.in_shape).reshape(-1, self.in_dim)

    def entries(self, params: Params) -> list[Entry]:
        """The parameters of each stage, from those of the network, or from a tree like them such as factors."""
        return [functools.reduce(_picked, stage.where, params) for stage in self.stages]

    def unit_entries(self, params: Params) -> list[Entry]:
        """The same with variance 1 at initialization."""
        return [
            stage.of_unit_variance(own) for stage, own in zip(self.stages, self.entries(params), strict=True)
        ]

    @in_float64
    def params(self, entries: list[Entry]) -> Params:
        """The parameters of the network, from those of each stage."""
        found: Params = self.net.parameter_shapes()
        for stage, own in zip(self.stages, entries, strict=True):
            found = _placed(found, stage.where, own)
        return found

    def outputs(self, own: list[Entry], x: jax.Array) -> Iterator[jax.Array]:
        """Preactivations after each stage, each (n, width), of parameters of unit variance."""
        z, before = x, list[jax.Array]()
        for stage, entry in zip(self.stages, own, strict=True):
            z = stage.apply(entry, z if stage.activation is None else stage.activation(z))
            z = z if stage.skip is None else z + before[stage.skip]
            before.append(z)
            yield z

    def flat(self) -> Network:
        """A network of the same law with each stage as two layers, in "ntk" scaling."""
        layers: list[AbstractLayer] = []
        for stage in self.stages:
            if stage.activation is not None:
                layers.append(Activation(stage.activation))
            layers.append(Dense(stage.dense.width, stage.dense.weight_var, stage.dense.bias_var))
        return Network((self.in_dim,), layers)

    def mlp(self) -> MLP:
        """An MLP of the same law: of outputs, and of the tangent kernel with `lr_factors()`. Not of residual blocks."""
        if isinstance(self.net, MLP) and not self.net.maximal:
            return self.net
        variances = [
            _one(getattr(stage.dense, name) for stage in self.stages) for name in ("weight_var", "bias_var")
        ]
        kind = self.parametrization or "ntk"
        # without hidden layers, any activation
        used = _one(self.activations) if self.widths else "relu"
        return MLP(self.in_dim, self.widths, self.out_dim, used, variances[0], variances[1], kind)


def chain_of(
    net: Any,
    verb: str,
    name: str = "net",
    *,
    hidden: bool = False,
    residual: bool = False,
    mean_field: bool = False,
) -> Chain:
    """`net` as a chain. Raises for `verb`, with the place of the layer, if it is not one.

    `hidden`: with a hidden layer at least. Without `residual`, blocks that skip a branch are among what is refused;
    without `mean_field`, that scaling of the last layer.
    """
    if not isinstance(net, AbstractNetwork):
        raise TypeError(f"`{name}` must be an nk.MLP or nk.Network; got {type(net).__name__}.")
    # What a function that truncates a series, or takes a theory, has for all other networks.
    instead = {"order": ": use order=0", "theory": ": use theory=nk.InfiniteWidth()"}.get(
        verb.partition("=")[0], ""
    )
    if len(net.in_shape) != 1:
        raise TypeError(
            f"`{verb}` supports inputs that are vectors; got inputs of shape {net.in_shape}{instead}."
        )
    if net.mean_field and not mean_field:
        raise ValueError(f'`{verb}` needs parametrization "ntk" or "standard"; got "mean_field".')
    try:
        found = _read(net, residual)
    except _NoChainError as error:
        supported = WITH_RESIDUAL if residual else SUPPORTED
        raise TypeError(
            f"`{verb}` does not support `{error.path}`, {error.layer!r}: it supports {supported}{instead}."
        ) from None
    if hidden and not found.widths:
        raise ValueError(f"`{name}` must have a hidden layer.")
    return found


def chain_or_none(net: Any) -> Chain | None:
    """`net`, also of inputs that are flattened first, as a chain without residual blocks; None if it is not one."""
    try:
        return _read(net, False) if isinstance(net, AbstractNetwork) else None
    except _NoChainError:
        return None


class _NoChainError(Exception):
    def __init__(self, path: str, layer: AbstractLayer):
        self.path, self.layer = path, layer


def _read(net: AbstractNetwork, residual: bool) -> Chain:
    reader = _Reader(net.in_shape, residual)
    reader.read(net.layers, "layers", ())
    if reader.pending:
        raise _NoChainError(*reader.pending)
    for stage, path in zip(reader.found[:-1], reader.paths, strict=False):
        if stage.dense.parametrization == "mean_field":
            raise _NoChainError(path, stage.dense)
    return Chain(net, tuple(reader.found))


class _Reader:
    def __init__(self, shape: tuple[int, ...], residual: bool):
        self.width, self.positions, self.residual = math.prod(shape), len(shape) > 1, residual
        self.found, self.paths = list[Stage](), list[str]()
        self.pending: tuple[str, Activation] | None = None

    def read(self, layer: Any, path: str, where: tuple[Step, ...], top: bool = True) -> None:
        """One layer after another; `top` unless inside of a Repeat that goes on."""
        if isinstance(layer, Sequential):
            self._in_turn(layer, path, where, top)
        elif isinstance(layer, Repeat):
            for k in range(layer.count):
                last = top and k == layer.count - 1
                self.read(layer.body, f"{path}.body", (*where, ("slice", k)), last)
        elif isinstance(layer, Dense) and not self.positions:
            self._dense(layer, path, where, top)
        elif isinstance(layer, Activation) and self.found and self.pending is None:
            self.pending = (path, layer)
        elif isinstance(layer, Residual) and self.residual and self.found and self.pending is None:
            self._skipping(layer, path, where, top)
        elif isinstance(layer, Flatten):
            self.positions = False
        elif not isinstance(layer, Identity):
            raise _NoChainError(path, layer)

    def _skipping(self, layer: Residual, path: str, where: tuple[Step, ...], top: bool) -> None:
        """The outputs of the stage before are added to those of the last one of the branch."""
        before = len(self.found) - 1
        self.read(layer.branch, f"{path}.branch", where, top)
        if self.pending or self.found[-1].skip is not None or len(self.found) == before + 1:
            raise _NoChainError(path, layer)
        self.found[-1] = self.found[-1]._replace(skip=before)

    def _in_turn(self, layer: Sequential, path: str, where: tuple[Step, ...], top: bool) -> None:
        count, last = 0, max((k for k, each in enumerate(layer.layers) if each.has_params()), default=-1)
        for k, each in enumerate(layer.layers):
            whole = path == "layers"  # each layer of the network itself is one that ends
            self.read(each, f"{path}[{k}]", (*where, ("item", count)), top and (whole or k == last))
            count += each.has_params()

    def _dense(self, layer: Dense, path: str, where: tuple[Step, ...], top: bool) -> None:
        own = self.pending[1].function if self.pending else activations.get("linear")
        self.found.append(Stage(own if self.found else None, layer, self.width, top, where))
        self.paths.append(path)
        self.width, self.pending = layer.width, None


def _picked(tree: Params, step: Step) -> Params:
    kind, k = step
    if kind == "item":
        return tree[k]
    # factors may be one for all
    return jax.tree.map(lambda a: a[k] if np.ndim(a) else a, tree)


def _placed(tree: Params, where: tuple[Step, ...], entry: Entry) -> Params:
    """`tree` with `entry` at its place; blocks of a Repeat are put one after the other."""
    if not where:
        return entry
    (kind, k), *rest = where
    if kind == "item":
        return [_placed(each, tuple(rest), entry) if i == k else each for i, each in enumerate(tree)]
    whole = jax.tree.map(lambda a: jnp.zeros(a.shape) if isinstance(a, jax.ShapeDtypeStruct) else a, tree)
    own = _placed(_picked(whole, (kind, k)), tuple(rest), entry)
    return jax.tree.map(lambda a, b: a.at[k].set(b), whole, own)


def _one(values: Any) -> Any:
    """The one value that all are, or all of them."""
    values = tuple(values)
    return values[0] if all(bool(each == values[0]) for each in values) else values
