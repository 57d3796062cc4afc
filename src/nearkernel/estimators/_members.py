"""The kernels that an average is made of: each a function of one view of the inputs."""

import dataclasses

import numpy as np
from scipy.spatial.distance import cdist

from ._metric import DEPTH
from ._relu import relu_diagonal, relu_kernel
from ._views import Views

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


FEW = (
    Member("ntk", 3),
    Member("ntk", 3, "normal"),
    Member("laplace", 1.5),
    Member("laplace", 1.5, "normal"),
)
ALL = (
    *FEW,
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

    def __init__(self, member: Member, views: Views, x: np.ndarray, weights: np.ndarray | None = None):
        self.member, self.views, self.weights = member, views, weights
        self.length = 1.0
        if member.kind == "laplace":
            seen = self.rows(x[:_PAIRS])
            apart = cdist(seen, seen, "cityblock")[np.triu_indices(len(seen), 1)]
            apart = apart[apart > 0]
            self.length = member.size * float(np.median(apart)) if len(apart) else 1.0

    def rows(self, x: np.ndarray) -> np.ndarray:
        """Inputs (m, d) in the view of this kernel."""
        seen = self.views.normal(x) if self.member.view == "normal" else self.views.plain(x)
        return seen if self.weights is None else seen * self.weights

    def between(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """(m, n) between rows that are already in the view."""
        if self.member.kind == "laplace":
            found = cdist(x, z, "cityblock")
            found /= -self.length
            return np.exp(found, out=found)
        return relu_kernel(x, z, int(self.member.size), self.member.kind != "nngp")

    def matrix(self, x: np.ndarray) -> np.ndarray:
        """(n, n) of the rows of a view with themselves, its diagonal exact."""
        found = self.between(x, x)
        if self.member.kind != "laplace":
            np.fill_diagonal(found, relu_diagonal(x, int(self.member.size), self.member.kind != "nngp"))
        return found
