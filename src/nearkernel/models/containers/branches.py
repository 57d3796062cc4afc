"""Branches: several networks of the same input, whose outputs are added, multiplied or put side by side."""

import abc
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._base.check import listed
from ...activations.averages.angle import safe_sqrt
from ..layers.activation import Activation
from ..layers.base import (
    AbstractPiecewiseLayer,
    Pair,
    Params,
    Row,
    Shape,
    covariance,
    inverse,
    located,
    mixed_gap,
)
from ..layers.layout import Layout
from .moment_walk import Walk, demoted
from .sequential import AbstractContainer, Leaf, Sequential, layer_list


class AbstractBranches(AbstractContainer):
    """Several networks of the same input, whose outputs are combined."""

    parts: tuple[Sequential, ...]

    def __init__(self, branches: Any):
        lists = listed(branches, "branches", "[[nk.layers.Dense(64)], []]")
        self.parts = tuple(Sequential(layer_list(part, f"branches[{i}]")) for i, part in enumerate(lists))
        if not self.parts:
            raise ValueError("`branches` must contain at least one branch, a list of layers; got [].")

    @abc.abstractmethod
    def combined(self, outputs: list[jax.Array]) -> jax.Array:
        """The `outputs` of the branches in one."""

    @abc.abstractmethod
    def combined_rows(self, rows: list[Row]) -> tuple[Row, Any]:
        """Moments of one input, from `rows` of all branches, and what `combined_pairs` needs of it."""

    @abc.abstractmethod
    def combined_pairs(self, one: Any, two: Any, pairs: list[Pair], layout: Layout) -> Pair:
        """Moments of two inputs, from `pairs` of all branches and what is needed of `one` and `two`, in `layout`."""

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {len(self.parts)} branches"

    def branches(self):
        return tuple((f"branches[{i}]", part.layers) for i, part in enumerate(self.parts))

    def each(self, method: str, argument: Any) -> list[Any]:
        """`method(argument)` of each branch."""
        found = []
        for i, part in enumerate(self.parts):
            with located(f"branches[{i}]", self):
                found.append(getattr(part, method)(argument))
        return found

    def require_independent(self) -> None:
        if sum(not part.fresh() for part in self.parts) > 1:
            raise ValueError(
                "two of its branches have no weights, so they are not independent: put Dense "
                "or Conv into all branches but one"
            )

    def fresh(self) -> bool:
        return all(part.fresh() for part in self.parts)

    def shape(self, shape: Shape) -> Shape:
        shapes = self.each("shape", shape)
        if any(s != shapes[0] for s in shapes):
            raise ValueError(f"its branches end in different shapes, {', '.join(map(str, shapes))}")
        return shapes[0]

    def init(self, key: jax.Array, shape: Shape) -> Params:
        keys = jax.random.split(key, len(self.parts))
        return [part.init(k, shape) for part, k in zip(self.parts, keys, strict=True)]

    def lr_factors(self, shape: Shape) -> Params:
        return [part.lr_factors(shape) for part in self.parts]

    def shrinks(self, shape: Shape) -> float:
        return min(part.shrinks(shape) for part in self.parts)  # gradients take the widest way back

    def run(self, leaf: Leaf, params: Params, x: jax.Array) -> jax.Array:
        params = params or [None] * len(self.parts)
        return self.combined([part.run(leaf, p, x) for part, p in zip(self.parts, params, strict=True)])

    def need(self, every: bool) -> bool:
        return any(part.need(every) for part in self.parts)

    def rank(self, rank: int) -> int:
        return self.parts[0].rank(rank)

    def shifts(self) -> bool:
        return all(part.shifts() for part in self.parts)

    def prepared_by(self, row: Row, every: bool) -> tuple["AbstractBranches", Row]:
        parts = tuple(part.prepared_by(row, every)[0] for part in self.parts)
        ready = eqx.tree_at(lambda c: c.parts, self, parts)
        return ready, ready.rows_by(Walk(), row, every)[0]

    def rows_by(self, walk: Walk, row: Row, every: bool) -> tuple[Row, Any]:
        rows, data = zip(*(walk.rows(part, row, every) for part in self.parts), strict=True)
        new, own = self.combined_rows(list(rows))
        if every:
            layout = Layout(new.size.ndim - 1, every=True, outer=False)
            pair = self.combined_pairs(own, own, [r.own for r in rows], layout)
            new = new._replace(own=pair)
        return new, {"parts": list(data), "own": own}

    def pairs_by(self, walk: Walk, one: Any, two: Any, pair: Pair, layout: Layout, every: bool) -> Pair:
        pairs = []
        for part, data1, data2 in zip(self.parts, one["parts"], two["parts"], strict=True):
            here, where = pair, layout
            if not part.need(every):
                here, where = demoted(pair, layout), layout.at(layout.rank, False)
            pairs.append(walk.pairs(part, data1, data2, here, where, every))
        out = layout.at(self.rank(layout.rank), every)
        return self.combined_pairs(one["own"], two["own"], pairs, out)


