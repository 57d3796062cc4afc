"""Statistics of order 1/n: the result of `propagate(net, x, order=1)` for each layer, and the recursion over layers."""

import itertools
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import numpy as np

from ... import activations
from ..._base.result import Result
from ..._run.memory import available_bytes, cores, human_bytes
from ...activations.averages.series import Series
from ...activations.closed import PiecewiseLinear
from ...kernels.wide.network import layer_kernels
from ...models.networks.chain import Chain, chain_of
from ...models.networks.network import AbstractNetwork
from ...models.networks.stage import Stage
from ..averages.base import Averages, Wanted, multisets
from ..averages.kinked import Kinked
from ..averages.piecewise import Pieces
from ..averages.quadrature import Smooth
from ..averages.relu_deltas import infinite, with_deltas
from ..averages.relu_family import Folded
from .cost_estimate import announce_price
from .recursion import DDNTK_TENSORS, DNTK_TENSORS, KERNELS, NTK_TENSORS, Tensors, first_tensors, next_tensors
from .residual_blocks import Paths

Kernels = tuple[np.ndarray, np.ndarray, np.ndarray]  # kernel, tangent kernel, 1 - correlation

FIELDS = {
    "V": "four_point",
    "G": "kernel_correction",
    "H": "ntk_correction",
    "D": "ntk_output_d",
    "F": "ntk_output_f",
    "A": "ntk_variance_a",
    "B": "ntk_variance_b",
    "P": "dntk_p",
    "Q": "dntk_q",
    "R": "ddntk_r",
    "S": "ddntk_s",
    "T": "ddntk_t",
    "U": "ddntk_u",
}


class Fluctuations(Result, eqx.Module):
    r"""The statistics of a layer to order 1/width. Each field divided by `width` is the measured value up to
    $O(1/\text{width}^2)$.

    $z_{i;a}$ is neuron $i$ at input $a$, $H_{ij;ab}$ the tangent kernel of neurons $i$ and $j$, $\Delta H = H -
    \mathbb{E}[H]$; 0 and 1 are two different neurons.

    | field | is `width` times | symbol |
    |---|---|---|
    | `kernel_correction` [a,b] | $\mathbb{E}[z_{0;a} z_{0;b}]$ - `kernel` | $G^{(1)}$ |
    | `ntk_correction` [a,b] | $\mathbb{E}[H_{00;ab}]$ - `ntk` | $H^{(1)}$ |
    | `four_point` [a,b,c,d] | covariance of $z_{0;a} z_{0;b}$ and $z_{1;c} z_{1;d}$ | $V_{(ab)(cd)}$ |
    | `ntk_output_d` [a,b,c,d] | $\mathbb{E}[z_{0;a} z_{0;b} \Delta H_{11;cd}]$ | $D$ |
    | `ntk_output_f` [a,b,c,d] | $\mathbb{E}[z_{0;a} z_{1;b} H_{01;cd}]$ | $F$ |
    | `ntk_variance_a` [a,b,c,d] | $\mathbb{E}[\Delta H_{00;ab} \Delta H_{11;cd}]$ | $A$ |
    | `ntk_variance_b` [a,b,c,d] | $\mathbb{E}[H_{01;ab} H_{01;cd}]$ | $B$ |
    | `dntk_p` [a,b,c,d] | $\mathbb{E}[dH_{011;abc} z_{0;d}]$, $dH_{ijk;abc} = z_{i;a,mn} z_{j;b,m} z_{k;c,n}$ | $P$ |
    | `dntk_q` [a,b,c,d] | $\mathbb{E}[dH_{001;abc} z_{1;d}]$ | $Q$ |
    | `ddntk_r` [a,b,c,d] | $\mathbb{E}[z_{0;a,mno} z_{0;b,m} z_{1;c,n} z_{1;d,o}]$ | $R$ |
    | `ddntk_s` [a,b,c,d] | $\mathbb{E}[z_{0;a,mn} z_{0;b,mo} z_{1;c,n} z_{1;d,o}]$ | $S$ |
    | `ddntk_t` [a,b,c,d] | $\mathbb{E}[z_{0;a,mn} z_{1;b,mo} z_{0;c,n} z_{1;d,o}]$ | $T$ |
    | `ddntk_u` [a,b,c,d] | $\mathbb{E}[z_{0;a,mn} z_{1;b,mo} z_{1;c,n} z_{0;d,o}]$ | $U$ |

    Indices m, n, o after a comma are derivatives with respect to parameters, summed. `kernel`, `ntk`, `correlation`:
    the infinite-width values. `width`: the width of the previous layer. For activations of the ReLU family `ddntk_r` is
    infinite if a is one of b, c, d, and the others if $a = b$, because kinks give squares of delta functions. For other
    activations with kinks the dNTK and ddNTK are None. `note` says which entries are infinite or missing.
    """

    kernel: np.ndarray
    ntk: np.ndarray
    correlation: np.ndarray
    width: int = eqx.field(static=True)
    note: str = eqx.field(static=True)
    kernel_correction: np.ndarray
    ntk_correction: np.ndarray
    four_point: np.ndarray
    ntk_output_d: np.ndarray
    ntk_output_f: np.ndarray
    ntk_variance_a: np.ndarray
    ntk_variance_b: np.ndarray
    dntk_p: np.ndarray | None = None
    dntk_q: np.ndarray | None = None
    ddntk_r: np.ndarray | None = None
    ddntk_s: np.ndarray | None = None
    ddntk_t: np.ndarray | None = None
    ddntk_u: np.ndarray | None = None


