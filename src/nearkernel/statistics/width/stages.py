"""A network as the recursion of order 1/n walks through it: weights and activations in turn."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ... import activations
from ...activations.base import AbstractActivation
from ...models.containers.branches import Residual
from ...models.containers.repeat import Repeat
from ...models.containers.sequential import Sequential
from ...models.layers.activation import Activation
from ...models.layers.dense import Dense
from ...models.layers.flatten import Identity
from ...models.networks.mlp import MLP
from ...models.networks.network import AbstractNetwork, Network

SUPPORTED = "alternating Dense and Activation, also in Repeat"
WITH_RESIDUAL = f"{SUPPORTED} and as the branch of Residual"

Step = tuple[str, int]  # into a tree of parameters: ("item", k) of a list, or ("slice", k) of all arrays


class Stage(NamedTuple):
    """z' = W s(z) + b, plus what a residual block skips; the first stage has no activation, and acts on inputs."""

    activation: Any  # None in the first
    dense: Dense
    fan_in: int
    ends: bool  # whether a layer of the network ends here, and not within a Repeat
    where: tuple[Step, ...]  # its parameters
    skip: int | None = None  # the stage whose outputs are added

    @property
    def weight_var(self) -> float:
        return float(self.dense.weight_var)

    @property
    def bias_var(self) -> float:
        return float(self.dense.bias_var)

    def apply(self, entry: dict, s: jax.Array) -> jax.Array:
        """W s + b of parameters of unit variance."""
        weight = jnp.sqrt(self.weight_var / self.fan_in) * entry["weight"]
        return s @ weight + jnp.sqrt(self.bias_var) * entry["bias"]


def stages(
    net: AbstractNetwork, verb: str = "order=1", residual: bool = False, instead: str = "order=0"
) -> tuple[Stage, ...]:
    """The stages of a network; TypeError, with the place, where the corrections of a layer are not known.

    Without `residual`, blocks that skip a branch are among these.
    """
    if len(net.in_shape) != 1:
        raise TypeError(
            f"`{verb}` supports inputs that are vectors; got inputs of shape {net.in_shape}: use {instead}."
        )
    if net.mean_field:
        raise ValueError(f'`{verb}` needs parametrization "ntk" or "standard"; got "mean_field".')
    reader = _Reader(net.in_shape[0], verb, residual, instead)
    reader.read(net.layers, "layers", ())
    reader.finish()
    return tuple(reader.found)


def flat(net: AbstractNetwork) -> Network:
    """The same network with each stage as a separate layer."""
    layers: list[Any] = []
    for stage in stages(net):
        layers += [stage.dense] if stage.activation is None else [Activation(stage.activation), stage.dense]
    return Network(net.in_shape, layers)


def as_mlp(net: AbstractNetwork) -> MLP | None:
    """The same network as an MLP; None if it has residual blocks, or no hidden layer."""
    if isinstance(net, MLP):
        return net if net.widths else None
    first, *rest = stages(net, residual=True)
    if not rest or any(stage.skip is not None for stage in rest):
        return None
    widths = [stage.fan_in for stage in rest]
    activation = tuple(stage.activation for stage in rest)
    weight_var, bias_var = (
        tuple(getattr(s, name) for s in (first, *rest)) for name in ("weight_var", "bias_var")
    )
    return MLP(first.fan_in, widths, rest[-1].dense.width, activation, weight_var, bias_var)


def entries(found: tuple[Stage, ...], params: Any) -> list[dict]:
    """Parameters of unit variance of each stage, from those of the network."""
    return [_unit(stage, _picked(params, stage.where)) for stage in found]


class _Reader:
    def __init__(self, in_dim: int, verb: str, residual: bool, instead: str):
        self.width, self.verb, self.residual, self.instead = in_dim, verb, residual, instead
        self.found: list[Stage] = []
        self.pending: tuple[AbstractActivation, str, Activation] | None = None

    def read(self, layer: Any, path: str, where: tuple[Step, ...], top: bool = True) -> None:
        """One layer after another; `top` unless inside of a Repeat that goes on."""
        if isinstance(layer, Sequential):
            self._in_turn(layer, path, where, top)
        elif isinstance(layer, Repeat):
            for k in range(layer.count):
                last = top and k == layer.count - 1
                self.read(layer.body, f"{path}.body", (*where, ("slice", k)), last)
        elif isinstance(layer, Dense):
            self._dense(layer, path, where, top)
        elif isinstance(layer, Activation) and self.found and self.pending is None:
            self.pending = (layer.function, path, layer)
        elif isinstance(layer, Residual) and self.residual and self.found and self.pending is None:
            self._skipping(layer, path, where, top)
        elif not isinstance(layer, Identity):
            self._refuse(path, layer)

    def _skipping(self, layer: Residual, path: str, where: tuple[Step, ...], top: bool) -> None:
        """The outputs of the stage before are added to those of the last one of the branch."""
        before = len(self.found) - 1
        self.read(layer.branch, f"{path}.branch", where, top)
        if self.pending or self.found[-1].skip is not None or len(self.found) == before + 1:
            self._refuse(path, layer)
        self.found[-1] = self.found[-1]._replace(skip=before)

    def _in_turn(self, layer: Sequential, path: str, where: tuple[Step, ...], top: bool) -> None:
        count, last = 0, max((k for k, each in enumerate(layer.layers) if each.has_params()), default=-1)
        for k, each in enumerate(layer.layers):
            whole = path == "layers"  # each layer of the network itself is one that ends
            self.read(each, f"{path}[{k}]", (*where, ("item", count)), top and (whole or k == last))
            count += each.has_params()

    def _dense(self, layer: Dense, path: str, where: tuple[Step, ...], top: bool) -> None:
        own = self.pending[0] if self.pending else activations.get("linear")
        self.found.append(Stage(own if self.found else None, layer, self.width, top, where))
        self.width, self.pending = layer.width, None

    def finish(self) -> None:
        if self.pending:
            self._refuse(*self.pending[1:])

    def _refuse(self, path: str, layer: Any) -> None:
        raise TypeError(
            f"`{self.verb}` does not support `{path}`, {layer!r}: it supports "
            f"{WITH_RESIDUAL if self.residual else SUPPORTED}; for other layers use {self.instead}."
        )


def _picked(params: Any, where: tuple[Step, ...]) -> Any:
    for kind, k in where:
        params = params[k] if kind == "item" else jax.tree.map(lambda a, k=k: a[k], params)
    return params


def _unit(stage: Stage, entry: dict) -> dict:
    if stage.dense.parametrization == "ntk":
        return entry
    weight, bias = (stage.weight_var / stage.fan_in) ** 0.5, stage.bias_var**0.5
    return {"weight": entry["weight"] / weight, "bias": entry["bias"] / bias if bias else 0.0 * entry["bias"]}


def outputs_of(found: tuple[Stage, ...], own: list[dict], x: jax.Array) -> Iterator[jax.Array]:
    """Preactivations after each stage, each (n, width)."""
    z, before = x, list[jax.Array]()
    for stage, entry in zip(found, own, strict=True):
        z = stage.apply(entry, z if stage.activation is None else stage.activation(z))
        z = z if stage.skip is None else z + before[stage.skip]
        before.append(z)
        yield z
