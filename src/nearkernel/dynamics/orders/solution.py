"""What `solve` returns beyond order 0: a trained model that learned features, as formulas."""

import copy
import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Self

import numpy as np

from ..._base.check import inputs, one_of, targets
from ..._base.types import ArrayLike
from ..._base.warning import warn
from ..._run.memory import rows_that_fit
from ..._run.precision import in_float64
from ...models.base import Params
from ...models.expansion.derivatives import AbstractDerivatives
from ..algorithms.regime import regime
from ..algorithms.spectral import DirectOptimization, GradientDescent, GradientFlow, Ridge, SpectralAlgorithm
from ..linear.base import FactoredSolution, Prediction, moved_to
from ..linear.factor import AbstractFactor
from ..linear.tangent import CurvedTangent
from .displacements import Moved, moved_weights
from .feature_learning import FeatureLearning, feature_learning
from .projectors import Projectors, projectors, require_fitted
from .unexpanded import at_scale, exact_params

_LARGE = 0.1  # of |z^I| / |z^F|: beyond, the next order is no longer small either


@dataclasses.dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NearlyKernelSolution(FactoredSolution):
    """A model solved to order 1 or 2 in the small parameter; it predicts at any inputs.

    **Fields:** `algorithm`; `order`; `eps`, the small parameter (1 for expanded models): term k is proportional to its
    k-th power; `status`, `ok`; `regime`, the result of `nk.regime`, or None; `rank` of the kernel matrix, `cutoff`,
    `lambda_max`; `sum_rank`, the number of terms of the rational sum that replaces the tensor X (0 if none was needed);
    `passes`, the number of derivative passes over the training data, by kind.
    """

    order: int
    eps: float
    sum_rank: int
    _tangent: CurvedTangent
    _derivatives: AbstractDerivatives
    _residual: np.ndarray
    _moved: list[np.ndarray]

    @property
    def passes(self) -> dict[str, int]:
        return dict(self._derivatives.passes)

    def _trained(self, time: float) -> tuple[SpectralAlgorithm, AbstractDerivatives, Moved]:
        """The same training at another time, by derivatives that count their own passes after those of the solution."""
        algorithm, derivatives = moved_to(self.algorithm, time), self._own_derivatives()
        return (
            algorithm,
            derivatives,
            _moved(derivatives, self._spectrum, self._residual, algorithm, self.order),
        )

    def _own_derivatives(self) -> AbstractDerivatives:
        own = copy.copy(self._derivatives)
        own.passes = self._derivatives.passes.copy()
        return own

    def _at(self, time: float | None) -> list[np.ndarray]:
        return self._moved if time is None else self._trained(time)[2].weights

    @in_float64
    def at(self, moment: float) -> Self:
        """The same training at another time `moment` (steps for gradient descent); kernels and factors are reused."""
        algorithm, derivatives, moved = self._trained(moment)
        return dataclasses.replace(
            self, algorithm=algorithm, sum_rank=moved.rank, _factor=self._spectrum, _derivatives=derivatives,
            _moved=moved.weights,
        )  # fmt: skip

    @in_float64
    def predict(self, x_new: ArrayLike, time: float | None = None) -> Prediction:
        """Outputs at `x_new` (m, d), order by order in `terms`, at the end of training or at another `time`.

        Warns when the first correction is more than a tenth of the linear prediction.
        """
        x_new = inputs(x_new, "x_new", self._x.shape[1:])
        terms = self._scaled(self._terms(x_new, self._at(time)))
        prediction = Prediction(tuple(map(self._shaped, terms)))
        correction = prediction.correction
        if correction is not None and correction > _LARGE:
            warn(
                f"|z^I|/|z^F| = {correction:.2g}: the correction is not small, so the next order may not be "
                f"small either; trust `simulate` more than order 1 here.{self._instead(correction)}"
            )
        return prediction

    def _instead(self, correction: float) -> str:
        """What to use in place of it, where that is known."""
        if self.regime is None or not self.ok:
            return ""
        network = self._tangent.network()
        assert network is not None
        return f" The network is {regime(network, self._y, correction)}."

    def _scaled(self, orders: list[np.ndarray]) -> list[np.ndarray]:
        """With their powers of eps; what diverges does so at every eps."""
        if not self.ok:
            return orders
        return [order * self.eps**k for k, order in enumerate(orders)]

    def _terms(self, x_new: np.ndarray, moved: list[np.ndarray]) -> list[np.ndarray]:
        """One array (m, out) an order, without powers of eps."""
        out = self._y.shape[1]
        terms = [self._tangent.start(x_new, out), *(np.zeros((len(x_new), out)) for _ in moved[1:])]
        if np.isinf(moved[0]).any():
            return [np.full_like(term, np.inf) for term in terms]
        chunk = rows_that_fit(3 * 8 * moved[0].shape[1])
        for at in range(0, len(x_new), chunk):
            rows = self._tangent.derivatives(x_new[at : at + chunk])
            for k, term in enumerate(terms):
                values = rows.push(moved[k])
                if k:
                    values += rows.curve(k, moved)
                term[at : at + chunk] += self._tangent.unflat(values.T, out)
        return terms

    @in_float64
    def residual(self, time: float | None = None) -> np.ndarray:
        """$z - y$ on the training set, to the order solved, in the shape of `y`, at the end or at `time`."""
        terms = self._scaled(self._terms(self._x, self._at(time)))
        return self._shaped(sum(terms[1:], terms[0]) - self._y)

    def _shown(self) -> Mapping[str, object]:
        return {**super()._shown(), "order": self.order, "eps": self.eps}

    @property
    @in_float64
    def weights(self) -> tuple[Params, ...]:
        """The change of the parameters, order by order: $W^F$, $W^I$, ..., each in the shape of the parameters."""
        return tuple(map(self._tangent.tree, self._scaled(self._moved)))

    @in_float64
    def params(self, time: float | None = None) -> Params:
        """The trained parameters, at the end or at `time`: the initial ones plus all orders."""
        moved = self._scaled(self._at(time))
        return self._tangent.trained_params(sum(moved[1:], moved[0]))

    @in_float64
    def effective_kernel(
        self, x1: ArrayLike, x2: ArrayLike | None = None, time: float | None = None
    ) -> np.ndarray:
        r"""The effective kernel $k^E$: the tangent kernel of the trained model to first order in $\epsilon$.

        Between `x1` and `x2` (`x1` itself if None), at the end of training or at `time`. (n1, n2) for one output,
        (n1, out, n2, out) for several.
        """
        return self._part_of_the_way(x1, x2, 1.0, time)

    @in_float64
    def trained_kernel(self, x1: ArrayLike, x2: ArrayLike | None = None) -> np.ndarray:
        """The trained kernel $(k + k^E) / 2$ of `x1` and `x2`: the mean of the kernels before and after training."""
        return self._part_of_the_way(x1, x2, 0.5, None)

    @in_float64
    def quadratic_form(self, x_new: ArrayLike) -> np.ndarray:
        r"""The quadratic form $\psi(x)[W^F, W^F]$ at `x_new` (m, d), in the shape of predictions.

        It can have any sign, because $\psi$ need not be positive. The weights of order 0 contribute $\epsilon/2$ times
        this form to the outputs.
        """
        return 2 * self._curve(inputs(x_new, "x_new", self._x.shape[1:]))

    @in_float64
    def deformed_labels(self) -> np.ndarray:
        r"""Labels for which a linear model gives the first-order solution, $y - \frac{\epsilon}{2} \psi(x)[W^F, W^F]$.

        They have the shape of `y`. A linear model with the same features, fitted to them, has the weights
        $W^F + \epsilon W^I$, except for the part of $W^I$ orthogonal to the features of the data.
        """
        require_fitted("a deformed label", self._factor, self._derivatives.outputs, self.algorithm)
        return self._shaped(self._y) - self.eps * self._curve(self._x)

    def _curve(self, x_new: np.ndarray) -> np.ndarray:
        """1/2 psi[W^F, W^F], without eps."""
        form = self._tangent.derivatives(x_new).curve(1, self._moved)
        return self._shaped(self._tangent.unflat(form.T, self._y.shape[1]))

    def _part_of_the_way(
        self, x1: ArrayLike, x2: ArrayLike | None, share: float, time: float | None
    ) -> np.ndarray:
        """The kernel at initialization plus a `share` of what training added to it."""
        x1 = inputs(x1, "x1" if x2 is not None else "x", self._x.shape[1:])
        x2 = x1 if x2 is None else inputs(x2, "x2", self._x.shape[1:])
        drift = self._drift(x1, x2, self._at(time)[0])
        return self._block(self._kernel(x1, x2) + share * self.eps * drift, len(x1), len(x2))

    def _kernel(self, x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
        """At initialization, (columns, m1, m2)."""
        kernel = self._tangent.cross(x1, x2)
        return np.broadcast_to(kernel, (len(self._residual), *kernel.shape))

    def _drift(self, x1: np.ndarray, x2: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """How the kernel moved, (columns, m1, m2), without eps."""
        there = self._tangent.half_drift(moved, x1, x2)
        return there + self._tangent.half_drift(moved, x2, x1).transpose(0, 2, 1)

    def _block(self, columns: np.ndarray, n1: int, n2: int) -> np.ndarray:
        """A kernel (columns, m1, m2) in the shape in which it is returned."""
        out = self._y.shape[1]
        if out == 1:
            return columns[0]
        if len(columns) == 1:
            return columns.reshape(n1, out, n2, out)
        # Outputs with weights of their own: no kernel between them.
        blocks = np.zeros((n1, out, n2, out))
        for i, block in enumerate(columns):
            blocks[:, i, :, i] = block
        return blocks

    @in_float64
    def compressed_prediction(self, x_new: ArrayLike, kernel: str = "flat") -> np.ndarray:
        r"""The prediction at `x_new` in the form of a kernel machine, $z(0) - k' (K')^{-1} e$.

        **Arguments:** `kernel`: "flat", $k'(x_1, x_2) = \frac12 (f + f^E)(x_1) \cdot f(x_2)$, which is not symmetric
        and reproduces `DirectOptimization`; "trained", the kernel of `trained_kernel`, a separate rule ($Z_A = Z_B =
        \frac12 K^{-1} \otimes K^{-1}$) that agrees with every algorithm if the number of parameters equals the number
        of outputs to fit, and with no algorithm if there are more parameters.
        """
        one_of(kernel, "kernel", ("flat", "trained"))
        x_new = inputs(x_new, "x_new", self._x.shape[1:])
        require_fitted("a compressed prediction", self._factor, self._derivatives.outputs, self.algorithm)
        drift = self._drift if kernel == "trained" else self._half_drift
        moved = self._moved[0]
        here = self._kernel(self._x, self._x) + self.eps / 2 * drift(self._x, self._x, moved)
        there = self._kernel(x_new, self._x) + self.eps / 2 * drift(x_new, self._x, moved)
        change = [k @ np.linalg.solve(K, e) for k, K, e in zip(there, here, self._residual, strict=True)]
        out = self._y.shape[1]
        outputs = self._tangent.start(x_new, out) - self._tangent.unflat(np.stack(change, axis=1), out)
        return self._shaped(outputs)

    def _half_drift(self, x1: np.ndarray, x2: np.ndarray, moved: np.ndarray) -> np.ndarray:
        """What the features of `x1` that moved add to the kernel."""
        return self._tangent.half_drift(moved, x1, x2)

    @in_float64
    def algorithm_projectors(self) -> Projectors:
        """$Z_A$, $Z_B$ and $X$ as arrays (N, N, N, N), for few training outputs N; predictions do not need them."""
        require_fitted("a projector", self._factor, self._derivatives.outputs, self.algorithm)
        return projectors(self._spectrum, self.algorithm)

    @in_float64
    def feature_learning(self, x_test: ArrayLike, y_test: ArrayLike) -> FeatureLearning:
        """Whether feature learning lowers the loss on `x_test`, `y_test`: see `FeatureLearning`."""
        x_test = inputs(x_test, "x_test", self._x.shape[1:])
        y_test = targets(y_test, len(x_test), "y_test", "x_test", out=self._y.shape[1])
        moved = self._moved
        if self.order < 2:
            # Second orders of training need all eigenvalues.
            follows = isinstance(self.algorithm, GradientDescent | GradientFlow)
            factor = self._spectrum if follows else self._factor
            moved = _moved(self._own_derivatives(), factor, self._residual, self.algorithm, 2).weights
        exact = functools.partial(
            _exact_loss, self._tangent, self._x, self._y, self.algorithm, x_test, y_test
        )
        return feature_learning(tuple(self._terms(x_test, moved)), y_test, exact)


def expanded_solution(
    tangent: CurvedTangent,
    x: np.ndarray,
    y: np.ndarray,
    algorithm: SpectralAlgorithm,
    order: int,
    vector: bool,
) -> NearlyKernelSolution:
    """Trains on `x` and `y` (n, out), to `order` 1 or 2."""
    derivatives = tangent.derivatives(x)
    residual = tangent.flat(tangent.start(x, y.shape[1]) - y).T
    factor = _factor_for(tangent, x, algorithm, order)
    moved = _moved(derivatives, factor, residual, algorithm, order)
    return NearlyKernelSolution(
        algorithm=algorithm, order=order, eps=tangent.eps, sum_rank=moved.rank, _x=x, _y=y, _vector=vector,
        _tangent=tangent, _factor=factor, _derivatives=derivatives, _residual=residual, _moved=moved.weights,
    )  # fmt: skip


def _factor_for(
    tangent: CurvedTangent, x: np.ndarray, algorithm: SpectralAlgorithm, order: int
) -> AbstractFactor:
    """The cheapest that serves: finite times and second orders need all eigenvalues."""
    if isinstance(algorithm, DirectOptimization | Ridge):
        return tangent.factor(x, algorithm)
    if order == 1 and math.isinf(algorithm.end()):
        return tangent.rational(x)
    return tangent.spectrum(x)


def _moved(
    derivatives: AbstractDerivatives,
    factor: AbstractFactor,
    residuals: np.ndarray,
    algorithm: SpectralAlgorithm,
    order: int,
) -> Moved:
    """w_0 .. w_order, each (columns, P), without their powers of eps, for `residuals` (columns, m)."""
    if factor.lam_max >= algorithm.limit():
        beyond = np.full((len(residuals), derivatives.size), np.inf)
        return Moved(weights=[beyond] * (order + 1))
    columns = [moved_weights(derivatives, factor, each, algorithm, order) for each in residuals]
    orders = zip(*(column.weights for column in columns), strict=True)
    return Moved(weights=[np.stack(each) for each in orders], rank=max(column.rank for column in columns))


def _exact_loss(tangent: CurvedTangent, x, y, algorithm, x_test, y_test, eps: float) -> float:
    """The test loss after training at this scale; nan where training diverges or does not end."""
    model, start = at_scale(tangent, eps, x, y.shape[1])
    params = exact_params(model, start, x, y, algorithm)
    if params is None:
        return float("nan")
    return float(0.5 * ((np.asarray(model(params, x_test)) - y_test) ** 2).sum())
