"""Tangent kernels of any model, from the products that its weights enter.

A model is traced for one input. Where a weight array enters one matrix product or one convolution and nothing else, its
gradient is a sum over positions of outer products, as for the layers of `_outer.py`: what enters the product, times the
signal that comes back to a *tap*, a zero that is added to its result. The Jacobian is taken by the other parameters
alone: biases, norms, embeddings, weights that are used twice. So a network of millions of weights costs about as much
as its activations, and no array of all its gradients is made.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from ..._base.types import Array, Params
from ...models.base import AbstractModel
from ...models.expansion.derivatives import jacobian
from ...models.params import root_factors
from .outer_products import LayerSide, Side

_SAME_ENTRIES = ("reshape", "transpose", "squeeze", "expand_dims", "convert_element_type", "copy", "copy_p")
_DOT, _CONV = core.primitives.dot_general_p, core.primitives.conv_general_dilated_p


class _Value(NamedTuple):
    """A result of the traced program, by its number."""

    place: int


class _Step(NamedTuple):
    """One operation as a `function`: `given`, a `_Value` or a constant each; `made`, the numbers of its results."""

    equation: core.JaxprEqn
    function: Callable
    given: list[_Value | Array]
    made: list[int]


class _Program(NamedTuple):
    """A traced program without calls: values 0, 1, ... are its arguments, then those of the steps."""

    steps: list[_Step]
    outputs: list[_Value | Array]


class _Product(NamedTuple):
    """A step in which a parameter array is multiplied: which array, and where it stands among the operands."""

    leaf: int
    operand: int


@jax.jit
def jacobian_side(model: AbstractModel, params: Params, factors: Params, x: jax.Array) -> Side:
    """All gradients, each entry times the root of its factor; `factors` is a tree like `params`."""
    roots = root_factors(factors, params)
    scaled = jacobian(model, params, x) * (1.0 if roots is None else roots)
    return [LayerSide(jnp.ones((len(scaled), 1, 1), scaled.dtype), scaled[:, :, None])]


@jax.jit
def tapped_side(model: AbstractModel, params: Params, factors: Params, x: jax.Array) -> Side:
    """What enters each product with a weight array and the signal that comes back; last, gradients by all others.

    `factors` is a tree like `params`; only an array with one factor for all its entries is tapped.
    """
    leaves, tree = jax.tree.flatten(params)
    dtype = jnp.result_type(*leaves)
    roots = [jnp.sqrt(jnp.asarray(factor, dtype)) for factor in jax.tree.leaves(factors)]
    program = _traced(
        lambda leaves, row: model(jax.tree.unflatten(tree, leaves), row[None])[0],
        leaves,
        jax.ShapeDtypeStruct(x.shape[1:], x.dtype),
    )
    products = _products(program, [root.ndim == 0 for root in roots])
    tapped = {product.leaf for product in products.values()}
    others = [k for k in range(len(leaves)) if k not in tapped]

    def run(zeros: dict, rest: list, row: jax.Array) -> tuple[jax.Array, list]:
        values, entered = [*leaves, row], []
        for k, value in zip(others, rest, strict=True):
            values[k] = value
        look = lambda given: values[given.place] if isinstance(given, _Value) else given
        for at, step in enumerate(program.steps):
            given = [look(each) for each in step.given]
            results = step.function(*given)
            if at in products:
                entered.append(roots[products[at].leaf] * _enters(step.equation, products[at].operand, given))
                results = [results[0] + zeros[at]]
            values += results
        return look(program.outputs[0]), entered

    zeros = {at: _zeros(program.steps[at].equation.outvars[0]) for at in products}

    def of_row(row: jax.Array) -> Side:
        rest = [leaves[k] for k in others]
        (signals, gradients), entered = jax.jacrev(run, argnums=(0, 1), has_aux=True)(zeros, rest, row)
        sides = [
            LayerSide(enters, _signal(program.steps[at].equation, product.operand, signals[at]))
            for (at, product), enters in zip(products.items(), entered, strict=True)
        ]
        kept = [side for side in sides if not _many_positions(side)]
        summed = [
            jnp.einsum("opw,pi->owi", side.signal, side.enters) for side in sides if _many_positions(side)
        ]
        summed += [roots[k] * gradient for k, gradient in zip(others, gradients, strict=True)]
        if summed:
            flat = jnp.concatenate([each.reshape(len(each), 1, -1) for each in summed], axis=2)
            kept.append(LayerSide(jnp.ones((1, 1), flat.dtype), flat))
        return kept

    return jax.vmap(of_row)(x)


def _shape(variable: Any) -> tuple[int, ...]:
    return variable.aval.shape


def _zeros(variable: Any) -> jax.Array:
    return jnp.zeros(variable.aval.shape, variable.aval.dtype)


def _many_positions(side: LayerSide) -> bool:
    """Whether the gradient itself is smaller than what it is made of."""
    (out, positions, width), fan_in = side.signal.shape, side.enters.shape[1]
    return positions * (fan_in + out * width) > out * width * fan_in


def _traced(function: Callable, leaves: list, row: jax.ShapeDtypeStruct) -> _Program:
    """`function(leaves, row)` as one list of steps; programs that it calls are written out."""
    closed = jax.make_jaxpr(function)(leaves, row)
    steps: list[_Step] = []
    count = len(leaves) + 1

    def written(jaxpr: core.Jaxpr, consts: list, given: list) -> list:
        nonlocal count
        names = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *given), strict=True))
        look = lambda var: var.val if isinstance(var, core.Literal) else names[var]
        for equation in jaxpr.eqns:
            if equation.primitive is core.primitives.jit_p:
                inner, made = equation.params["jaxpr"], equation.outvars
                results = written(inner.jaxpr, inner.consts, [look(var) for var in equation.invars])
            else:
                function, used, made = _as_function(equation)
                results = [_Value(place) for place in range(count, count + len(made))]
                count += len(made)
                steps.append(
                    _Step(equation, function, [look(var) for var in used], [v.place for v in results])
                )
            names |= dict(zip(made, results, strict=True))
        return [look(var) for var in jaxpr.outvars]

    arguments = [_Value(place) for place in range(count)]
    outputs = written(closed.jaxpr, closed.consts, arguments)
    return _Program(steps, outputs)


def _as_function(equation: core.JaxprEqn) -> tuple[Callable, list, list]:
    """An equation as a function from its variables, each once, to those that it makes."""
    used = list(dict.fromkeys(var for var in equation.invars if not isinstance(var, core.Literal)))
    made = [var for var in equation.outvars if not isinstance(var, core.DropVar)]
    about = core.DebugInfo("tangent kernel", equation.primitive.name, None, None)
    alone = core.Jaxpr([], used, made, [equation], equation.effects, about)
    return core.jaxpr_as_fun(core.ClosedJaxpr(alone, [])), used, made


def _products(program: _Program, allowed: list[bool]) -> dict[int, _Product]:
    """By its step: each product that one of the first arguments, if `allowed`, enters and nothing else."""
    same = {place: place for place in range(len(allowed))}  # values with the entries of an argument
    uses: dict[int, list[tuple[int, int]]] = {place: [] for place in same}
    for at, step in enumerate(program.steps):
        for operand, given in enumerate(step.given):
            leaf = same.get(given.place) if isinstance(given, _Value) else None
            if leaf is None:
                continue
            if step.equation.primitive.name in _SAME_ENTRIES:
                same[step.made[0]] = leaf
            else:
                uses[leaf].append((at, operand))
    for given in program.outputs:
        if isinstance(given, _Value) and given.place in same:
            uses[same[given.place]] += [(0, 0), (0, 0)]
    products = {}
    for leaf, used in uses.items():
        if allowed[leaf] and len(used) == 1 and _is_product(program.steps[used[0][0]].equation, used[0][1]):
            products[used[0][0]] = _Product(leaf, used[0][1])
    return dict(sorted(products.items()))


def _is_product(equation: core.JaxprEqn, operand: int) -> bool:
    """Whether the gradient by this operand is a sum of outer products."""
    if equation.primitive is _DOT:
        return equation.invars[0] is not equation.invars[1] and not equation.params["dimension_numbers"][1][0]
    if equation.primitive is not _CONV or operand == 0:
        return False
    return equation.params["feature_group_count"] == equation.params["batch_group_count"] == 1


def _enters(equation: core.JaxprEqn, operand: int, given: list) -> jax.Array:
    """What the weights are multiplied with, (positions, fan_in)."""
    x = given[1 - operand]
    if equation.primitive is _CONV:
        return _patches(x, equation)
    summed = equation.params["dimension_numbers"][0][1 - operand]
    free = [axis for axis in range(x.ndim) if axis not in summed]
    fan_in = math.prod(x.shape[axis] for axis in summed)
    return x.transpose(*free, *summed).reshape(-1, fan_in)


def _signal(equation: core.JaxprEqn, operand: int, signal: jax.Array) -> jax.Array:
    """The derivative by the result of a product, (out, positions, width)."""
    out, shape = len(signal), signal.shape[1:]
    if equation.primitive is _CONV:
        batch, channel, *spatial = equation.params["dimension_numbers"].out_spec
        moved = signal.transpose(0, *(1 + axis for axis in (batch, *spatial, channel)))
        return moved.reshape(out, -1, shape[channel])
    summed = equation.params["dimension_numbers"][0][operand]
    weight = _shape(equation.invars[operand])
    width = math.prod(size for axis, size in enumerate(weight) if axis not in summed)
    if operand == 1:  # positions come first
        return signal.reshape(out, -1, width)
    return signal.reshape(out, width, -1).transpose(0, 2, 1)


def _patches(x: jax.Array, equation: core.JaxprEqn) -> jax.Array:
    """What a filter sees at each position, (positions, channels * filter)."""
    settings = equation.params
    batch, channel, *spatial = settings["dimension_numbers"].lhs_spec
    x = x.transpose(batch, channel, *spatial)
    pads = [
        (low, high, dilation - 1)
        for (low, high), dilation in zip(settings["padding"], settings["lhs_dilation"], strict=True)
    ]
    x = lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), (0, 0, 0), *pads])
    weight, names = _shape(equation.invars[1]), settings["dimension_numbers"].rhs_spec
    sizes = [weight[axis] for axis in names[2:]]
    strides, steps = settings["window_strides"], settings["rhs_dilation"]
    spans = [(size - 1) * step + 1 for size, step in zip(sizes, steps, strict=True)]
    counts = [(n - span) // stride + 1 for n, span, stride in zip(x.shape[2:], spans, strides, strict=True)]
    patches = []
    for offset in np.ndindex(*sizes):
        begin = [o * step for o, step in zip(offset, steps, strict=True)]
        end = [b + (count - 1) * stride + 1 for b, count, stride in zip(begin, counts, strides, strict=True)]
        patches.append(lax.slice(x, (0, 0, *begin), (*x.shape[:2], *end), (1, 1, *strides)))
    stacked = jnp.stack(patches, axis=2)  # (batch, channels, filter, *positions)
    moved = jnp.moveaxis(stacked.reshape(len(x), -1, *counts), 1, -1)
    return moved.reshape(-1, moved.shape[-1])
