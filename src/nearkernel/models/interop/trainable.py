"""Which parameters of a network train: by name, by function, or through adapters of low rank."""

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..._base.check import positive, whole
from ..._base.types import Array

if TYPE_CHECKING:
    import torch


class Adapter(NamedTuple):
    """One matrix `name` that becomes W + scale B A."""

    name: str
    scale: float

    @property
    def first(self) -> str:
        return f"{self.name}.A"

    @property
    def second(self) -> str:
        return f"{self.name}.B"

    def adapted(self, weight: Array, params: dict[str, Array]) -> Array:
        change = jnp.asarray(params[self.second]) @ jnp.asarray(params[self.first])
        return weight + jnp.asarray(self.scale * change, weight.dtype)


def _patterns(names: str | Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


class LoRA(eqx.Module):
    r"""Low-rank adapters: each named matrix $W$ becomes $W + \frac{\alpha}{r} B A$, and only $A$ and $B$ are trained.

    $B$ is initialized to 0, so the network is unchanged at initialization; the entries of $A$ (r, columns) are
    uniform in ±1/√columns.

    **Arguments:** `rank`, r of the adapters; `names`, glob patterns of the weights or their submodules (embeddings
    are left out); `alpha`, by default the rank, so that the factor is 1; `seed` for drawing A.
    """

    rank: int = eqx.field(static=True, default=4)
    names: tuple[str, ...] = eqx.field(static=True, default=("*",), converter=_patterns)
    alpha: float | None = eqx.field(static=True, default=None)
    seed: int = eqx.field(static=True, default=0)

    def __check_init__(self):
        whole(self.rank, "rank", 1)
        whole(self.seed, "seed", 0)
        if self.alpha is not None:
            positive(self.alpha, "alpha")

    @property
    def scale(self) -> float:
        return 1.0 if self.alpha is None else self.alpha / self.rank

    def draw(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
        """The matrices A and B of each adapter, by the `shapes` of the weights."""
        rng = np.random.default_rng(self.seed)
        drawn = {}
        for name, (rows, columns) in shapes.items():
            adapter = Adapter(name, self.scale)
            reach = columns**-0.5
            drawn[adapter.first] = rng.uniform(-reach, reach, size=(self.rank, columns))
            drawn[adapter.second] = np.zeros((rows, self.rank))
        return drawn


Trainable: TypeAlias = str | Callable | LoRA | Sequence


class Choice(NamedTuple):
    """`names` of the parameters that train as they are; `adapters`, and the parameters `drawn` for them."""

    names: tuple[str, ...]
    adapters: tuple[Adapter, ...]
    drawn: dict[str, np.ndarray]


class Parameter(NamedTuple):
    """What a choice looks at: all names of a parameter (several if tied), the submodule that owns it, its shape."""

    names: tuple[str, ...]
    owner: "torch.nn.Module"
    shape: tuple[int, ...]
    requires_grad: bool
    embeds: bool

    def matches(self, patterns: Sequence[str]) -> bool:
        """Whether a pattern fits the parameter or a submodule that holds it: "head" stands for "head.*"."""
        held = [".".join(name.split(".")[:k]) for name in self.names for k in range(1, name.count(".") + 2)]
        return any(fnmatch.fnmatchcase(each, pattern) for pattern in patterns for each in held)


def choose(trainable: Trainable | None, parameters: dict[str, Parameter]) -> Choice:
    """Which of `parameters` train.

    `trainable`: None (those that require gradients), a glob pattern of names, a function of name and owner, a `LoRA`,
    or a list of these.
    """
    wanted = trainable if isinstance(trainable, list | tuple) else [trainable]
    names: dict[str, None] = {}
    adapters: dict[str, Adapter] = {}
    drawn: dict[str, np.ndarray] = {}
    for each in wanted:
        if isinstance(each, LoRA):
            matrices = {
                name: parameter.shape
                for name, parameter in parameters.items()
                if len(parameter.shape) == 2 and not parameter.embeds and parameter.matches(each.names)
            }
            _require_some(matrices, each.names, parameters, "no matrix")
            adapters |= {name: Adapter(name, each.scale) for name in matrices}
            drawn |= each.draw(matrices)
        else:
            names |= dict.fromkeys(_named(each, parameters))
    both = names.keys() & adapters.keys()
    if both:
        raise ValueError(f"`trainable` both trains {sorted(both)[0]!r} and adapts it: choose one.")
    return Choice(tuple(name for name in parameters if name in names), tuple(adapters.values()), drawn)


def _named(each: Trainable | None, parameters: dict[str, Parameter]) -> Sequence[str]:
    if each is None:
        names = [name for name, parameter in parameters.items() if parameter.requires_grad]
        _require_some(names, None, parameters, "no parameter that requires gradients")
    elif isinstance(each, str):
        names = [name for name, parameter in parameters.items() if parameter.matches((each,))]
        _require_some(names, (each,), parameters, "no parameter")
    elif callable(each):
        names = [name for name, parameter in parameters.items() if each(name, parameter.owner)]
        _require_some(names, None, parameters, "no parameter for which the function is true")
    else:
        raise TypeError(
            "`trainable` must be a pattern such as 'head.*', a function of name and submodule, an nk.LoRA, or a list "
            f"of these; got {type(each).__name__}."
        )
    return names


def _require_some(found: Sized, patterns: Sequence[str] | None, parameters: dict, what: str) -> None:
    if not found:
        some = ", ".join(list(parameters)[:6]) + (", ..." if len(parameters) > 6 else "")
        like = f" like {', '.join(map(repr, patterns))}" if patterns else ""
        raise ValueError(f"`trainable` finds {what}{like} in `module`, which has {some or 'no parameters'}.")