class Sum(AbstractBranches, AbstractPiecewiseLayer):
    """The sum of `branches`, `Sum([branch1, branch2])`. Each branch is a list of layers; [] is the identity."""

    def after(self, kind: str) -> str:
        self.require_independent()
        kinds = set(self.each("after", kind))
        return kinds.pop() if len(kinds) == 1 and kinds != {"groups"} else "features"

    def combined(self, outputs: list[jax.Array]) -> jax.Array:
        return sum(outputs[1:], outputs[0])

    def limit(self, shape: Shape) -> "Sum":
        return _with_parts(Sum, [part.limit(shape) for part in self.parts])

    def combined_rows(self, rows: list[Row]) -> tuple[Row, Any]:
        means = [row.mean for row in rows if row.mean is not None]
        cross = sum(means) ** 2 - sum(m**2 for m in means) if len(means) > 1 else 0.0
        size = safe_sqrt(sum(row.size**2 for row in rows) + cross)
        tangent = sum(row.tangent for row in rows)
        scale = inverse(size)
        data = {"shares": [row.size * scale for row in rows]}
        if len(means) > 1:
            data |= {"means": means, "inverse": scale, "sizes": [row.size for row in rows]}
        return Row(size, tangent, sum(means) if means else None), data

    def combined_pairs(self, one: Any, two: Any, pairs: list[Pair], layout: Layout) -> Pair:
        one, two = layout.both(one, two)
        tangent = sum(pair.tangent for pair in pairs)
        if "means" not in one:
            return Pair(mixed_gap(one["shares"], two["shares"], [pair.gap for pair in pairs]), tangent)
        sides = zip(one["sizes"], two["sizes"], pairs, strict=True)
        total = sum(covariance(a, b, pair.gap) for a, b, pair in sides)
        means1, means2 = one["means"], two["means"]
        total = total + sum(means1) * sum(means2) - sum(a * b for a, b in zip(means1, means2, strict=True))
        return Pair(jnp.maximum(1.0 - total * (one["inverse"] * two["inverse"]), 0.0), tangent)


class Residual(AbstractContainer, AbstractPiecewiseLayer):
    r"""A residual block, $x + \text{branch}(x)$; `layers` is the list of layers of the branch."""

    branch: Sequential

    def __repr__(self) -> str:
        return f"Residual of {len(self.branch.layers)} layers"

    def after(self, kind: str) -> str:
        if not self.branch.fresh():
            raise ValueError(
                "its branch has no weights, so it is not independent of its input: add Dense or Conv"
            )
        with located("branch", self):
            return kind if self.branch.after(kind) == kind != "groups" else "features"

    def __init__(self, layers: Any):
        self.branch = Sequential(layer_list(layers))

    def branches(self):
        return (("branch", self.branch.layers),)

    def _sum(self) -> Sum:
        return _with_parts(Sum, [Sequential(()), self.branch])

    def shape(self, shape: Shape) -> Shape:
        with located("branch", self):
            after = self.branch.shape(shape)
        if after != shape:
            raise ValueError(f"its branch maps shape {shape} to {after}, so the two cannot be added")
        return shape

    def init(self, key: jax.Array, shape: Shape) -> Params:
        return self.branch.init(key, shape)

    def lr_factors(self, shape: Shape) -> Params:
        return self.branch.lr_factors(shape)

    def run(self, leaf: Leaf, params: Params, x: jax.Array) -> jax.Array:
        return x + self.branch.run(leaf, params, x)

    def limit(self, shape: Shape) -> Sum:
        return self._sum().limit(shape)

    def need(self, every: bool) -> bool:
        return self._sum().need(every)

    def shifts(self) -> bool:
        return self.branch.shifts()

    def prepared_by(self, row: Row, every: bool) -> tuple[AbstractBranches, Row]:
        return self._sum().prepared_by(row, every)

    def rows_by(self, walk: Walk, row: Row, every: bool) -> tuple[Row, Any]:
        return self._sum().rows_by(walk, row, every)

    def pairs_by(self, walk: Walk, one: Any, two: Any, pair: Pair, layout: Layout, every: bool) -> Pair:
        return self._sum().pairs_by(walk, one, two, pair, layout, every)


