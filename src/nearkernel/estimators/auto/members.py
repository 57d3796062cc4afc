"""The kernels that an average is made of: each a function of one view of the inputs."""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.spatial.distance import cdist, pdist, squareform

from ..tables.views import Views
from .metric import DEPTH
from .relu_kernels import relu_kernels

_PAIRS = 400  # rows between which the median distance is taken


@dataclasses.dataclass(frozen=True)
class Member:
    """A kernel: "ntk" or "nngp" of `size` hidden layers, or "laplace", exp(-|x - z|_1 / length), on a view.

    `view` is "plain" or "normal". A Laplace kernel has a length of `size` median distances.
    """

    kind: str
    size: float
    view: str = "plain"

    @property
    def name(self) -> str:
        what = f"{self.size:g} medians" if self.kind == "laplace" else f"depth {self.size:g}"
        where = ", columns made normal" if self.view == "normal" else ""
        kinds = {
            "ntk": "NTK",
            "nngp": "NNGP",
            "laplace": "product Laplace",
            "metric": "NTK in a learned metric",
        }
        return f"{kinds[self.kind]}, {what}{where}"


ALL = (
    Member("ntk", 3),
    Member("ntk", 3, "normal"),
    Member("laplace", 1.5),
    Member("laplace", 1.5, "normal"),
    Member("ntk", 1),
    Member("ntk", 1, "normal"),
    Member("nngp", 1),
    Member("nngp", 3),
    Member("laplace", 0.5),
    Member("laplace", 5.0),
)
METRIC = Member("metric", DEPTH)


class Kernel:
    """A member with what it learned of the training rows: the view, the length or the weights of columns."""

    def __init__(self, member: Member, views: Views, length: float = 1.0, weights: np.ndarray | None = None):
        self.member = member
        self.views = views
        self.length = length
        self.weights = weights

    def rows(self, x: np.ndarray) -> np.ndarray:
        """Inputs (m, d) in the view of this kernel."""
        seen = self.views.normal(x) if self.member.view == "normal" else self.views.plain(x)
        return seen if self.weights is None else seen * self.weights

    @property
    def shares(self) -> tuple[bool, str, bool]:
        """Equal for kernels of the same products, or the same distances, of rows."""
        return self.member.kind == "laplace", self.member.view, self.weights is not None


def fitted_kernels(
    members: Sequence[Member], views: Views, x: np.ndarray, weights: np.ndarray | None
) -> list[Kernel]:
    """The kernels of training rows x (n, d); `weights` of columns are for those in a learned metric."""
    medians = {}
    for view in {member.view for member in members if member.kind == "laplace"}:
        seen = Kernel(Member("laplace", 1.0, view), views).rows(x[:_PAIRS])
        apart = pdist(seen, "cityblock")
        apart = apart[apart > 0]
        medians[view] = float(np.median(apart)) if len(apart) else 0.0
    parts = []
    for member in members:
        length = member.size * medians[member.view] if member.kind == "laplace" else 1.0
        parts.append(Kernel(member, views, length or 1.0, weights if member is METRIC else None))
    return parts


def matrices(
    kernels: Sequence[Kernel], x: np.ndarray, z: np.ndarray | None = None
) -> Iterator[tuple[int, np.ndarray]]:
    """The place of each kernel and its matrix (m, n) of rows x with rows z, or with themselves.

    What several kernels are functions of is computed once. The matrices may be overwritten.
    """
    groups: dict[tuple[bool, str, bool], list[int]] = {}
    for place, kernel in enumerate(kernels):
        groups.setdefault(kernel.shares, []).append(place)
    for (laplace, _, _), places in groups.items():
        first = kernels[places[0]]
        seen, others = first.rows(x), None if z is None else first.rows(z)
        if not laplace:
            wanted = [(int(kernels[i].member.size), kernels[i].member.kind != "nngp") for i in places]
            yield from zip(places, relu_kernels(seen, others, wanted), strict=True)
            continue
        apart = squareform(pdist(seen, "cityblock")) if others is None else cdist(seen, others, "cityblock")
        for i in places:
            exponent = np.divide(apart, -kernels[i].length, out=apart if i == places[-1] else None)
            yield i, np.exp(exponent, out=exponent)
