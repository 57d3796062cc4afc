"""What to measure in drawn networks so that its average is a field of `propagate(net, x, order=1)`.

Given all layers but the last, the outputs are Gaussian and their average over the last layer is done by hand: the
same mean with a far smaller error. With W the last weights, s the neurons before it and M_jk = s'_j H_jk s'_k,

    E[z_a z_b] = C_b + (C_W/n) s_a.s_b,   E[H_ab] = E[z_a z_b] + (C_W/n) tr M_ab,
    E[z_{0;a} z_{1;b} H_{01;cd}] = (C_W/n)^2 s_a.M_cd s_b,   E[H_{01;ab} H_{01;cd}] = (C_W/n)^2 tr M_ab M_cd^T.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from .._check import inputs, one_of, shown, wholes
from .._precision import in_float64
from ..kernels import layer_kernels
from ..models import MLP
from ._fluctuations import FIELDS
from ._measure import Estimate
from ._tensors import DDNTK_TENSORS, DNTK_TENSORS

_LETTERS = {field: letter for letter, field in FIELDS.items()}
_BY_DERIVATIVES = tuple(FIELDS[letter] for letter in (*DNTK_TENSORS, *DDNTK_TENSORS))


@in_float64
def observables(net: MLP, x: Any, fields: str | Sequence[str] = ("four_point",)) -> Callable[[Any], dict]:
    """A function of parameters whose averages are `fields` of the last layer of `propagate(net, x, order=1)`.

    Up to O(1/width), that is, and exactly for one hidden layer. To be used as
    `nk.measure(observables(net, x, fields), net, size, key)`; its mean and errors are then dicts by field.

    **Arguments:** `fields`, names such as "four_point" or "ntk_variance_a"; those of the dNTK and ddNTK are found by
    differentiating the network three times, and need `out_dim` >= 2.
    """
    if not isinstance(net, MLP):
        raise TypeError(f"`net` must be an nk.MLP; got {type(net).__name__}.")
    if not isinstance(fields, str | list | tuple):
        raise TypeError(f"`fields` must be a name or a list of names; got {shown(fields)}.")
    fields = [
        one_of(name, "fields", list(_LETTERS)) for name in ([fields] if isinstance(fields, str) else fields)
    ]
    if not net.widths:
        raise ValueError(
            "`net` has no hidden layer: its outputs are exactly Gaussian, there is nothing to measure."
        )
    if net.parametrization == "mean_field":
        raise ValueError('`net` must have parametrization "ntk" or "standard"; got "mean_field".')
    by_derivatives = [_LETTERS[name] for name in fields if name in _BY_DERIVATIVES]
    if by_derivatives and net.out_dim < 2:
        raise ValueError(f"`net` must have out_dim >= 2 to measure {fields[-1]}: it correlates two outputs.")
    x = inputs(x, "x", net.in_dim)
    kernel, ntk, _ = layer_kernels(net, x)[-1]
    tangent = any(name.startswith("ntk") for name in fields)
    by_average = [_LETTERS[name] for name in fields if name not in _BY_DERIVATIVES]
    unit = MLP(net.in_dim, net.widths, net.out_dim, net.activation, net.weight_var, net.bias_var)

    def observe(params: Any) -> dict[str, jax.Array]:
        params = _unit_parameters(net, unit, params)
        found = _averaged(unit, params, x, kernel, ntk, by_average, tangent) if by_average else {}
        found |= _differentiated(unit, params, jnp.asarray(x), by_derivatives) if by_derivatives else {}
        return {FIELDS[letter]: value for letter, value in found.items()}

    return observe


def _unit_parameters(net: MLP, unit: MLP, params: Any) -> Any:
    """Parameters of unit variance, whatever the scaling of `net`."""
    if net.parametrization == "ntk":
        return params
    found = []
    for layer, entry in enumerate(params):
        weight, bias = unit.scales(layer)
        inverse = jnp.where(bias > 0, 1.0 / jnp.where(bias > 0, bias, 1.0), 0.0)
        found.append({"weight": entry["weight"] / weight, "bias": entry["bias"] * inverse})
    return found


def _slope(net: MLP, z: jax.Array) -> jax.Array:
    return jax.jvp(net.activation, (z,), (jnp.ones_like(z),))[1]


def _averaged(net: MLP, params, x, kernel, ntk, letters: list[str], tangent: bool) -> dict[str, jax.Array]:
    """Tensors up to the variance of the tangent kernel, by going through the layers once."""
    c, c_b, m = net.weight_var, net.bias_var, len(x)
    z = net.affine(0, params[0], jnp.asarray(x))
    h: Any = (c_b + c / net.in_dim * (x @ x.T))[..., None, None] * jnp.eye(z.shape[1]) if tangent else None
    for layer in range(1, len(net.widths)):
        s = net.activation(z)
        if tangent:
            slope, weight = _slope(net, z), net.scales(layer)[0] * params[layer]["weight"]
            inner = _sandwich(weight, slope[:, None, :, None] * h * slope[None, :, None, :])
            h = inner + (c_b + c / s.shape[1] * (s @ s.T))[..., None, None] * jnp.eye(weight.shape[1])
        z = net.affine(layer, params[layer], s)
    s, n = net.activation(z), net.widths[-1]
    dg = c_b + c / n * (s @ s.T) - kernel
    found = {"G": n * dg, "V": n * _outer(dg, dg)}
    if tangent:
        slope = _slope(net, z)
        inner = slope[:, None, :, None] * h * slope[None, :, None, :]  # (a, b, j, k)
        dh = dg + kernel - ntk + c / n * jnp.trace(inner, axis1=2, axis2=3)
        flat = inner.reshape(m * m, -1)
        found |= {"H": n * dh, "D": n * _outer(dg, dh), "A": n * _outer(dh, dh)}
        left = s @ inner.transpose(2, 0, 1, 3).reshape(n, -1)  # [a, (c, d, k)]
        found["F"] = c * c / n * (left.reshape(-1, n) @ s.T).reshape(m, m, m, m).transpose(0, 3, 1, 2)
        found["B"] = c * c / n * (flat @ flat.T).reshape(m, m, m, m)
    return {letter: found[letter] for letter in letters}


def _sandwich(weight: jax.Array, inner: jax.Array) -> jax.Array:
    """W^T M_ab W for every a, b in two matrix products, which XLA does faster than a batch of small ones."""
    m, n, out = len(inner), *weight.shape
    half = weight.T @ inner.transpose(2, 0, 1, 3).reshape(n, -1)  # [i, (a, b, k)]
    return (half.reshape(-1, n) @ weight).reshape(out, m, m, out).transpose(1, 2, 0, 3)


def _outer(a: jax.Array, b: jax.Array) -> jax.Array:
    return a[:, :, None, None] * b


def _differentiated(net: MLP, params, x: jax.Array, letters: list[str]) -> dict[str, jax.Array]:
    """Tensors of the dNTK and ddNTK from derivatives of two outputs by all parameters.

    An average with an output is one of derivatives by the last layer, which is Gaussian: E[z X] = E[grad z . grad X].
    """
    n = net.widths[-1]
    start, unravel = ravel_pytree(params)

    def outputs(p):
        return net.layer_outputs(unravel(p), x)[-1][:, :2].T  # (2, a)

    def gradients(p):
        return jax.jacrev(outputs)(p)  # (2, a, params)

    def hessian_products(p, directions):
        """[b, i, a, params]: the Hessian of output i at a times direction b."""
        return jax.vmap(lambda v: jax.jvp(gradients, (p,), (v,))[1])(directions)

    found: dict[str, jax.Array] = {}
    if "P" in letters or "Q" in letters:
        found |= _with_outputs(net, unravel, start, gradients, hessian_products)
    if any(letter in letters for letter in DDNTK_TENSORS):
        g = gradients(start)
        by0, by1 = hessian_products(start, g[0]), hessian_products(start, g[1])  # [c, i, a, params]
        found["S"] = jnp.einsum("cam,dbm->abcd", by1[:, 0], by1[:, 0])
        found["T"] = jnp.einsum("cam,dbm->abcd", by0[:, 0], by1[:, 1])
        found["U"] = jnp.einsum("cam,dbm->abcd", by1[:, 0], by0[:, 1])

        def along(b, c, d):
            first = lambda p: jax.jvp(outputs, (p,), (b,))[1]
            second = lambda p: jax.jvp(first, (p,), (c,))[1]
            return jax.jvp(second, (start,), (d,))[1][0]

        by_d = jax.vmap(along, (None, None, 0), 1)
        by_cd = jax.vmap(by_d, (None, 0, None), 1)
        found["R"] = jax.vmap(by_cd, (0, None, None), 1)(g[0], g[1], g[1])
    return {letter: n * found[letter] for letter in letters}


def _with_outputs(net: MLP, unravel, start, gradients, hessian_products) -> dict[str, jax.Array]:
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
    """The limit of infinite width of what was measured at several `widths`, by the polynomial in 1/width through it.

    Standard errors are carried along; the more widths, the less bias and the more noise.
    """
    widths = wholes(widths, "widths")
    if not isinstance(estimates, list | tuple) or not all(isinstance(each, Estimate) for each in estimates):
        raise TypeError(f"`estimates` must be a list of what nk.measure returns; got {shown(estimates)}.")
    if len(widths) < 2:
        raise ValueError(
            f"`widths` must be at least 2: one width has no trend to continue; got {len(widths)}."
        )
    if len(set(widths)) != len(widths) or len(widths) != len(estimates):
        raise ValueError(
            f"`widths` must be distinct, one for each estimate; got {widths} for {len(estimates)}."
        )
    if len({jax.tree.structure(each.mean) for each in estimates}) > 1:
        raise ValueError("`estimates` must be of one observable; their trees differ.")
    design = np.vander(1.0 / np.array(widths), increasing=True)
    weights = np.linalg.inv(design)[0]

    def combine(*values):
        return sum(w * v for w, v in zip(weights, values, strict=True))

    def combine_errors(*values):
        return np.sqrt(sum((w * v) ** 2 for w, v in zip(weights, values, strict=True)))

    mean = jax.tree.map(combine, *(estimate.mean for estimate in estimates))
    sem = jax.tree.map(combine_errors, *(estimate.sem for estimate in estimates))
    return Estimate(mean, sem, min(estimate.size for estimate in estimates))