def fluctuations(net: AbstractNetwork, x: np.ndarray, train: int | None = None) -> tuple[Fluctuations, ...]:
    """All layers of `net` to order 1/n, for checked inputs.

    With `train`, entries of more than two different inputs beyond so many first ones are left out and mean nothing.
    """
    chain = chain_of(net, "order=1", residual=True)
    found = chain.stages
    distinct, back = np.unique(x, axis=0, return_inverse=True)  # a copy of an input has nothing of its own
    _require_fits(len(x), len(found), averages=256 if chain.residual else 0)
    kinds = [stage.activation for stage in found[1:]] or [activations.get("linear")]
    known = [_known(each, len(distinct)) for each in kinds]
    names, _ = min(known, key=lambda each: len(each[0]))
    note = next((note for _, note in known if note), "")
    wanted = None if train is None else _two_new(np.isin(np.arange(len(distinct)), back.ravel()[:train]))
    walked = (
        _by_paths(found, distinct, wanted) if chain.residual else _in_turn(chain, distinct, names, wanted)
    )
    layers = []
    for k, (stage, ((kernel, ntk, gap), tensors)) in enumerate(zip(found, walked, strict=True)):
        if not stage.ends:
            continue
        fields = {"kernel": kernel, "ntk": ntk, "correlation": 1.0 - gap}
        fields |= {FIELDS[name]: _marked(name, tensor, k and note) for name, tensor in tensors.items()}
        expanded = {name: _expanded(array, back.ravel()) for name, array in fields.items()}
        layers.append(Fluctuations(width=stage.fan_in, note=note, **expanded))
    return tuple(layers)


def _in_turn(
    chain: Chain, x: np.ndarray, names: tuple[str, ...], wanted: Wanted | None
) -> Iterator[tuple[Kernels, Tensors]]:
    """Kernel, tangent kernel, gap and tensors of each stage, from those of the stage before."""
    kernels, found = layer_kernels(chain.flat(), x), chain.stages
    if len(found) > 1:
        _announce(found[1].activation, kernels[0][0], wanted, len(found) - 1)
    tensors = first_tensors(len(x), names)
    for k, stage in enumerate(found):
        if k:
            before, theta, _ = kernels[k - 1]
            averages = _averages(stage.activation, before, k > 1, wanted)
            ratio = stage.fan_in / found[k - 1].fan_in if k > 1 else 0.0  # the first has nothing to hand on
            tensors = next_tensors(tensors, theta, stage.weight_var, ratio, averages)
        yield kernels[k], tensors


