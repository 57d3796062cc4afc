"""The result of `inspect`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import equinox as eqx
import numpy as np

from ..._base.result import Result
from ..._base.types import Float, Num
from ...models.base import Params
from ..algorithms.regime import RegimeResult
from .verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Inspection(Result, eqx.Module):
    r"""Predictions of a training run at several times, each with a self-check.

    Each prediction is as accurate as its verdict promises: see `verdict.promise`.

    **Fields:**

    - `algorithm`; `moments` (m,), the steps of gradient descent or times of gradient flow.
    - `loss` (m,), the predicted training loss; `loss_before`, the loss at initialization.
    - `check` (m,), the self-check, and `verdicts` (m,), its verdicts; `trusted_until`, the last time up to which all
      verdicts are `trust`.
    - `fitted` (m, n, out) and `predictions` (m, k, out): outputs at `x` and at `x_new` at each time; `params` at the
      end.
    - `halfway` (n,): the time at which the residual of each training point has halved; infinite if it never does.
    - `eigenvalues` of the tangent kernel, largest first; `alignment`, the fraction of the initial residual along
      each; `effective_dimension`, $(\sum \lambda_i)^2 / \sum \lambda_i^2$.
    - `expanded_at`: times at which the network was linearized, 0 first; `unstable_at`: the first time at which the
      learning rate exceeded $2/\lambda_{\max}$ of the current kernel, infinite if it never did; `kinked`: whether the
      network has kinks, None if unknown.
    - `regime`: the regime by the self-check at the end, same as in `nk.regime`: "lazy", "nearly lazy" or "rich".
    - `parameters`, the number of trained parameters; `seconds`, the time of the inspection; `training_seconds`, the
      estimated time of real training, from the time of one step (nan for a flow).
    """

    algorithm: Any
    moments: Num[np.ndarray, " m"]
    loss_before: float
    loss: Float[np.ndarray, " m"]
    check: Float[np.ndarray, " m"]
    verdicts: tuple[Verdict, ...]
    trusted_until: float
    fitted: Float[np.ndarray, "m n out"]
    predictions: Float[np.ndarray, "m k out"] | None
    params: Params
    halfway: Float[np.ndarray, " n"]
    eigenvalues: np.ndarray
    alignment: np.ndarray
    effective_dimension: float
    expanded_at: tuple[float, ...]
    unstable_at: float
    kinked: bool | None
    regime: RegimeResult
    parameters: int
    seconds: float
    training_seconds: float

    @property
    def prediction(self) -> np.ndarray | None:
        """Outputs at `x_new` at the end of training."""
        return None if self.predictions is None else self.predictions[-1]

    @property
    def verdict(self) -> Verdict:
        """The verdict on the prediction at the end of training."""
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
        """Draw the predicted loss, each time marked with its verdict, on Matplotlib's `axes`."""
        from ..._plots.verdicts import draw_verdicts

        return draw_verdicts(
            self.moments, self.loss, self.loss_before, [v.value for v in self.verdicts], axes
        )
