"""Global self-attention, in the two scalings that have a deterministic wide limit."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._base.check import one_of, positive, whole
from ..._run.precision import working_dtype
from ...activations.averages.angle import safe_sqrt
from .base import Pair, Params, Row, Shape, covariance, inverse
from .layout import Layout
from .weights import AbstractWeights

MECHANISMS = {
    "softmax": lambda g: jax.nn.softmax(g, axis=-1),
    "identity": lambda g: g,
    "relu": jax.nn.relu,
    "abs": jnp.abs,
}


class Attention(AbstractWeights):
    r"""Multi-head attention: heads $\zeta(G)\, V$ with scores $G = \sqrt{C_{QK}}\, Q K^\top$, then output weights.

    - `scaling="linear"`: scores are divided by the dimension $d$ of a head, and queries and keys share their weights.
      As $d$ grows, the scores become the covariances of the input, $G_{ab} = \sqrt{C_{QK}}\, K_{ab}$, and with $g =
      \zeta(G)$

        $$K' = C_{OV}\, g K g'^\top + C_b, \qquad \Theta' = C_{OV}\, g (\Theta + 2 K) g'^\top + C_b.$$

    - `scaling="sqrt"`: scores are divided by $\sqrt d$, as in practice, and remain random; infinitely many heads
      average over them. This has a closed form for `mechanism="identity"`.

    **Arguments:** `width`, output channels; `heads`, number of heads; `head_dim`, d (default: `width`); `scaling`,
    "linear" or "sqrt"; `mechanism`, the function $\zeta$: "softmax" over positions, "identity", "relu" or "abs";
    `qk_var`, $C_{QK} > 0$; `ov_var`, $C_{OV} > 0$; `bias_var`, $C_b \ge 0$; `parametrization`: "ntk", entries of
    variance 1 with factors before them, or "standard", entries of variance $\sqrt{C_{QK}}$ / fan-in (queries and
    keys), $\sqrt{C_{OV}}$ / fan-in (values and outputs) and $C_b$. Parameters are dict(query, key (for scaling "sqrt"),
    value, output, bias).
    """

    width: int = eqx.field(static=True)
    heads: int = eqx.field(static=True)
    head_dim: int = eqx.field(static=True)
    scaling: str = eqx.field(static=True)
    mechanism: str = eqx.field(static=True)
    qk_var: Any
    ov_var: Any
    bias_var: Any
    parametrization: str = eqx.field(static=True)

    def __init__(
        self,
        width: int,
        heads: int = 4,
        head_dim: int | None = None,
        scaling: str = "linear",
        mechanism: str = "softmax",
        qk_var: Any = 1.0,
        ov_var: Any = 1.0,
        bias_var: Any = 0.0,
        parametrization: str = "ntk",
    ):
        self.width = whole(width, "width", 1)
        self.heads = whole(heads, "heads", 1)
        self.head_dim = self.width if head_dim is None else whole(head_dim, "head_dim", 1)
        self.scaling = one_of(scaling, "scaling", ("linear", "sqrt"))
        self.mechanism = one_of(mechanism, "mechanism", tuple(MECHANISMS))
        self.qk_var = positive(qk_var, "qk_var")
        self.ov_var = positive(ov_var, "ov_var")
        self.bias_var = positive(bias_var, "bias_var", zero=True)
        self.parametrization = one_of(parametrization, "parametrization", ("ntk", "standard"))

    def __repr__(self) -> str:
        return f"Attention({self.width}, scaling={self.scaling!r}, mechanism={self.mechanism!r})"

    def after(self, kind: str) -> str:
        if self.scaling == "sqrt" and self.mechanism != "identity":
            raise ValueError(
                f"scores divided by sqrt(d) stay random, and {self.mechanism!r} has no closed form for them: use "
                '`scaling="linear"` or `mechanism="identity"`'
            )
        return "gaussian"

    def shape(self, shape: Shape) -> Shape:
        if len(shape) < 2:
            raise ValueError(f"attention needs positions, and its input of shape {shape} has none")
        return (*shape[:-1], self.width)

    def init(self, key: jax.Array, shape: Shape) -> Params:
        keys, inner = jax.random.split(key, 5), (shape[-1], self.heads, self.head_dim)
        normal = lambda k, s: jax.random.normal(k, s, working_dtype())
        found = {"query": normal(keys[0], inner), "value": normal(keys[1], inner)}
        if self.scaling == "sqrt":
            found["key"] = normal(keys[2], inner)
        found["output"] = normal(keys[3], (self.heads * self.head_dim, self.width))
        found["bias"] = normal(keys[4], (self.width,))
        if self.parametrization == "standard":
            sizes = self._sizes(shape[-1])
            found = {name: jnp.asarray(sizes[name], each.dtype) * each for name, each in found.items()}
        return found

    def _sizes(self, channels: int) -> Params:
        """Standard deviations of weights and biases with their factors, for inputs of so many `channels`."""
        looking, passing = self.qk_var**0.25, self.ov_var**0.25
        found = {"query": looking / channels**0.5, "value": passing / channels**0.5}
        if self.scaling == "sqrt":
            found["key"] = found["query"]
        found["output"] = passing / (self.heads * self.head_dim) ** 0.5
        return found | {"bias": self.bias_var**0.5}

    def lr_factors(self, shape: Shape) -> Params:
        """Same as `Dense`: training "standard" with these factors equals training "ntk" with factors 1."""
        standard = self.parametrization == "standard"
        return {name: size**2 if standard else 1.0 for name, size in self._sizes(shape[-1]).items()}

    def _through(self, name: str, params: Params, x: jax.Array) -> jax.Array:
        """Inputs (n, positions, channels) times weights: (n, heads, positions, head_dim)."""
        return self._factor(name, x) * jnp.einsum("npc,chd->nhpd", x, params[name])

    def _factor(self, name: str, x: jax.Array) -> jax.Array:
        """What stands before parameters, for inputs `x` of the layer."""
        factor = 1.0 if self.parametrization == "standard" else self._sizes(x.shape[-1])[name]
        return jnp.asarray(factor, x.dtype)

    def scores(self, params: Params, x: jax.Array) -> jax.Array:
        """The scores of every two positions in each head, at `params` and `x`: (n, heads, positions, positions)."""
        flat = x.reshape(len(x), -1, x.shape[-1])
        query = self._through("query", params, flat)
        key = query if self.scaling == "linear" else self._through("key", params, flat)
        power = 1.0 if self.scaling == "linear" else 0.5
        return jnp.einsum("nhpd,nhqd->nhpq", query, key) / self.head_dim**power

    def __call__(self, params: Params, x: jax.Array) -> jax.Array:
        flat = x.reshape(len(x), -1, x.shape[-1])
        looks = MECHANISMS[self.mechanism](self.scores(params, x))
        heads = jnp.einsum("nhpq,nhqd->nphd", looks, self._through("value", params, flat))
        inner = heads.reshape(*flat.shape[:2], -1)
        found = self._factor("output", x) * inner @ params["output"]
        return (found + self._factor("bias", x) * params["bias"]).reshape(*x.shape[:-1], self.width)

    def resized(self, change: Callable[[int], int]) -> "Attention":
        """The same layer of width `change(width)`.

        The dimension of the heads grows with it if scores are divided by that dimension; the number of heads grows if
        scores are divided by its root.
        """
        heads, head_dim = self.heads, self.head_dim
        heads, head_dim = (change(heads), head_dim) if self.scaling == "sqrt" else (heads, change(head_dim))
        return Attention(
            change(self.width), heads, head_dim, self.scaling, self.mechanism, self.qk_var, self.ov_var,
            self.bias_var, self.parametrization,
        )  # fmt: skip

    def limit(self, shape: Shape) -> "Attention":
        return Attention(1, 1, 1, self.scaling, self.mechanism, self.qk_var, self.ov_var, self.bias_var)

    def need(self, every: bool) -> bool:
        return True

    def rows(self, row: Row) -> tuple[Row, Any]:
        layout = Layout(row.size.ndim - 1, every=True, outer=False)
        own = covariance(*layout.both(row.size, row.size), row.own.gap)
        data = {"before": row.size}
        if self.scaling == "linear":
            data["looks"] = self._looks(own, row.size.shape)
        product, tangent = self._moments(data, data, own, row.own.tangent, layout)
        size = safe_sqrt(layout.diagonal(product))
        return Row(size, layout.diagonal(tangent)), data | {"inverse": inverse(size)}

    def _looks(self, own: jax.Array, shape: Shape) -> jax.Array:
        """(keys, *positions, n): how much each position looks at each other one."""
        count = math.prod(shape[:-1])
        scores = jnp.sqrt(self.qk_var) * own.reshape(count, count, shape[-1])
        looks = MECHANISMS[self.mechanism](jnp.moveaxis(scores, -1, 0))  # (n, positions, keys)
        return jnp.moveaxis(looks, (0, 2), (-1, 0)).reshape(count, *shape)

    def pairs(self, one: Any, two: Any, pair: Pair, layout: Layout) -> Pair:
        before = covariance(*layout.both(one["before"], two["before"]), pair.gap)
        product, tangent = self._moments(one, two, before, pair.tangent, layout)
        inverses = layout.left(one["inverse"]) * layout.right(two["inverse"])
        return Pair(jnp.maximum(1.0 - product * inverses, 0.0), tangent)

    def _moments(self, one: Any, two: Any, before: Any, tangent: Any, layout: Layout) -> tuple[Any, Any]:
        """Covariance and tangent kernel after the layer, of every two positions."""
        tangent = jnp.broadcast_to(tangent, before.shape)
        if self.scaling == "linear":
            seen = self._seen(one, two, before, layout)
            both = self._seen(one, two, tangent, layout)
            return self.ov_var * seen + self.bias_var, self.ov_var * (both + 2.0 * seen) + self.bias_var
        axes, scale = tuple(range(2 * layout.rank)), self.ov_var * self.qk_var
        squares, crossed = jnp.sum(before**2, axis=axes), jnp.sum(before * tangent, axis=axes)
        after = scale * (2.0 * before * crossed + (tangent + 4.0 * before) * squares)
        return scale * before * squares + self.bias_var, after + self.bias_var

    @staticmethod
    def _seen(one: Any, two: Any, a: jax.Array, layout: Layout) -> jax.Array:
        """g a g'^T, for all pairs of inputs: two batched matrix products."""
        count = math.prod(a.shape[: layout.rank])
        flat = a.reshape(count, count, *a.shape[2 * layout.rank :])
        left, right = (side["looks"].reshape(count, count, -1) for side in (one, two))
        if layout.outer:
            found = jnp.einsum("bai,bdij->adij", left, flat)
            found = jnp.einsum("dcj,adij->acij", right, found)
        else:
            found = jnp.einsum("dci,bai,bdi->aci", right, left, flat)
        return found.reshape(a.shape)
