"""Second moments through a composition of layers: rows first, then pairs from what the rows left behind."""

import abc
from typing import Any, cast

import jax.numpy as jnp
import numpy as np

from ..layers.base import AbstractWideLayer, Pair, Row
from ..layers.layout import Layout


class Walk:
    """One way through the layers; containers hand their children back to it."""

    on_host = False  # whether JAX must not loop over layers, since some of the work is done outside of it

    def rows(self, layer: AbstractWideLayer, row: Row, every: bool) -> tuple[Row, Any]:
        """The moments after a layer, and its data; `every`: whether `own` is to be kept for later layers."""
        if isinstance(layer, AbstractWideContainer):
            return layer.rows_by(self, row, every)
        new, data = layer.rows(row)
        return self.with_own(layer, row, new, data) if every else new._replace(own=None), data

    def with_own(self, layer: AbstractWideLayer, row: Row, new: Row, data: Any) -> Row:
        """`new`, with the moments between any two positions of the same input."""
        rank = row.size.ndim - 1
        if layer.need(True):
            before = row.own
        else:
            before = Pair(jnp.zeros_like(row.size), row.tangent)
        layout = Layout(rank, every=layer.need(True), outer=False)
        return new._replace(own=exact_own(self.pairs(layer, data, data, before, layout, True), new))

    def pairs(
        self, layer: AbstractWideLayer, one: Any, two: Any, pair: Pair, layout: Layout, every: bool
    ) -> Pair:
        """The moments of pairs after a layer, from those before it: of every two positions if `layer.need(every)`."""
        if isinstance(layer, AbstractWideContainer):
            return layer.pairs_by(self, one, two, pair, layout, every)
        new = layer.pairs(one, two, pair, layout)
        out = layout.at(layer.rank(layout.rank))
        if every and out.rank and not layer.need(True):
            return layer.spread(new, out)
        return new if every else demoted(new, out)


class AbstractWideContainer(AbstractWideLayer):
    """A wide layer that is made of layers."""

    def rows(self, row: Row) -> tuple[Row, Any]:
        return self.rows_by(Walk(), row, row.own is not None)

    def pairs(self, one: Any, two: Any, pair: Pair, layout: Layout) -> Pair:
        return self.pairs_by(Walk(), one, two, pair, layout, layout.every)

    def depends_on_range(self) -> bool:
        return any(layer.depends_on_range() for _, layers in self.branches() for layer in layers)

    @abc.abstractmethod
    def prepared_by(self, row: Row, every: bool) -> tuple["AbstractWideContainer", Row]:
        """Each layer made ready for what reaches it from `row`, and the moments after all; `every`: see `need`."""

    @abc.abstractmethod
    def rows_by(self, walk: Walk, row: Row, every: bool) -> tuple[Row, Any]:
        """`rows` of `row`, each layer by `walk.rows`; `every`: see `need`."""

    @abc.abstractmethod
    def pairs_by(self, walk: Walk, one: Any, two: Any, pair: Pair, layout: Layout, every: bool) -> Pair:
        """`pairs` of `one`, `two` and `pair` in `layout`, each layer by `walk.pairs`; `every`: see `need`."""


def prepare(layer: AbstractWideLayer, row: Row, every: bool) -> tuple[AbstractWideLayer, Row]:
    """A layer made ready for these (concrete) moments, and the moments after it; OverflowError if they are infinite."""
    if isinstance(layer, AbstractWideContainer):
        return layer.prepared_by(row, every)
    if _overflowed(row):
        raise OverflowError("The moments before a layer are not finite.")
    ready = layer.prepared(row)
    return ready, Walk().rows(ready, row, every)[0]


class Watching(Walk):
    """Rows of concrete moments, layer by layer until some are not finite: OverflowError then says which."""

    on_host = True

    def __init__(self) -> None:
        self.count, self.last = 0, cast(Any, None)  # of the layers with weights

    def rows(self, layer: AbstractWideLayer, row: Row, every: bool) -> tuple[Row, Any]:
        if isinstance(layer, AbstractWideContainer):
            return super().rows(layer, row, every)
        if layer.has_params():
            self.count, self.last = self.count + 1, layer
        found = super().rows(layer.prepared(row), row, every)
        what = _overflowed(found[0])
        if what:
            settings = ", ".join(
                f"`{name}` = {float(value):.3g}"
                for name, value in vars(self.last).items()
                if name.endswith("_var")
            )
            raise OverflowError(
                f"the {what} of layer {self.count} overflows at {settings}: lower them, or the depth"
            )
        return found


def overflow(layers: AbstractWideLayer, row: Row) -> str:
    """Which layer's moments are the first that overflow, from those of inputs on; "" if none do."""
    try:
        Watching().rows(layers, row, False)
    except OverflowError as error:
        return str(error)
    return ""


def _overflowed(row: Row) -> str:
    """What is not finite of concrete moments, if anything."""
    with np.errstate(over="ignore", invalid="ignore"):
        for what, values in (
            ("variance", np.asarray(row.size) ** 2),
            ("tangent kernel", np.asarray(row.tangent)),
        ):
            if not np.isfinite(values).all():
                return what
    return ""


def exact_own(own: Pair, row: Row) -> Pair:
    """The moments of an input with itself are known at equal positions, to all digits."""
    rank = row.size.ndim - 1
    if not rank:
        return own
    grid = row.size.shape[:-1]
    same = jnp.ones((), bool)
    for k, size in enumerate(grid):
        at = jnp.arange(size)
        shape = [1] * (2 * rank + 1)
        shape[k] = shape[rank + k] = size
        same = same & (at[:, None] == at[None, :]).reshape(shape)
    tangent = row.tangent.reshape(*grid, *(1,) * rank, -1)
    return Pair(jnp.where(same, 0.0, own.gap), jnp.where(same, tangent, own.tangent))


def demoted(pair: Pair, layout: Layout) -> Pair:
    """Equal positions only, where nobody asks for more."""
    if not (layout.every and layout.rank):
        return pair
    return Pair(layout.diagonal(pair.gap), layout.diagonal(pair.tangent))
