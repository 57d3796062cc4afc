r"""The verb `forecast`: the law of trained outputs over all initializations, at infinite width.

With K the covariance at the start, T the kernel of training and R_t = T_BA g_t(T_AA),

    mean = R y,    cov = K_BB - R K_AB - K_BA R^T + R K_AA R^T     at any time t.
"""

import math
from typing import Any

import numpy as np

from .._check import inputs, one_of, positive, targets, whole
from .._precision import in_float64
from ..dynamics import GradientDescent, GradientFlow, SpectralAlgorithm
from ..dynamics._factor import Spectrum, cholesky, spectrum
from ..dynamics._solution import status_of
from ..kernels import NNGP, nngp_and_ntk
from ..models import MLP
from ._gaussian import GaussianOutputs


class Forecast(GaussianOutputs):
    """Trained outputs of infinitely wide networks: Gaussian, with this mean and covariance over initializations.

    **Fields:** `mean`, `cov`, `std`; `terms`, (mean,) at order 0; `status` and `ok` as of a `Solution`; `algorithm`.
    """

    def __init__(self, parts: "_Parts", algorithm: SpectralAlgorithm):
        mean, cov, self.status = parts.at(algorithm)
        super().__init__(mean, cov)
        self.algorithm, self._parts = algorithm, parts

    @property
    def terms(self) -> tuple[np.ndarray, ...]:
        return (self.mean,)

    @property
    def ok(self) -> bool:
        return not self.status.startswith("diverges")

    @in_float64
    def at(self, time: float) -> "Forecast":
        """The same networks at another time (steps for gradient descent); the factorization is kept."""
        if not isinstance(self.algorithm, GradientDescent | GradientFlow):
            raise ValueError(f"`time` has no meaning for {type(self.algorithm).__name__}.")
        return Forecast(self._parts, self.algorithm.at(positive(time, "time", zero=True, finite=False)))


class _Parts:
    """Kernel matrices between training and new points, and the rotated ones once they are needed."""

    def __init__(self, start_aa, start_ba, start_bb, train_aa, train_ba, y: np.ndarray, vector: bool):
        self.start_aa, self.start_ba, self.start_bb = start_aa, start_ba, start_bb
        self.train_aa, self.train_ba, self.y, self.vector = train_aa, train_ba, y, vector
        self._rotated: tuple | None = None

    def at(self, algorithm: SpectralAlgorithm) -> tuple[np.ndarray, np.ndarray, str]:
        shift = algorithm.shift()
        if shift is not None and self._rotated is None:
            factor = cholesky(self.train_aa.copy(), shift, need_max=math.isfinite(algorithm.limit()))
            if factor is not None:
                response = factor.apply(algorithm, self.train_ba.T).T
                cross = response @ self.start_ba.T
                spread = (response @ self.start_aa) @ response.T
                return self._result(algorithm, factor, response @ self.y, cross, spread)
        factor, train, start, spread_aa, y = self._eigenbasis()
        with np.errstate(over="ignore"):
            response = train * algorithm.filter(factor.lam)
        spread = (
            (response * spread_aa) @ response.T
            if spread_aa.ndim == 1
            else (response @ spread_aa) @ response.T
        )
        return self._result(algorithm, factor, response @ y, response @ start.T, spread)

    def _result(self, algorithm, factor, mean, cross, spread):
        status = status_of(algorithm, factor)
        cov = self.start_bb - cross
        cov -= cross.T
        cov += spread
        if status.startswith("diverges") and math.isinf(getattr(algorithm, "steps", 0)):
            mean, cov = np.full_like(mean, np.inf), np.full_like(cov, np.inf)
        return (mean[:, 0] if self.vector else mean), 0.5 * (cov + cov.T), status

    def _eigenbasis(self) -> tuple:
        """Everything in the eigenvectors of the training kernel, so that a time costs one product."""
        if self._rotated is None:
            factor: Spectrum = spectrum(self.train_aa.copy())
            v = factor.vectors
            same = self.start_aa is self.train_aa
            spread = factor.lam if same else v.T @ (self.start_aa @ v)
            self._rotated = (factor, self.train_ba @ v, self.start_ba @ v, spread, v.T @ self.y)
        return self._rotated


@in_float64
def forecast(
    net: MLP,
    x: Any,
    y: Any,
    algorithm: SpectralAlgorithm | None = None,
    x_new: Any = None,
    order: int = 0,
    *,
    trained: str = "all",
) -> Forecast:
    """Mean and covariance, over initializations of `net`, of its outputs at `x_new` after training on (`x`, `y`).

    **Arguments:** `net`, of which only activation, depth and variances matter at infinite width; `x` (n, d); `y` (n,)
    or (n, out); `algorithm`, `nk.GradientFlow()` by default; `x_new` (m, d); `order`, 0: infinite width; `trained`:
    "all" layers, or the "last" alone, whose end is the NNGP posterior.

    **Returns:** a `Forecast`; `forecast.at(time)` moves in time, `forecast.sample(size, key)` draws trained outputs.
    """
    algorithm = GradientFlow() if algorithm is None else algorithm
    if not isinstance(algorithm, SpectralAlgorithm):
        raise TypeError(
            f"`algorithm` must be one that can be solved, e.g. nk.GradientFlow(); got {type(algorithm).__name__}."
        )
    if not isinstance(net, MLP):
        raise TypeError(f"`net` must be an nk.MLP; got {type(net).__name__}.")
    if net.parametrization == "mean_field":
        raise ValueError(
            '`net` has parametrization="mean_field": its kernel moves even at infinite width; use "ntk".'
        )
    if whole(order, "order", 0) > 0:
        raise ValueError(f"`order` must be 0 (infinite width); got {order}.")
    if x_new is None:
        raise ValueError("`x_new` is missing: the points at which to forecast.")
    one_of(trained, "trained", ("all", "last"))
    x = inputs(x, "x", net.in_dim)
    x_new = inputs(x_new, "x_new", net.in_dim)
    columns = targets(y, len(x))
    nngp = NNGP(net)
    if trained == "last":
        start_aa, start_ba = nngp(x), nngp(x_new, x)
        train_aa, train_ba = start_aa, start_ba
    else:
        start_aa, train_aa = nngp_and_ntk(net, x)
        start_ba, train_ba = nngp_and_ntk(net, x_new, x)
    parts = _Parts(start_aa, start_ba, nngp(x_new), train_aa, train_ba, columns, np.ndim(y) == 1)
    return Forecast(parts, algorithm)
