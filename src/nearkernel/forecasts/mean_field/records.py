"""Results of a forecast of networks that learn features: kernels, neurons, the spread at finite width."""

import math

import equinox as eqx
import numpy as np

from ..._base.result import Result
from ..outputs.law import OutputLaw


class Kernels(Result, eqx.Module):
    r"""Kernels of a trained network at all points, training points first.

    **Fields:** `ntk`, the tangent kernel; `error`, its standard error over scrambles; `features`, one kernel
    $\langle s(h)\, s(h)\rangle$ (P, P) per hidden layer; `gradients`, one kernel per hidden layer of the derivatives
    of outputs with respect to preactivations; `moved`, the change of the NTK relative to the NTK at initialization,
    $\lVert\Theta - \Theta_0\rVert / \lVert\Theta_0\rVert$.

    They belong to the unscaled network, whose tangent kernel at initialization is `nk.kernels.NTK(net)`; the kernel of
    `nk.Scaled(net, alpha)` is $\alpha^2$ times larger. `ntk` and `gradients` are (P, P) for one output, otherwise (P,
    out, P, out).
    """

    ntk: np.ndarray
    features: tuple[np.ndarray, ...]
    gradients: tuple[np.ndarray, ...]
    moved: float
    error: np.ndarray


class Neurons(Result, eqx.Module):
    """Neurons of a hidden layer after training: a weighted sample of their distribution.

    **Fields:** `preactivations` and `start` (M, P), after training and at initialization, at all points, training
    points first; `weights` (M,), which sum to 1; `readout` (M, out), the outgoing weights of the last hidden layer,
    None for other layers.
    """

    preactivations: np.ndarray
    start: np.ndarray
    weights: np.ndarray
    readout: np.ndarray | None


class Spread(OutputLaw):
    r"""Trained outputs of networks of finite width: Gaussian around the limit, with covariance $c/\text{width}$.

    **Fields:** `mean`, the limit; `cov` (m, m) or (m, out, m, out); `std`, in the shape of `mean`; `error`, the
    relative standard error of `std`; `width`; `draws`, the number of networks in which c was measured, 0 if c was
    computed.
    """

    def __init__(self, mean: np.ndarray, constant: np.ndarray, width: int, draws: int, error: float):
        self.mean, self.width, self.draws, self.error = mean, width, draws, error
        self._cov = constant / width

    @classmethod
    def known(cls, mean: np.ndarray, constants: np.ndarray, width: int) -> "Spread":
        """From `constants`, c of several scrambles, (scrambles, m * out, m * out)."""
        traces = np.trace(constants, axis1=1, axis2=2)
        error = 0.5 * float(traces.std(ddof=1) / traces.mean()) / math.sqrt(len(traces))
        return cls(mean, constants.mean(axis=0), width, 0, error)

    def _covariance(self) -> np.ndarray:
        return self._cov.reshape(*self.mean.shape, *self.mean.shape)
