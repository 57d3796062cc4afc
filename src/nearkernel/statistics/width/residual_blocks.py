"""Statistics of order 1/n of networks with residual blocks: all layers from all pairs of layers that share neurons."""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..._run.executor import in_order
from ..._run.memory import cores
from ...models.networks.stage import Stage
from ..averages.base import Wanted, multisets
from ..averages.quadrature import Smooth
from .cost_estimate import announce_price
from .pair_functions import PairFunctions
from .path_sums import memory, of_own_neurons, path_tensors
from .recursion import DDNTK_TENSORS, DNTK_TENSORS, KERNELS, NTK_TENSORS, Step, Tensors, first_tensors

_FOURS = (*NTK_TENSORS, *DNTK_TENSORS, *DDNTK_TENSORS)


class Moments(NamedTuple):
    """Of the outputs of a stage at infinite width; `averages` of the activation after it, for pairs of inputs."""

    kernel: np.ndarray
    ntk: np.ndarray
    averages: Any  # an `Averages`; None after the last


class Paths:
    """A network with residual blocks at distinct inputs `x`; stage k has outputs z^k, k = 0, 1, ...

    **Fields:** `moments` of all stages; `neurons[k]`, the first stage with the neurons of stage k; `influences[m][k]`,
    of a neuron at z^k on the kernels of z^m.
    """

    def __init__(self, found: tuple[Stage, ...], x: np.ndarray, wanted: Wanted | None = None):
        self.found, self.wanted, self.n = found, wanted, len(x)
        self.neurons: list[int] = []
        for k, stage in enumerate(found):
            self.neurons.append(k if stage.skip is None else self.neurons[stage.skip])
        self._require_one_activation()
        self.moments = self._moments(x)
        self.influences = self._influences()

    def _require_one_activation(self) -> None:
        for first in set(self.neurons):
            used = {self.found[k + 1].activation for k in self._of(first)}
            if len(used) > 1:
                raise ValueError(
                    "`order=1` needs the same activation in all layers that residual blocks connect; got "
                    f"{len(used)} different ones."
                )

    def _of(self, first: int) -> list[int]:
        """The stages with the neurons of stage `first` that an activation follows."""
        return [k for k in range(len(self.found) - 1) if self.neurons[k] == first]

    def _moments(self, x: np.ndarray) -> list[Moments]:
        first = self.found[0]
        kernel = first.bias_var + first.weight_var / first.fan_in * (x @ x.T)
        ntk, moments = kernel, list[Moments]()
        for stage in self.found[1:]:
            smooth = Smooth(stage.activation, float(np.diagonal(kernel).max()))
            averages = smooth.averages(kernel, lambda four: False)
            moments.append(Moments(kernel, ntk, averages))
            branch = stage.bias_var + stage.weight_var * averages.pair(0, 0)
            ntk = branch + stage.weight_var * averages.pair(1, 1) * ntk
            kernel = branch
            if stage.skip is not None:
                kernel, ntk = kernel + moments[stage.skip].kernel, ntk + moments[stage.skip].ntk
        return [*moments, Moments(kernel, ntk, None)]

    def _influences(self) -> list[dict[int, PairFunctions]]:
        zero, found = np.zeros((self.n, self.n)), [dict[int, PairFunctions]()]
        for m, stage in enumerate(self.found[1:]):
            c, (_, ntk, averages) = stage.weight_var, self.moments[m]
            new = {k: old.through(averages, ntk, c) for k, old in found[m].items()}
            new[m] = PairFunctions(zero, zero + c, zero, zero + c)
            for k, old in found[stage.skip].items() if stage.skip is not None else ():
                new[k] = PairFunctions(*(a + b for a, b in zip(new[k], old, strict=True)))
            found.append(new)
        return found

    def tensors(self) -> list[Tensors]:
        """Of all stages, times their `fan_in`."""
        count = len(self.found)
        found = [first_tensors(self.n, (*KERNELS, *_FOURS)) for _ in range(count)]
        shifts = np.zeros((count, 2, self.n, self.n))
        for k, m, tables in self._pairs():
            share = 1.0 / self.found[k].dense.width
            (_, ntk, averages), (_, later, at_later) = self.moments[k], self.moments[m]
            turned = tables.transpose(2, 3, 0, 1, 6, 7, 4, 5)
            for above in range(m + 1, count):
                one, two = (self.influences[above][at] for at in (k, m))
                _add(
                    found[above],
                    share,
                    path_tensors(one, two, (ntk, later), ntk, tables, (averages, at_later)),
                )
                if k != m:
                    new = path_tensors(two, one, (later, ntk), ntk, turned, (at_later, averages))
                    _add(found[above], share, new)
            if k != m:
                own = memory((later, at_later), self.influences[m][k], (ntk, averages), turned)
                shifts[m] += share * np.stack(own)
        self._means(found, shifts)
        for m, stage in enumerate(self.found):
            for k, influence in self.influences[m].items():
                if self.neurons[k] == self.neurons[m]:
                    _add(found[m], 1.0 / stage.dense.width, of_own_neurons(influence, *self.moments[k]))
            found[m] = {name: stage.fan_in * tensor for name, tensor in found[m].items()}
        return found

    def _means(self, found: list[Tensors], shifts: np.ndarray) -> None:
        """Put the corrections of the mean kernels in, stage by stage."""
        for m, stage in enumerate(self.found[1:]):
            c, (_, ntk, averages) = stage.weight_var, self.moments[m]
            step = Step(found[m], ntk, c, 1.0, averages)
            g = step.g() + c * shifts[m][0]
            h = step.h(g) + c * shifts[m][1]
            if stage.skip is not None:
                g, h = g + found[stage.skip]["G"], h + found[stage.skip]["H"]
            found[m + 1] |= {"G": g, "H": h}

    def _pairs(self) -> Iterator[tuple[int, int, np.ndarray]]:
        """Stages k <= m with the same neurons, and averages over both."""
        for first in sorted(set(self.neurons)):
            same = self._of(first)
            if not same:
                continue
            largest = max(float(np.diagonal(self.moments[k].kernel).max()) for k in same)
            smooth = Smooth(self.found[first + 1].activation, largest)
            pairs = list(itertools.combinations_with_replacement(same, 2))
            if self.n > 3:
                self._announce(smooth, same[0], same[-1], len(pairs))
            for k, m in pairs:
                yield k, m, self._tables(smooth, k, m)

    def _announce(self, smooth: Smooth, k: int, m: int, pairs: int) -> None:
        """Says what so many pairs of layers, such as k and m, will take, if that is long."""
        make = lambda part: [smooth.table(self._both(k, m), four) for four in part]
        announce_price(make, self._sets(k, m), 16, pairs, self.n, cores(), "pairs of layers")

    def _both(self, k: int, m: int) -> np.ndarray:
        """The covariance of z^k and z^m of one neuron, k <= m."""
        early = self.moments[k].kernel
        return np.block([[early, early], [early, self.moments[m].kernel]])

    def _sets(self, k: int, m: int) -> list[tuple[int, ...]]:
        """Two inputs at z^k and two at z^m, of which no two sets are the same up to their order."""
        pairs = list(itertools.combinations_with_replacement(range(self.n), 2))
        sets = [(*one, *(p + self.n for p in two)) for one in pairs for two in pairs]
        chosen = list(multisets(self.n)) if k == m else sets
        return [
            each for each in chosen if self.wanted is None or self.wanted(tuple(p % self.n for p in each))
        ]

    def _tables(self, smooth: Smooth, k: int, m: int) -> np.ndarray:
        """<s^(i)_a s^(j)_b s^(p)_c s^(q)_d>, [i, j, p, q, a, b, c, d]; a, b at z^k and c, d at z^m."""
        n, kernel, sets = self.n, self._both(k, m), self._sets(k, m)
        tables = np.zeros((n,) * 4 + (4,) * 4)
        turns = [turn for turn in itertools.permutations(range(4)) if k == m or max(turn[:2]) == 1]
        for four, table in zip(sets, in_order(lambda four: smooth.table(kernel, four), sets), strict=True):
            for turn in turns:
                tables[tuple(four[t] % n for t in turn)] = table.transpose(turn)
        return np.moveaxis(tables, (0, 1, 2, 3), (4, 5, 6, 7))


def _add(total: Tensors, share: float, new: Tensors) -> None:
    for name, tensor in new.items():
        total[name] = total[name] + share * tensor
