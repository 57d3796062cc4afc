"""What `inspect` returns."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np

from .._result import Result
from ._regime import RegimeResult
from ._verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Inspection(Result, eqx.Module):
    """What training will do to a network, at a few moments, with a self-check beside each prediction.

    **Fields:**

    - `algorithm`; `moments` (m,), steps of gradient descent or times of gradient flow.
    - `loss` (m,), predicted on the training set; `loss_before`.
    - `check` (m,), the self-check, and `verdicts` (m,) by it; `trusted_until`, the last moment up to which all are
      `trust`.
    - `fitted` (m, n, out) and `predictions` (m, k, out): outputs at `x` and at `x_new` at each moment; `params` at
      the end; `spread` (m, k, out), the standard deviation of `predictions` over starts, if `heads` were given.
    - `halfway` (n,): when the residual of each training point has fallen to half; infinite if it does not.
    - `eigenvalues` of the tangent kernel, largest first; `alignment`, the share of the initial residual along each;
      `effective_dimension`, (sum of eigenvalues)^2 / (sum of their squares).
    - `expanded_at`: moments at which the network was linearized, 0 first; `unstable_at`: when the rate was seen to
      exceed 2/lambda_max of the kernel at that moment, infinite if it was not; `kinked`: whether the network has kinks.
    - `regime`, of `nk.regime` by the self-check at the end: "lazy", "nearly lazy" or "rich".
    - `parameters`, how many train; `seconds` of the inspection; `training_seconds`, of the steps of gradient descent,
      from the time that one takes (nan for a flow).
    """

    algorithm: Any
    moments: np.ndarray
    loss_before: float
    loss: np.ndarray
    check: np.ndarray
    verdicts: tuple[Verdict, ...]
    trusted_until: float
    fitted: np.ndarray
    predictions: np.ndarray | None
    spread: np.ndarray | None
    params: Any
    halfway: np.ndarray
    eigenvalues: np.ndarray
    alignment: np.ndarray
    effective_dimension: float
    expanded_at: tuple[float, ...]
    unstable_at: float
    kinked: bool
    regime: RegimeResult
    parameters: int
    seconds: float
    training_seconds: float

    @property
    def prediction(self) -> np.ndarray | None:
        """Outputs at `x_new` at the end."""
        return None if self.predictions is None else self.predictions[-1]

    @property
    def verdict(self) -> Verdict:
        """Of the prediction at the end."""
        return self.verdicts[-1]

    def _shown(self) -> Mapping[str, object]:
        return {
            "parameters": self.parameters,
            "algorithm": self.algorithm,
            "loss_before": self.loss_before,
            "loss": self.loss,
            "verdicts": [verdict.value for verdict in self.verdicts],
            "trusted_until": self.trusted_until,
            "regime": self.regime.name,
        }

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the predicted loss, each moment marked by its verdict, on Matplotlib's `axes`."""
        from .._plots.verdicts import draw_verdicts

        return draw_verdicts(
            self.moments, self.loss, self.loss_before, [v.value for v in self.verdicts], axes
        )
