"""A layer: what it does to numbers, and what it does to the second moments of infinitely many channels.

The second moments of one input are a `Row`, those of two inputs a `Pair`. A `Row` is made n times, a `Pair` $n^2$
times; so a layer's `rows` also returns all that it will need of one input when pairs are made (`data`), and `pairs` is
kept short.

Angles are carried as gaps, 1 - correlation: near equal inputs the correlation has lost its digits, the gap has not.
"""

import abc
import contextlib
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._base.namespace import namespace
from .layout import Layout

Shape = tuple[int, ...]
Params = Any


class Pair(NamedTuple):
    """Second moments of two inputs: arrays (*positions, n1, n2), or with positions twice (see `Layout`)."""

    gap: Any  # 1 - correlation
    tangent: Any  # tangent kernel


class Row(NamedTuple):
    """Second moments of one input: arrays (*positions, n)."""

    size: Any  # root of E[z^2]
    tangent: Any  # tangent kernel of the input with itself
    mean: Any = None  # E[z]; None where it is zero
    own: Any = None  # a `Pair` between any two positions of the same input, if a later layer compares them


class LayerError(ValueError):
    """A layer that does not fit where it stands, e.g. at `layers[3].branch[1]`."""

    def __init__(self, message: str, path: str, layer: Any):
        super().__init__(f"`{path}`, {layer!r}: {message}.")
        self.message, self.path, self.layer = message, path, layer


@contextlib.contextmanager
def located(name: str, layer: Any) -> Iterator[None]:
    """Says of errors inside where they happen."""
    try:
        yield
    except LayerError as error:
        path = name + ("" if error.path.startswith("[") else ".") + error.path
        raise LayerError(error.message, path, error.layer) from None
    except ValueError as error:
        raise LayerError(str(error), name, layer) from None


class AbstractLayer(eqx.Module):
    """A layer: a function of parameters and inputs (n, *positions, channels)."""

    @abc.abstractmethod
    def shape(self, shape: Shape) -> Shape:
        """The shape (*positions, channels) of an output, for inputs of `shape`. Raises `ValueError` unless it fits."""

    def init(self, key: jax.Array, shape: Shape) -> Params:
        """Parameters for inputs of a `shape`, drawn with `key`; None for a layer that has none."""
        return None

    @abc.abstractmethod
    def __call__(self, params: Params, x: jax.Array) -> jax.Array:
        """Outputs at `x`."""

    def lr_factors(self, shape: Shape) -> Params:
        """Learning-rate factors for inputs of a `shape`, a tree like the parameters, by the layer's parametrization."""
        return None

    def shrinks(self, shape: Shape) -> float:
        """What it multiplies the factors of all layers before it with, for inputs of a `shape`: 1, or its fan-in."""
        return 1.0

    def has_params(self) -> bool:
        """Whether the layer has parameters."""
        return False

    def branches(self) -> tuple[tuple[str, tuple[Any, ...]], ...]:
        """For a layer that is made of layers: (name, layers) of each list of them."""
        return ()


class AbstractWideLayer(AbstractLayer):
    """A layer with an infinite-width limit: it has an NNGP and an NTK."""

    gives: ClassVar[str] = "same"

    def after(self, kind: str) -> str:
        """The kind of its outputs for inputs of this `kind`. Raises `ValueError` if the layer cannot follow them.

        Kinds are "inputs" (given, nothing random yet), "gaussian" (sums of infinitely many independent terms), "groups"
        (Gaussian, with a different variance in each group of channels) or "features" (all others).
        """
        if self.gives != "same":
            return self.gives
        return "features" if kind == "groups" else kind

    def fresh(self) -> bool:
        """Whether the layer's weights make its outputs independent of its inputs."""
        return False

    @abc.abstractmethod
    def rows(self, row: Row) -> tuple[Row, Any]:
        """The moments after the layer, from `row` before it, without `own`; and the data that `pairs` needs per input.

        Leaves of the data have shape (..., *positions, n).
        """

    @abc.abstractmethod
    def pairs(self, one: Any, two: Any, pair: Pair, layout: Layout) -> Pair:
        """The moments after the layer, from `pair` before it and the data of both sides `one`, `two` in `layout`."""

    def need(self, every: bool) -> bool:
        """Whether `pairs` needs every pair of input positions, if `every` pair of output positions is requested."""
        return every

    def spread(self, pair: Pair, layout: Layout) -> Pair:
        """Every pair of output positions from equal positions, `pair` in `layout`, if `need` says that they suffice."""
        raise TypeError(f"{type(self).__name__} needs every two positions of its input.")

    def rank(self, rank: int) -> int:
        """The number of position axes of an output, for inputs with `rank` of them."""
        return rank

    def shifts(self) -> bool:
        """Whether it treats all positions equally, so that two positions at a fixed distance stay at that distance."""
        return False

    def limit(self, shape: Shape) -> "AbstractWideLayer":
        """The layer with infinitely many channels for inputs of a `shape`. It has no width, to avoid recompilation."""
        return self

    def prepared(self, row: Row) -> "AbstractWideLayer":
        """This layer, prepared for the range of the (concrete) moments `row`."""
        return self

    def depends_on_range(self) -> bool:
        """Whether `prepared` does anything."""
        return False


class AbstractOuterLayer(AbstractLayer):
    """The gradient by its parameters is a sum over positions of outer products of what enters and what comes back."""

    @abc.abstractmethod
    def enters(self, x: jax.Array, factors: Params) -> jax.Array:
        """(n, positions, fan_in + 1): what the weights, and last the bias, multiply in `x`, times root `factors`."""


class AbstractPiecewiseLayer(AbstractLayer):
    """Affine, or piecewise linear in each number by itself: the network's regions are polytopes."""


def inverse(size: Any) -> Any:
    """1/size, and 0 where size is 0."""
    xp = namespace(size)
    return xp.where(size > 0, 1.0 / xp.where(size > 0, size, 1.0), 0.0)


def half_square_distance(size1: Any, size2: Any, gap: Any) -> Any:
    """E[(u - v)^2]/2 of variables of these sizes and gap: layers that add independent terms map it linearly."""
    return 0.5 * (size1 - size2) ** 2 + size1 * size2 * gap


def gap_of_distance(size1: Any, size2: Any, inverses: Any, distance: Any) -> Any:
    """The gap again, `inverses` = 1/(size1 size2)."""
    return jnp.maximum(distance - 0.5 * (size1 - size2) ** 2, 0.0) * inverses


def mixed_gap(shares1: list, shares2: list, gaps: list) -> Any:
    """The gap of a sum of independent terms, from shares u_i = size_i/size: a sum of positive terms.

    gap = sum_i [(u_i - v_i)^2 / 2 + u_i v_i gap_i]
    """
    terms = [0.5 * (u - v) ** 2 + u * v * gap for u, v, gap in zip(shares1, shares2, gaps, strict=True)]
    return sum(terms[1:], terms[0])


def covariance(size1: Any, size2: Any, gap: Any) -> Any:
    return size1 * size2 * (1.0 - gap)
