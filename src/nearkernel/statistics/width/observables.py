r"""Observables of random networks whose averages are the fields of `propagate(net, x, order=1)`.

Given all layers but the last, the outputs are Gaussian, and their average over the last layer is computed analytically:
the same mean with a far smaller error. With $s$ the neurons before the last layer and $M_{jk} = s'_j H_{jk} s'_k$,

$$\mathbb{E}[z_a z_b] = C_b + \frac{C_W}{n}\, s_a \cdot s_b, \qquad
\mathbb{E}[H_{ab}] = \mathbb{E}[z_a z_b] + \frac{C_W}{n} \operatorname{tr} M_{ab},$$

$$\mathbb{E}[z_{0;a} z_{1;b} H_{01;cd}] = \frac{C_W^2}{n^2}\, s_a \cdot M_{cd}\, s_b, \qquad
\mathbb{E}[H_{01;ab} H_{01;cd}] = \frac{C_W^2}{n^2} \operatorname{tr} M_{ab} M_{cd}^\top.$$
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from ..._base.check import inputs, one_of, shown, wholes
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...kernels.wide.network import layer_kernels
from ...models.base import Params
from ...models.networks.chain import Chain, chain_of
from ...models.networks.network import AbstractNetwork
from ...models.networks.stage import Stage
from ..measuring import Estimate
from .fluctuations import FIELDS
from .recursion import DDNTK_TENSORS, DNTK_TENSORS

_LETTERS = {field: letter for letter, field in FIELDS.items()}
_BY_DERIVATIVES = tuple(FIELDS[letter] for letter in (*DNTK_TENSORS, *DDNTK_TENSORS))


@in_float64
def observables(
    net: AbstractNetwork, x: ArrayLike, fields: str | Sequence[str] = ("four_point",)
) -> Callable[[Any], dict]:
    r"""An observable for `nk.measure` whose averages are `fields` of the last layer of `propagate(net, x, order=1)`.

    The averages agree up to $O(1/\text{width})$, and exactly for one hidden layer. Use it as
    `nk.measure(observables(net, x, fields), net, size, key)`; mean and errors are then dicts by field.

    **Arguments:** `net`, `x`: same as `propagate`; `fields`, names such as "four_point" or "ntk_variance_a"; fields of
    the dNTK and ddNTK need three derivatives of the network and `out_dim` >= 2.
    """
    if not isinstance(fields, str | list | tuple):
        raise TypeError(f"`fields` must be a name or a list of names; got {shown(fields)}.")
    fields = [
        one_of(name, "fields", list(_LETTERS)) for name in ([fields] if isinstance(fields, str) else fields)
    ]
    chain = chain_of(net, "observables", residual=True)
    found = chain.stages
    if len(found) == 1:
        raise ValueError("`net` must have a hidden layer: without one its outputs are exactly Gaussian.")
    if found[-1].skip is not None:
        raise ValueError("`net` must end in Dense after an Activation, not in a residual block.")
    by_derivatives = [_LETTERS[name] for name in fields if name in _BY_DERIVATIVES]
    if by_derivatives and found[-1].dense.width < 2:
        raise ValueError(
            f"`net` must have out_dim >= 2 to measure {fields[-1]}, which correlates two outputs."
        )
    x = inputs(x, "x", net.in_shape)
    kernel, ntk, _ = layer_kernels(net, x)[-1]
    tangent = any(name.startswith("ntk") for name in fields)
    by_average = [_LETTERS[name] for name in fields if name not in _BY_DERIVATIVES]

    def observe(params: Params) -> dict[str, jax.Array]:
        own = chain.unit_entries(params)
        values = _averaged(found, own, x, kernel, ntk, by_average, tangent) if by_average else {}
        values |= _differentiated(chain, own, jnp.asarray(x), by_derivatives) if by_derivatives else {}
        return {FIELDS[letter]: value for letter, value in values.items()}

    return observe


def _slope(stage: Stage, z: jax.Array) -> jax.Array:
    return jax.jvp(stage.activation, (z,), (jnp.ones_like(z),))[1]


def _averaged(found, own, x, kernel, ntk, letters: list[str], tangent: bool) -> dict[str, jax.Array]:
    """Tensors up to the variance of the tangent kernel, by going through the layers once."""
    m, last = len(x), found[-1]
    z, h = _hidden(found, own, jnp.asarray(x), tangent)
    s, n, c = last.activation(z), last.fan_in, last.weight_var
    dg = last.bias_var + c / n * (s @ s.T) - kernel
    values = {"G": n * dg, "V": n * _outer(dg, dg)}
    if tangent:
        slope = _slope(last, z)
        inner = slope[:, None, :, None] * h * slope[None, :, None, :]  # (a, b, j, k)
        dh = dg + kernel - ntk + c / n * jnp.trace(inner, axis1=2, axis2=3)
        flat = inner.reshape(m * m, -1)
        values |= {"H": n * dh, "D": n * _outer(dg, dh), "A": n * _outer(dh, dh)}
        left = s @ inner.transpose(2, 0, 1, 3).reshape(n, -1)  # [a, (c, d, k)]
        values["F"] = c * c / n * (left.reshape(-1, n) @ s.T).reshape(m, m, m, m).transpose(0, 3, 1, 2)
        values["B"] = c * c / n * (flat @ flat.T).reshape(m, m, m, m)
    return {letter: values[letter] for letter in letters}


def _hidden(found, own, x: jax.Array, tangent: bool) -> tuple[jax.Array, Any]:
    """Preactivations of the last hidden layer (a, j), and its tangent kernel (a, b, j, k) or None."""
    first = found[0]
    z = [first.apply(own[0], x)]
    kernel = first.bias_var + first.weight_var / first.fan_in * (x @ x.T)
    own_kernel = kernel[..., None, None] * jnp.eye(z[0].shape[1])
    h = {(0, 0): own_kernel} if tangent else {}  # of any two stages in use
    for k, (stage, entry) in enumerate(zip(found[1:-1], own[1:-1], strict=True)):
        s, skip = stage.activation(z[k]), stage.skip
        new = stage.apply(entry, s)
        z.append(new if skip is None else new + z[skip])
        if tangent:
            weight = jnp.sqrt(stage.weight_var / stage.fan_in) * entry["weight"]
            shared = stage.bias_var + stage.weight_var / stage.fan_in * (s @ s.T)
            own_part = shared[..., None, None] * jnp.eye(weight.shape[1])
            h = _next_tangents(h, k, skip, weight, _slope(stage, z[k]), own_part)
            later = {s.skip for s in found[k + 2 :]} | {k + 1}
            h = {pair: value for pair, value in h.items() if later.issuperset(pair)}
    return z[-1], h.get((len(z) - 1,) * 2)


def _next_tangents(h: dict, k: int, skip: int | None, weight, slope, own: jax.Array) -> dict:
    """With those of z' = z_skip + W s(z_k): each is a sum over where a derivative enters, the skip or the weights."""
    inner = slope[:, None, :, None] * h[k, k] * slope[None, :, None, :]
    end = own + _sandwich(weight, inner)
    branch = {q: jnp.einsum("ji,aj,abjk->abik", weight, slope, h[k, q]) for p, q in h if p == k}
    if skip is not None:
        end = end + h[skip, skip] + branch[skip] + branch[skip].transpose(1, 0, 3, 2)
        branch = {q: value + h[skip, q] for q, value in branch.items()}
    turned = {(q, k + 1): value.transpose(1, 0, 3, 2) for q, value in branch.items()}
    return h | {(k + 1, q): value for q, value in branch.items()} | turned | {(k + 1, k + 1): end}


