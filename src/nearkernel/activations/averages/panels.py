"""Where a function is smooth: panels on which a polynomial of degree 15 reproduces it, split at its kinks.

Gaussian averages of any callable rest on this: on each panel Gauss-Legendre quadrature is then exact to
rounding, however narrow the function's features and however wide the Gaussian.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
_PROBES = np.array([-1.0, -0.91, -0.7, -0.35, -0.04, 0.3, 0.61, 0.88, 1.0])  # the ends see a kink just inside
_MOST_PANELS = 3000
_STRICT, _LENIENT = (5e-14, 2e-11), (1e-11, 4e-9)  # (error of a resolved panel, width of a kink)


class Panels(NamedTuple):
    """`edges`, ascending; `kinks`, those edges at which the function or its slope jumps."""

    edges: np.ndarray
    kinks: np.ndarray

    @property
    def narrowest(self) -> float:
        """Width of the narrowest panel: 0 if there are kinks, since no panel may straddle one."""
        return 0.0 if len(self.kinks) else float(np.diff(self.edges).min())

    def features(self) -> np.ndarray:
        """Kinks, and roughly (to 4 units) where the function is not just a smooth tail."""
        narrow = np.diff(self.edges) < 8.0
        near = self.edges[np.concatenate([narrow, [False]]) | np.concatenate([[False], narrow])]
        return np.unique(np.concatenate([self.kinks, 4.0 * np.round(near / 4.0)]))


def _interpolation_matrix() -> np.ndarray:
    barycentric = 1.0 / np.prod(NODES[:, None] - NODES[None, :] + np.eye(len(NODES)), axis=1)
    terms = barycentric / (_PROBES[:, None] - NODES)
    return terms / terms.sum(axis=1, keepdims=True)


_TO_PROBES = _interpolation_matrix()


def resolved(
    function: Callable[[np.ndarray], np.ndarray], a: np.ndarray, b: np.ndarray, floor: float, tol: float
):
    """Whether degree 15 reproduces `function` on each panel [a, b] to `tol` of its size there."""
    middle, half = 0.5 * (a + b)[:, None], 0.5 * (b - a)[:, None]
    points = np.concatenate([middle + half * NODES, middle + half * _PROBES], axis=1)
    values = function(points)
    known, probes = values[:, : len(NODES)], values[:, len(NODES) :]
    error = np.abs(known @ _TO_PROBES.T - probes).max(axis=1)
    return error <= tol * np.maximum(np.abs(known).max(axis=1), floor)


def find_panels(function: Callable[[np.ndarray], np.ndarray], reach: float, name: str) -> Panels:
    """Panels of `function` over [-reach, reach]: split until resolved, then merge what was split in vain."""
    with np.errstate(all="ignore"):
        probe = function(np.linspace(-1.0, 1.0, 101)[None])
    if not np.isfinite(probe).all():
        raise ValueError(f"`{name}` must be finite between -1 and 1; it is not.")
    floor = 1e-2 * float(np.abs(probe).max()) + 1e-300
    for tol, kink_width in (_STRICT, _LENIENT):  # lenient: a function with rounding noise of its own
        pieces = _split(function, reach, floor, tol, kink_width)
        if pieces is not None:
            panels, kinks = pieces
            return _merged(function, panels, kinks, floor, tol)
    raise ValueError(
        f"`{name}` changes too fast to be averaged over Gaussians: more than {_MOST_PANELS} pieces between "
        f"-{reach:g} and {reach:g}. Rescale it or reduce the variances."
    )


def _split(function, reach: float, floor: float, tol: float, kink_width: float):
    """Resolved panels and kinks, or None if there would be too many."""
    seeds = _seeds(reach)
    a, b = seeds[:-1], seeds[1:]
    done: list[tuple[float, float]] = []
    kinks: list[float] = []
    while len(a):
        good = resolved(function, a, b, floor, tol)
        done += zip(a[good], b[good], strict=True)
        a, b = a[~good], b[~good]
        kink = (b - a) < kink_width * np.maximum(1.0, np.abs(a))
        for at in 0.5 * (a + b)[kink]:  # both halves of a split may hold the same kink at their common end
            if all(abs(at - k) > 4 * kink_width * max(1.0, abs(at)) for k in kinks):
                kinks.append(float(at))
        a, b = a[~kink], b[~kink]
        middle = 0.5 * (a + b)
        a, b = np.concatenate([a, middle]), np.concatenate([middle, b])
        if len(done) + len(a) > _MOST_PANELS:
            return None
    return sorted(done), np.sort(np.array(kinks))


def _seeds(reach: float) -> np.ndarray:
    """First edges: geometric, since features live near the origin, and crooked, since kinks sit at round numbers."""
    outward = reach / 2.0 ** np.arange(int(np.log2(reach)) + 5)[::-1]
    outward[:-1] *= 0.9876543
    return np.concatenate([-outward[::-1], 1.0234567 * outward[:-1], outward[-1:]])


def _merged(function, panels: list, kinks: np.ndarray, floor: float, tol: float) -> Panels:
    """Join neighbors as long as their union is still resolved and holds no kink.

    A narrow panel is not joined to a wide one: the probes of the union would not see the narrow part.
    """
    edges = [panels[0][0]]
    right = panels[0][1]
    for a, b in panels[1:]:
        split = kinks[(kinks > edges[-1]) & (kinks < b)]
        left, new = right - edges[-1], b - a
        alike = not len(split) and 0.3 < left / new < 4.0
        joined = alike and resolved(function, np.array([edges[-1]]), np.array([b]), floor, tol)[0]
        if not joined:
            edges.append(float(split[0]) if len(split) else 0.5 * (right + a))
        right = b
    return Panels(np.array([*edges, right]), kinks)


@functools.lru_cache(maxsize=64)
def cached_panels(function: Callable[[np.ndarray], np.ndarray], reach: float, name: str) -> Panels:
    return find_panels(function, reach, name)
