"""Initializations: the advised one, what practitioners type, and what PyTorch, Flax and Keras do if nothing is said."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from .blocks import Block

Variances = Callable[[int, int], tuple[float, float]]  # (fan_in, fan_out) -> C_W, C_b of one layer


@dataclasses.dataclass(frozen=True)
class Start:
    """An initialization: variances of the weights (times fan-in) and biases of a layer, and the shape of their law."""

    name: str
    variances: Variances
    law: (
        str  # "normal", "uniform", "truncated_normal" of weights and biases, or "orthogonal" of weights alone
    )
    words: str
    ends: float | None = None  # C_W of the first layer and of the output, if not that of the others
    heads: tuple[float, float] | None = None  # what `attention` gives, if not C_W of other layers
    after: float = 1.0  # factor on C_W of the second dense layer of a transformer's block
    advised: bool = False  # whether the variances are those that are advised

    def first(self, fan_in: int, fan_out: int) -> tuple[float, float]:
        """C_W, C_b of the first layer, and of the output."""
        weight_var, bias_var = self.variances(fan_in, fan_out)
        return (weight_var if self.ends is None else self.ends), bias_var

    def attention(self, width: int) -> tuple[float, float]:
        """C_W of queries, keys and values, and of outputs."""
        weight_var, _ = self.variances(width, width)
        return self.heads or (weight_var, weight_var)


DEFAULTS = (
    Start(
        "PyTorch",
        lambda fan_in, _: (1 / 3, 1 / (3 * fan_in)),
        "uniform",
        "nn.Linear: weights and biases uniform within 1/sqrt(fan_in)",
        heads=(1 / 2, 1 / 3),  # in_proj_weight, of three matrices, is initialized as one by xavier_uniform_
    ),
    Start("Flax", lambda *_: (1.0, 0.0), "truncated_normal", "Dense: LeCun's (lecun_normal), biases 0"),
    Start(
        "Keras",
        lambda fan_in, fan_out: (2 * fan_in / (fan_in + fan_out), 0.0),
        "uniform",
        # Attention, too, since #22789 (2026) counts its fans as those of Dense.
        "Dense: Glorot's (glorot_uniform), biases 0",
    ),
)
HE = Start("He", lambda *_: (2.0, 0.0), "normal", "kaiming_normal_, biases 0")


def advised_starts(
    weight_var: float, bias_var: float, block: Block, orthogonal: bool, ends: float | None = None
) -> list[Start]:
    """What the printed code does; and the same variances with the other law of weights, unless layers are added to
    their input: such layers are near the identity whatever their weights."""
    variances = lambda *_: (weight_var, bias_var)
    found = {
        law: Start(law, variances, law, f"the advised variances, {law} weights", ends, advised=True)
        for law in ("orthogonal", "normal")
    }
    chosen = found.pop("orthogonal" if orthogonal else "normal")
    first = dataclasses.replace(chosen, name="advised")
    return [first] if block.skip else [first, *found.values()]


def usual_starts(block: Block, blocks: int, width: int) -> list[Start]:
    """What practitioners do: He's variances or, in transformers, those of GPT-2; and the frameworks' defaults."""
    if block.attends:
        small, branches = 0.02**2, 2 * blocks
        heads = (small * width, small * width / branches)
        words = f"normal weights of deviation 0.02, those of residual outputs over sqrt({branches}), biases 0"
        gpt = Start(
            "GPT-2", lambda fan_in, _: (small * fan_in, 0.0), "normal", words, None, heads, 1 / branches
        )
        return [gpt, *DEFAULTS]
    if not block.skip:
        return [HE, *DEFAULTS]
    words = f"{HE.words}; weights of all blocks over sqrt({blocks}), as GPT-2 scales residual outputs"
    scaled = Start("He/sqrt(L)", lambda *_: (2.0 / blocks, 0.0), "normal", words, 2.0)
    return [HE, scaled, *DEFAULTS]