def _sandwich(weight: jax.Array, inner: jax.Array) -> jax.Array:
    """W^T M_ab W for every a, b in two matrix products, which XLA does faster than a batch of small ones."""
    m, n, out = len(inner), *weight.shape
    half = weight.T @ inner.transpose(2, 0, 1, 3).reshape(n, -1)  # [i, (a, b, k)]
    return (half.reshape(-1, n) @ weight).reshape(out, m, m, out).transpose(1, 2, 0, 3)


def _outer(a: jax.Array, b: jax.Array) -> jax.Array:
    return a[:, :, None, None] * b


def _differentiated(chain: Chain, own, x: jax.Array, letters: list[str]) -> dict[str, jax.Array]:
    """Tensors of the dNTK and ddNTK from derivatives of two outputs by all parameters.

    An average with an output is one of derivatives by the last layer, which is Gaussian: E[z X] = E[grad z . grad X].
    """
    n = chain.stages[-1].fan_in
    start, unravel = ravel_pytree(own)

    def outputs(p):
        *_, last = chain.outputs(unravel(p), x)
        return last[:, :2].T  # (2, a)

    def gradients(p):
        return jax.jacrev(outputs)(p)  # (2, a, params)

    def hessian_products(p, directions):
        """[b, i, a, params]: the Hessian of output i at a times direction b."""
        return jax.vmap(lambda v: jax.jvp(gradients, (p,), (v,))[1])(directions)

    values: dict[str, jax.Array] = {}
    if "P" in letters or "Q" in letters:
        values |= _with_outputs(unravel, start, gradients, hessian_products)
    if any(letter in letters for letter in DDNTK_TENSORS):
        g = gradients(start)
        by0, by1 = hessian_products(start, g[0]), hessian_products(start, g[1])  # [c, i, a, params]
        values["S"] = jnp.einsum("cam,dbm->abcd", by1[:, 0], by1[:, 0])
        values["T"] = jnp.einsum("cam,dbm->abcd", by0[:, 0], by1[:, 1])
        values["U"] = jnp.einsum("cam,dbm->abcd", by1[:, 0], by0[:, 1])

        def along(b, c, d):
            first = lambda p: jax.jvp(outputs, (p,), (b,))[1]
            second = lambda p: jax.jvp(first, (p,), (c,))[1]
            return jax.jvp(second, (start,), (d,))[1][0]

        by_d = jax.vmap(along, (None, None, 0), 1)
        by_cd = jax.vmap(by_d, (None, 0, None), 1)
        values["R"] = jax.vmap(by_cd, (0, None, None), 1)(g[0], g[1], g[1])
    return {letter: n * values[letter] for letter in letters}


