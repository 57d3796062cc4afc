"""Averages over sampled neurons of a layer: Sobol points, jobs, moments with standard errors."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
import scipy  # whose part `stats` takes half a second to import, and comes when it is used
import scipy.special

from .._base.check import one_of, positive, whole
from .._base.warning import warn
from .._run.executor import AbstractJob, PerDevice
from .outputs.corrected import known_to

_RANK = 1e-11  # of the largest eigenvalue of a covariance: what is below is rounding


class SamplesNeurons(Protocol):
    """Settings of averages over sampled neurons: the fields of a theory that takes such averages."""

    tolerance: float
    most: int
    scrambles: int
    seed: int
    dtype: str


def check_settings(settings: SamplesNeurons) -> None:
    """Refuse settings of averages over sampled neurons that cannot be used."""
    positive(settings.tolerance, "tolerance")
    whole(settings.most, "most", 1)
    whole(settings.scrambles, "scrambles", 2)
    whole(settings.seed, "seed", 0)
    one_of(settings.dtype, "dtype", ("float32", "float64"))


class Moments(NamedTuple):
    """Means (k,), covariances, third cumulants of b, c, c and fourth ones of b, b, c, c (k, k); k = (point, output)."""

    mean: np.ndarray
    cov: np.ndarray
    third: np.ndarray
    fourth: np.ndarray


class Sampled(NamedTuple):
    """What neurons add at order 1/n, times n; its standard errors; how many neurons per layer were drawn; where nothing
    else adds to the correction, its `relative_error`."""

    value: Moments
    error: Moments
    neurons: int
    accuracy: float = 0.0


def relative_error(value: Any, error: Any, var: np.ndarray, free: np.ndarray) -> float:
    """The largest standard error of a mean or a deviation over the largest correction to one of them.

    `value`, a correction with its `mean` (k,) and `cov` (k, k), and its `error`; in deviations of `var` (k,) where the
    outputs are `free`: training fixes the others.
    """
    std = np.sqrt(np.where(free, var, 1.0))

    def largest(part: Any) -> float:
        shifts = np.abs(part.mean) / std, np.abs(np.diagonal(part.cov)) / (2 * std**2)
        return float(np.where(free, shifts, 0.0).max())

    missed, size = largest(error), largest(value)
    return missed / size if size > 0 else math.inf if missed > 0 else 0.0


def say_missed(options: "SamplesNeurons", accuracy: float, neurons: int) -> None:
    """Warns if `neurons` were not enough: `accuracy`, a `relative_error`."""
    if neurons and accuracy > options.tolerance:
        enough = neurons * (accuracy / options.tolerance) ** 2
        warn(
            f"with {neurons:,} neurons per layer, the correction is {known_to(accuracy)}, above `tolerance` = "
            f"{options.tolerance:g}: about {enough:.1e} neurons would be enough; pass "
            f"`theory=nk.{type(options).__name__}(...)` with a larger `most` or `tolerance` to nk.forecast."
        )


class NeuronJob(AbstractJob[np.ndarray]):
    """Blocks of neurons, from points of the unit cube: program(*choices, *constants, *normals)."""

    def __init__(self, program: Callable, choices: tuple, constants: tuple, draw: "Draw", dtype: str):
        self.program, self.choices, self.constants = program, choices, constants
        self.draw, self.dtype = draw, dtype

    def ready(self) -> Callable[[np.ndarray], list[np.ndarray]]:
        compiled = jax.jit(self.program, static_argnums=tuple(range(len(self.choices))))
        placed = PerDevice(self.constants)

        def one(uniform: np.ndarray) -> list[np.ndarray]:
            normals = [cast(self.dtype, part) for part in self.draw.parts(uniform)]
            found = compiled(*self.choices, *placed.here(), *normals)
            return [np.asarray(part, np.float64) for part in found]

        return one


class Draw:
    """Which coordinates of a Sobol point go where: the more a direction matters, the sooner it comes."""

    def __init__(self, sizes: list[int], strengths: list[np.ndarray], outputs: int):
        self.sizes, self.outputs = sizes, outputs
        shares = [np.sort(s)[::-1] / np.sum(s) for s in strengths]
        shares[1:] = [np.tile(s, outputs) for s in shares[1:]]
        self.order = np.argsort(-np.concatenate(shares), kind="stable")

    def parts(self, uniform: np.ndarray) -> list[np.ndarray]:
        normal = np.empty_like(uniform)
        normal[:, self.order] = scipy.special.ndtri(0.5 + (1.0 - 1e-10) * (uniform - 0.5))
        u, xi, z = np.split(normal, np.cumsum(self.sizes)[:-1], axis=1)
        return [u, xi.reshape(len(u), self.outputs, -1), z.reshape(len(u), self.outputs, -1)]


def root(covariance: np.ndarray) -> np.ndarray:
    """[direction, point], the largest first: normals times this have the covariance."""
    lam, vectors = np.linalg.eigh(covariance)
    kept = lam > _RANK * max(lam[-1], 1e-300)
    return (vectors[:, kept] * np.sqrt(lam[kept])).T[::-1]


def whitened(covariance: np.ndarray, fields: np.ndarray) -> np.ndarray:
    """Covariances [direction, point] of `fields` with the normals of `root`, from those with what they make."""
    lam, vectors = np.linalg.eigh(covariance)
    kept = lam > _RANK * max(lam[-1], 1e-300)
    return ((vectors[:, kept] / np.sqrt(lam[kept])).T @ fields)[::-1]


def cast(dtype: str, array: np.ndarray) -> Any:
    return np.ascontiguousarray(array, dtype)