class Concat(AbstractBranches, AbstractPiecewiseLayer):
    """Concatenates the channels of all `branches`, lists of layers.

    `weights` are the fractions of channels from each branch; by default the network infers them from the widths.
    """

    weights: Any  # share of each branch in the channels; known once the input's shape is

    def __init__(self, branches: Any, weights: Any = None):
        super().__init__(branches)
        self.weights = weights

    def after(self, kind: str) -> str:
        self.require_independent()
        kinds = set(self.each("after", kind))
        return (
            {"gaussian": "groups", "inputs": "inputs"}.get(kinds.pop(), "features")
            if len(kinds) == 1
            else "features"
        )

    def absorbs(self, following: Any) -> bool:
        return isinstance(following, Activation)

    def absorbing(self, following: Any) -> "Concat":
        return Concat([(*part.layers, following) for part in self.parts], self.weights)

    def combined(self, outputs: list[jax.Array]) -> jax.Array:
        return jnp.concatenate(outputs, axis=-1)

    def shape(self, shape: Shape) -> Shape:
        shapes = self.each("shape", shape)
        if any(s[:-1] != shapes[0][:-1] for s in shapes):
            raise ValueError(f"its branches end in different shapes, {', '.join(map(str, shapes))}")
        return (*shapes[0][:-1], sum(s[-1] for s in shapes))

    def limit(self, shape: Shape) -> "Concat":
        channels = [part.shape(shape)[-1] for part in self.parts]
        return _with_parts(
            Concat, [part.limit(shape) for part in self.parts], [c / sum(channels) for c in channels]
        )

    def combined_rows(self, rows: list[Row]) -> tuple[Row, Any]:
        parts = list(zip(self.weights, rows, strict=True))
        size = safe_sqrt(sum(w * row.size**2 for w, row in parts))
        scale = inverse(size)
        mean = None
        if any(row.mean is not None for row in rows):
            mean = sum(w * row.mean for w, row in parts if row.mean is not None)
        data = {"shares": [jnp.sqrt(w) * row.size * scale for w, row in parts]}
        return Row(size, sum(w * row.tangent for w, row in parts), mean), data

    def combined_pairs(self, one: Any, two: Any, pairs: list[Pair], layout: Layout) -> Pair:
        one, two = layout.both(one, two)
        tangent = sum(w * pair.tangent for w, pair in zip(self.weights, pairs, strict=True))
        return Pair(mixed_gap(one["shares"], two["shares"], [pair.gap for pair in pairs]), tangent)


class Product(AbstractBranches):
    """The elementwise product of `branches`, as in gates; put a layer with weights before the next activation."""

    def after(self, kind: str) -> str:
        self.require_independent()
        if "inputs" in self.each("after", kind):
            raise ValueError(
                "a branch passes the inputs on unchanged, and they do not have infinitely many channels"
            )
        return "features"

    def fresh(self) -> bool:
        return any(part.fresh() for part in self.parts)

    def combined(self, outputs: list[jax.Array]) -> jax.Array:
        return math.prod(outputs[1:], start=outputs[0])

    def limit(self, shape: Shape) -> "Product":
        return _with_parts(Product, [part.limit(shape) for part in self.parts])

    def combined_rows(self, rows: list[Row]) -> tuple[Row, Any]:
        size, tangent = rows[0].size, rows[0].tangent
        for row in rows[1:]:
            size, tangent = size * row.size, tangent * row.size**2 + size**2 * row.tangent
        means = [row.mean for row in rows]
        mean = None if any(m is None for m in means) else math.prod(means[1:], start=means[0])
        return Row(size, tangent, mean), {"sizes": [row.size for row in rows]}

    def combined_pairs(self, one: Any, two: Any, pairs: list[Pair], layout: Layout) -> Pair:
        one, two = layout.both(one, two)
        total, gap, tangent = 1.0, 0.0, 0.0
        for size1, size2, pair in zip(one["sizes"], two["sizes"], pairs, strict=True):
            own = covariance(size1, size2, pair.gap)
            total, tangent = total * own, tangent * own + total * pair.tangent
            gap = gap + pair.gap - gap * pair.gap
        return Pair(gap, tangent)


def _with_parts(kind: type, parts: list[Sequential], *options: Any) -> Any:
    """Branches that are sequences already."""
    return kind([part.layers for part in parts], *options)