def _by_paths(
    found: tuple[Stage, ...], x: np.ndarray, wanted: Wanted | None
) -> Iterator[tuple[Kernels, Tensors]]:
    """The same where residual blocks keep their neurons: from every two layers of a neuron."""
    if any(stage.activation.breaks for stage in found[1:]):
        raise ValueError(
            "`order=1` supports residual blocks only with activations whose derivatives are all continuous: use one "
            "such as gelu, or order=0."
        )
    paths = Paths(found, x, wanted)
    for (kernel, ntk, _), tensors in zip(paths.moments, paths.tensors(), strict=True):
        size = np.sqrt(np.diagonal(kernel))
        yield (kernel, ntk, 1.0 - kernel / np.outer(size, size)), tensors


def _announce(activation: Any, kernel: np.ndarray, wanted: Wanted | None, layers: int) -> None:
    """Says what the averages will take, if that is long."""
    n = len(kernel)
    if n < 4:
        return
    if activation.smooth:
        own: Any = Pieces(activation) if activation.breaks else _smooth(activation, kernel)
        sets = [four for four in multisets(n) if wanted is None or wanted(four)]
        make = lambda part: [own.table(kernel, four) for four in part]
        announce_price(make, sets, 16, layers, n, cores())
    elif isinstance(activation, PiecewiseLinear):
        folded, sets = Folded(activation), list(itertools.combinations(range(n), 4))
        announce_price(
            lambda part: folded.store_all({}, kernel, part, (0, 1, 2, 3)), sets, 1024, layers, n, 1
        )


def _two_new(is_old: np.ndarray) -> Wanted:
    """Whether at most two of the different inputs among four are not old: a layer asks the one before for no others."""
    return lambda four: sum(not is_old[k] for k in set(four)) <= 2


def _averages(activation: Any, kernel: np.ndarray, derivatives: bool, wanted: Wanted | None) -> Averages:
    if not activation.breaks:
        return _smooth(activation, kernel).averages(kernel, wanted)
    if activation.smooth:
        return Pieces(activation).averages(kernel, derivatives, wanted)
    if isinstance(activation, PiecewiseLinear):
        known = Folded(activation).averages(kernel, derivatives)
        return known._replace(fours=known.fours | with_deltas(activation, kernel))
    assert isinstance(activation, Series)
    return Kinked(activation).averages(kernel, derivatives)


def _smooth(activation: Any, kernel: np.ndarray) -> Smooth:
    return Smooth(activation, float(np.diagonal(kernel).max()))


def _known(activation: Any, n: int) -> tuple[tuple[str, ...], str]:
    """Which tensors can be had, and a word on the others."""
    names = (*KERNELS, *NTK_TENSORS)
    if activation.smooth:
        return (*names, *DNTK_TENSORS, *DDNTK_TENSORS), ""
    if isinstance(activation, PiecewiseLinear):
        note = "ddntk_r to ddntk_u are infinite where two derivatives act on one input: squares of delta functions."
        return (*names, *DNTK_TENSORS, *DDNTK_TENSORS), note
    if n > 2:
        raise ValueError(
            f"`order=1` of an activation with kinks, other than the ReLU family, supports 1 or 2 inputs; got {n}."
        )
    return names, "dntk_p to ddntk_u contain delta functions at the kinks."


def _marked(name: str, tensor: np.ndarray, kinked: Any) -> np.ndarray:
    """With infinity where a kink makes a tensor infinite."""
    where = infinite(name, len(tensor)) if kinked else None
    return tensor if where is None else np.where(where, np.inf, tensor)


def _require_fits(n: int, layers: int, averages: int) -> None:
    """Refuse more inputs than the tensors of all layers, and what is needed to make one of them, can hold."""
    tensors = 11 * layers + 20 + averages
    needed, free = 8 * tensors * n**4, available_bytes()
    if needed > free:
        most = int((free / (8 * tensors)) ** 0.25)
        raise MemoryError(
            f"`order=1` keeps 11 tensors of {n}^4 numbers in each of {layers} layers: {human_bytes(needed)}, "
            f"but {human_bytes(free)} are free: use at most {most} inputs."
        )


def _expanded(array: np.ndarray, back: np.ndarray) -> Any:
    """The same with copies of inputs in their places."""
    if len(back) == len(array) and (back == np.arange(len(back))).all():
        return array
    return array[np.ix_(*itertools.repeat(back, array.ndim))]
