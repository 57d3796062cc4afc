r"""Spectra of kernel matrices of random inputs, and of their random-feature estimates.

Kernel matrices: inputs of length $\sqrt d$ in random directions have cosines of size $1/\sqrt d$, where a kernel $f$ of
the cosine is almost linear. For $n \sim d$ points its matrix has, except for one outlier of order $n f(0)$, the
eigenvalues of

$$f'(0)\, \frac{X X^\top}{d} + (f(1) - f(0) - f'(0))\, I.$$

Random features: $\frac1M F F^\top$ with $M$ features whose covariance has the eigenvalues $\tau_1, \ldots, \tau_N$,
ratio $g = N/M$. Its eigenvalues spread by the Marchenko-Pastur law in its general form; $v = v(x + i0)$ with

$$x = -\frac1v + \frac{g}{N} \sum_i \frac{\tau_i}{1 + \tau_i v}, \qquad
\text{density} = \frac{\operatorname{Im} v}{\pi g}.$$
"""

from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np

from ..._base.check import numeric, positive, whole
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.memory import require_fits
from ...kernels.base import AbstractKernel
from ...kernels.function_space.positivity import cross
from ..special.marchenko_pastur import MarchenkoPasturResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def kernel_bulk(kernel: AbstractKernel, points: int, dim: int) -> MarchenkoPasturResult:
    r"""The limiting distribution of the eigenvalues of `kernel(x)`, except the largest, for random inputs of length
    $\sqrt d$.

    **Arguments:** `kernel`, which depends only on lengths and angles (NTK, NNGP, RBF, ...); `points` n and `dim` d of
    the inputs, both large.
    """
    points, dim = whole(points, "points", 1), whole(dim, "dim", 2)
    require_fits(4 * 8 * 6 * dim, f"inputs of `dim` = {dim} features", "use fewer")
    step = 1e-3
    cosines = np.array([1.0, 0.0, step, -step, 2 * step, -2 * step])
    x = np.zeros((6, dim))
    x[:, 0], x[:, 1] = cosines, np.sqrt(1 - cosines**2)
    x *= np.sqrt(dim)
    f_one, f_zero, right, left, right2, left2 = cross(kernel, x[:1], x)[0]
    slope = (8 * (right - left) - (right2 - left2)) / (12 * step)
    if not slope > 1e-9 * abs(f_one):
        raise ValueError(
            "`kernel` has no linear part at orthogonal inputs, so its bulk does not follow this law."
        )
    return MarchenkoPasturResult(points / dim, float(slope), float(f_one - f_zero - slope))


class SampledSpectrumResult(Result, eqx.Module):
    r"""The distribution of eigenvalues of $\frac1M F F^\top$, given the eigenvalues of its mean.

    **Fields:** `population` $\tau$ (N,), eigenvalues of the mean; `ratio` $g = N/M$.
    """

    population: np.ndarray
    ratio: float

    @property
    def moments(self) -> tuple[float, float]:
        r"""The means of the eigenvalues and of their squares.

        They are $\langle\tau\rangle$ and $\langle\tau^2\rangle + g\, \langle\tau\rangle^2$.
        """
        mean = float(self.population.mean())
        return mean, float(np.mean(self.population**2)) + self.ratio * mean**2

    def density(self, x: ArrayLike, blur: float = 1e-4) -> np.ndarray:
        """The density at `x` > 0, smoothed by a Lorentzian of width `blur` times x."""
        x = np.atleast_1d(numeric(x, "x"))
        if np.any(x <= 0):
            raise ValueError("`x` must be greater than 0.")
        return self._companion(x, float(positive(blur, "blur"))).imag / (np.pi * self.ratio)

    def _companion(self, x: np.ndarray, blur: float) -> np.ndarray:
        """v at x (1 + i blur): Newton's method from far above the axis, where v = -1/z, down to it."""
        tau = self.population
        height, v = 64.0, -1 / (x * (1 + 64j))
        while True:
            z = x * (1 + 1j * height)
            for _ in range(6):
                inside = 1 / (1 + np.multiply.outer(v, tau))
                short = -1 / v + self.ratio * np.mean(tau * inside, axis=1) - z
                slope = 1 / v**2 - self.ratio * np.mean((tau * inside) ** 2, axis=1)
                move = -short / slope
                # Stay in the upper half plane, where the solution is unique.
                share = np.where(v.imag + move.imag > 0.1 * v.imag, 1.0, 0.5)
                v = v + share * np.where(v.imag + share * move.imag > 0, move, -0.5j * v.imag)
            if height <= blur:
                return v
            height = max(height * 0.6, blur)

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the density against the eigenvalue, both logarithmic, on Matplotlib's `axes`."""
        from ..._plots.lines import draw_lines

        low, high = self.population[self.population > 0].min(), self.population.max()
        grid = np.geomspace(low / 10, high * (1 + np.sqrt(self.ratio)) ** 2 * 1.2, 400)
        return draw_lines(grid, self.density(grid), axes, xlabel="eigenvalue", ylabel="density", log="xy")


def sampled_spectrum(population: Any, ratio: float) -> SampledSpectrumResult:
    r"""The distribution of eigenvalues of a kernel matrix estimated from M random features.

    **Arguments:** `population` (N,), eigenvalues of the kernel matrix of N points at $M = \infty$, e.g. of an NNGP;
    `ratio` $N/M$.
    """
    tau = numeric(population, "population")
    if tau.ndim != 1 or not tau.size or tau.max() <= 0 or tau.min() < -1e-9 * tau.max():
        raise ValueError("`population` must be a vector of eigenvalues, all at least 0 and not all 0.")
    return SampledSpectrumResult(np.maximum(tau, 0.0), float(positive(ratio, "ratio")))