def _with_outputs(unravel, start, gradients, hessian_products) -> dict[str, jax.Array]:
    last = unravel(jnp.zeros_like(start))
    last[-1] = jax.tree.map(jnp.ones_like, last[-1])
    of_last = ravel_pytree(last)[0]

    def moves(p):
        """dH_{011;abc} and dH_{001;abc}."""
        g = gradients(p)
        by0, by1 = hessian_products(p, g[0]), hessian_products(p, g[1])  # [b, i, a, params]
        return jnp.einsum("bam,cm->abc", by1[:, 0], g[1]), jnp.einsum("bam,cm->abc", by0[:, 0], g[1])

    own = gradients(start) * of_last
    at_p = jax.vmap(lambda v: jax.jvp(moves, (start,), (v,))[1][0], out_axes=3)(own[0])
    at_q = jax.vmap(lambda v: jax.jvp(moves, (start,), (v,))[1][1], out_axes=3)(own[1])
    return {"P": at_p, "Q": at_q}


def extrapolated(estimates: Sequence[Estimate], widths: Sequence[int]) -> Estimate:
    """Extrapolates `estimates` measured at several `widths` to infinite width, by a polynomial in 1/width.

    Standard errors are propagated. More widths give less bias and more noise.
    """
    widths = wholes(widths, "widths")
    if not isinstance(estimates, list | tuple) or not all(isinstance(each, Estimate) for each in estimates):
        raise TypeError(f"`estimates` must be a list of results of nk.measure; got {shown(estimates)}.")
    if len(widths) < 2:
        raise ValueError(f"`widths` must contain at least 2 widths to extrapolate from; got {len(widths)}.")
    if len(set(widths)) != len(widths) or len(widths) != len(estimates):
        raise ValueError(
            f"`widths` must be distinct, one for each estimate; got {widths} for {len(estimates)} estimates."
        )
    if len({jax.tree.structure(each.mean) for each in estimates}) > 1:
        raise ValueError("`estimates` must belong to the same observable; their trees differ.")
    design = np.vander(1.0 / np.array(widths), increasing=True)
    weights = np.linalg.inv(design)[0]

    def combine(*values):
        return sum(w * v for w, v in zip(weights, values, strict=True))

    def combine_errors(*values):
        return np.sqrt(sum((w * v) ** 2 for w, v in zip(weights, values, strict=True)))

    mean = jax.tree.map(combine, *(estimate.mean for estimate in estimates))
    sem = jax.tree.map(combine_errors, *(estimate.sem for estimate in estimates))
    return Estimate(mean, sem, min(estimate.size for estimate in estimates))
