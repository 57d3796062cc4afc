"""Signals through deep networks, layer by layer: at infinite width, and in networks drawn at random."""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import nearkernel as nk

from ....activations.formula import is_formula
from ....statistics.depth.activation_class import scan

WEIGHT_VARS, BIAS_VARS = np.linspace(0.1, 5, 36), np.linspace(0, 1, 21)
SQUARES = np.array([0.25, 1.0, 4.0])  # mean squares of inputs
ALIKE = np.array([0.0, 0.9])  # correlations of further inputs with the second
NETWORKS, BATCH = 100, 10
LEAST, MOST = 1e-12, 1e3  # kernels that count as neither dead nor exploded


class Known(NamedTuple):
    """All that depends on the activation alone; `most`, the largest kernel its averages are known for; `at`, its
    critical point; `heat`, the logarithm of chi."""

    function: Any
    most: float
    at: nk.results.CriticalResult
    heat: np.ndarray
    line: np.ndarray


@functools.lru_cache(maxsize=32)
def known_of(text: str) -> Known:
    function = _closed(text.strip())
    try:
        at, diagram = nk.critical(function), nk.statistics.phase_diagram(function, WEIGHT_VARS, BIAS_VARS)
    except ArithmeticError:  # a peak so narrow that no average sees it
        raise ValueError(f"activation {text}: has no averages that could be computed.") from None
    heat = np.log(np.clip(diagram.chi_perp.T, np.exp(-1), np.exp(1)))
    with jax.enable_x64(True):
        most = min(MOST, float(scan(function).k[-1]))
    return Known(function, most, at, heat, diagram.critical_line)


def _closed(text: str) -> Any:
    """Two straight lines that meet at 0 have averages in closed form, far faster than quadrature."""
    given = nk.activations.get(text)
    if not is_formula(text):
        return given
    z = np.geomspace(1e-6, 1e6, 100)
    with jax.enable_x64(True), np.errstate(all="ignore"):
        right, left = (np.asarray(given(jnp.asarray(side))) / side for side in (z, -z))
    if all(np.allclose(slope, slope[0], rtol=1e-13, atol=0) for slope in (right, left)):
        return nk.results.PiecewiseLinear(float(right[0]), float(left[0]))
    return given


def flow(
    function: Any, most: float, weight_var: float, bias_var: float, depth: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Kernels (depth, 3), correlations (depth, 2) and growth (depth,), nan where signals have died or exploded."""
    kernel, growth = bias_var + weight_var * SQUARES, 1.0
    alike = (bias_var + weight_var * ALIKE) / kernel[1]
    kernel = np.minimum(kernel, most)
    rows = [(kernel, alike, growth)]
    for _ in range(depth - 1):
        at = nk.theory.moments(function, kernel)
        growth = growth * weight_var * float(at.slope[1])
        new = bias_var + weight_var * at.value
        if kernel[1] < most:  # else nobody sees it
            pair, _ = nk.theory.dual(function, kernel[1], kernel[1], alike)
            alike = np.clip((bias_var + weight_var * pair) / max(new[1], 1e-300), -1, 1)
        kernel = np.clip(new, LEAST, most)
        rows.append((kernel, alike, growth))
    kernels, correlations, growths = (np.array(column) for column in zip(*rows, strict=True))
    alive = (kernels > LEAST) & (kernels < most)
    return (
        np.where(alive, kernels, np.nan),
        np.where(alive[:, 1:2], correlations, np.nan),
        np.where(kernels[:, 1] < most, growths, np.nan),
    )


def drawn_layers(
    function: Any, weight_var: float, bias_var: float, depth: int, width: int
) -> Iterator[tuple[float, np.ndarray]]:
    """Share of the work, and of all networks so far (networks, depth, 6): three kernels, two correlations, how much a
    small change grew."""
    rng, done = np.random.default_rng(0), np.empty((0, depth, 6))
    forward = jax.jit(lambda z, dz: jax.jvp(function, (z,), (dz,)))
    root, shift = weight_var**0.5, bias_var**0.5
    for first in range(0, NETWORKS, BATCH):
        z = root * inputs() @ rng.normal(size=(BATCH, 2, width)) / 2**0.5
        z = z + shift * rng.normal(size=(BATCH, 1, width))
        dz = start = rng.normal(size=z.shape)
        rows = [seen(z, dz, start)]
        for layer in range(1, depth):
            with jax.enable_x64(True):
                s, ds = (np.asarray(a) for a in forward(z, dz))
            weight = root * rng.normal(size=(BATCH, width, width)) / width**0.5
            with np.errstate(all="ignore"):
                z, dz = s @ weight + shift * rng.normal(size=(BATCH, 1, width)), ds @ weight
                rows.append(seen(z, dz, start))
            if layer % 5 == 0:
                yield (first + BATCH * layer / depth) / NETWORKS, done
        done = np.concatenate([done, np.stack(rows, axis=1)])
        yield len(done) / NETWORKS, done


def inputs() -> np.ndarray:
    """Three along a line, and two at an angle to the second: (5, 2)."""
    angles = np.arccos(np.append([1, 1, 1], ALIKE))
    return np.sqrt(2 * np.append(SQUARES, [1, 1]))[:, None] * np.column_stack(
        [np.cos(angles), np.sin(angles)]
    )


def seen(z: np.ndarray, dz: np.ndarray, start: np.ndarray) -> np.ndarray:
    """What is measured of a layer: (networks, 6)."""
    square = (z**2).mean(axis=2)
    pair, norm = (z[:, 1:2] * z[:, 3:]).mean(axis=2), np.sqrt(square[:, 1:2] * square[:, 3:])
    alike = np.divide(pair, norm, out=np.ones_like(pair), where=norm > 0)  # of a dead network, all is alike
    growth = (dz[:, 1] ** 2).sum(axis=1) / (start[:, 1] ** 2).sum(axis=1)
    return np.column_stack([square[:, :3], alike, growth])
