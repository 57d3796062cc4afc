"""Residual and normalized networks, and transformers: what a block is made of, and variances with which many of them
train."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

import nearkernel as nk

GROWTH = math.e  # of squared gradients over all blocks, if variances are chosen for it


@dataclasses.dataclass(frozen=True)
class Block:
    """A hidden layer after the first: z' = W s(z), with z normalized before s, or added to the result.

    If it `attends`, a block of a transformer: z + Attention(LayerNorm(z)), then z + W s(V LayerNorm(z)).
    """

    name: str
    norm: bool
    skip: bool
    words: str
    attends: bool = False

    def layers(
        self, activation: Any, width: int, weight_var: float, bias_var: float, tokens: int = 0
    ) -> list[Any]:
        """Without `tokens`, attention is that between equal ones: values, then outputs."""
        L = nk.layers
        dense = L.Dense(width, weight_var, bias_var, "standard")
        if self.attends:
            square, norm = weight_var**2, L.LayerNorm()
            attention = L.Attention(
                width, 1, qk_var=square, ov_var=square, bias_var=bias_var, parametrization="standard"
            )
            looking = [attention] if tokens else [dense, dense]
            return [L.Residual([norm, *looking]), L.Residual([norm, dense, L.Activation(activation), dense])]
        branch = [*self.head(activation), dense]
        return [L.Residual(branch)] if self.skip else branch

    def head(self, activation: Any) -> list[Any]:
        """What stands before weights, in a block and at the end."""
        norm = [nk.layers.LayerNorm()] if self.norm else []
        return norm if self.attends else [*norm, nk.layers.Activation(activation)]


BLOCKS = {
    block.name: block
    for block in (
        Block("plain", False, False, "fully connected layers"),
        Block("residual", False, True, "residual blocks z + W s(z)"),
        Block("prenorm", True, True, "residual blocks z + W s(LayerNorm(z))"),
        Block("normalized", True, False, "layers W s(LayerNorm(z))"),
        Block("transformer", True, True, "pre-norm transformer blocks", attends=True),
    )
}


@dataclasses.dataclass(frozen=True)
class Point:
    """The initialization that is advised, in words and numbers; K* is where variances come to rest (nan: nowhere)."""

    activation: Any
    weight_var: float
    bias_var: float
    fixed_point: float
    universality: str
    message: str
    block: dict[str, float] | None = None  # of all networks but plain ones: growth, angles


def plain_point(activation: str) -> Point:
    """The critical point of an activation; one without is refused."""
    found = nk.critical(activation)
    if not found.ok:
        raise ValueError(f"--activation {activation}: {found.message} Try tanh, gelu, silu or relu.")
    return Point(
        found.activation,
        found.weight_var,
        found.bias_var,
        found.fixed_point,
        found.universality,
        found.message,
    )


def block_point(block: Block, activation: str, depth: int) -> Point:
    """Variances of a residual or normalized network with so many hidden layers."""
    s, blocks = nk.activations.get(activation), max(depth - 1, 1)
    weight_var, bias_var = 1.0, 0.0
    if block.skip and not block.norm:
        weight_var = nk.critical(block.layers(s, 1, 1.0, 0.0)).factor_for(blocks, GROWTH)
    if block.norm and not block.skip:  # chi_perp = C_W E[s'^2] / (C_b + C_W E[s^2]), of z with unit variance
        # Not chi_perp = 1, which makes inputs more alike than it need: gradient descent then ends at larger losses.
        at = nk.theory.moments(s, 1.0)
        bias_var = max(float(at.slope) * GROWTH ** (-1 / blocks) - float(at.value), 0.0)
    flow = nk.critical(block.layers(s, 1, weight_var, bias_var))
    rest = flow.kernel if math.isfinite(flow.kernel) and flow.kernel > 0 else 1.0
    signal, gradient, alike = flow.run(blocks, rest)
    numbers = {
        "blocks": blocks,
        "growth": flow.growth,
        "chi_perp": flow.chi_perp,
        "signal_growth": float(signal[-1] / signal[0]),
        "gradient_growth": float(gradient[-1]),
        "depth_scale": flow.depth_scale,
        "correlation_from": float(alike[0]),
        "correlation_to": float(alike[-1]),
    }
    return Point(
        s, weight_var, bias_var, np.nan, block.name, in_words(block, numbers, weight_var, bias_var), numbers
    )


def in_words(block: Block, numbers: dict[str, float], weight_var: float, bias_var: float) -> str:
    biases = f", bias_var = {bias_var:.6g}" if bias_var else ""
    start = f"weight_var = {weight_var:.6g}{biases}"
    if block.skip and not block.norm:
        return f"{start} in every branch, about {weight_var * numbers['blocks']:.3g} / blocks."
    if block.skip:
        return f"{start}; any other does as well: gradients grow as a power of the number of blocks."
    return f"{start}; any other weight_var does as well if bias_var grows with it."


def angles(numbers: dict[str, float]) -> str:
    """What becomes of the angle of two inputs, or of two tokens of one input."""
    scale = numbers["depth_scale"]
    rest = f"; it converges over about {scale:.3g} blocks" if math.isfinite(scale) else ""
    return (
        f"{'Tokens' if 'tokens' in numbers else 'Inputs'} with correlation {numbers['correlation_from']:.2g} have "
        f"correlation {numbers['correlation_to']:.4g} after the last block{rest}."
    )


def network(block: Block, point: Point, in_dim: int, width: int, depth: int, tokens: int = 0) -> nk.Network:
    """The whole network: a first layer, depth - 1 blocks, an output, which is that of the mean over `tokens`."""
    L, s = nk.layers, point.activation
    first = L.Dense(width, 1.0 if block.skip else point.weight_var, point.bias_var, "standard")
    inner = block.layers(s, width, point.weight_var, point.bias_var, tokens)
    repeated = [L.Repeat(inner, depth - 1)] if depth > 1 else []
    end = [*block.head(s), *([L.GlobalAvgPool()] if tokens else [])]
    shape = (tokens, in_dim) if tokens else (in_dim,)
    return nk.Network(shape, [first, *repeated, *end, L.Dense(1, 1.0, point.bias_var, "standard")])
