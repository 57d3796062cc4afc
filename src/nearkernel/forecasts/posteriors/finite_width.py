"""The posterior of a network of finite width, from the distribution of its scale."""

import dataclasses
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.optimize
import scipy.special as special

from ..._base.check import inputs, positive, targets, wholes
from ..._base.result import Result
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from ...dynamics.linear.factor import Cholesky, cholesky
from ...kernels.wide.network import NNGP
from ...models.networks.chain import chain_of
from ...models.networks.mlp import MLP
from ...models.networks.network import AbstractNetwork
from .matrix_scale import MatrixMixture, matrix_mixture
from .scale_mixture import Mixture, is_homogeneous, mixture, scaled_process

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FAITHFUL = (0.15, 3.0)  # misfits between which the kernel keeps its shape
_CROWDED = 1.5  # points per neuron
_FEW = 0.1  # share of draws of the scale that must count
_MOST_LAYERS = 2  # hidden ones, if only all of their scales are enough


class FinitePosterior(Result, eqx.Module):
    r"""The posterior of the noise-free function of a network of finite width: a mixture of Gaussians.

    **Fields:** `mean`, `std` (m,) or (m, out), like `y`; `scale` and `scale_std`, mean and standard deviation of the
    kernel's scale, (1,), or (layers,) if each hidden layer has a separate one, or (out, out), the matrix that several
    outputs share; `misfit` $y^\top (K + \text{noise})^{-1} y / n$ per output, 1 if the prior fits the targets; `load`,
    n over the smallest width; `log_evidence`; `warning`, empty if the result is reliable; `weights` (k,), `means` and
    `variances` (k, m) or (k, m, out), of the Gaussian components.
    """

    mean: np.ndarray
    std: np.ndarray
    scale: np.ndarray
    scale_std: np.ndarray
    misfit: float
    load: float
    log_evidence: float
    warning: str
    weights: np.ndarray
    means: np.ndarray
    variances: np.ndarray

    def quantile(self, q: float) -> np.ndarray:
        """The quantile `q` of the function, in the shape of `mean`."""
        q = positive(q, "q")
        if not q < 1:
            raise ValueError(f"`q` must be between 0 and 1; got {q}.")
        means = self.means.reshape(len(self.weights), -1)
        deviations = np.sqrt(np.maximum(self.variances, 1e-300)).reshape(means.shape)
        found = []
        for i, middle in enumerate(self.mean.reshape(-1)):
            below = lambda v, i=i: (
                float(self.weights @ special.ndtr((v - means[:, i]) / deviations[:, i])) - q
            )
            reach = 40 * float(deviations[:, i].max()) + float(np.ptp(means[:, i])) + 1e-12
            found.append(scipy.optimize.brentq(below, middle - reach, middle + reach, rtol=1e-12))
        return np.array(found).reshape(self.mean.shape)

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the mean and 2 standard deviations, point by point, on Matplotlib's `axes`."""
        from ..._plots.bands import draw_band

        return draw_band(self.mean, self.std, axes)


def finite_posterior(
    net: MLP, x: np.ndarray, y: np.ndarray, x_new: np.ndarray, noise: float, vector: bool
) -> FinitePosterior:
    """For checked arguments, `y` (n, out)."""
    _require_known(net)
    _require_noise(noise, net, len(x))
    chosen = net.widths
    found = _mixed(net, chosen, np.concatenate([x, x_new]), y, noise)
    w = found.weights
    mean, scale = np.tensordot(w, found.means, 1), np.tensordot(w, found.scales, 1)
    variance = np.tensordot(w, found.variances + (found.means - mean) ** 2, 1)
    misfit, load = _misfit(net, x, y, noise), len(x) / min(chosen) if chosen else 0.0
    shape = mean.shape if vector or mean.ndim == 2 else (len(mean), 1)
    each = (len(w), *shape)
    return FinitePosterior(
        mean.reshape(shape),
        np.sqrt(variance).reshape(shape),
        scale,
        np.sqrt(np.maximum(np.tensordot(w, found.scales**2, 1) - scale**2, 0.0)),
        misfit,
        load,
        found.log_evidence,
        _warning(net, misfit, load),
        w,
        found.means.reshape(each),
        found.variances.reshape(each),
    )


def _mixed(
    net: MLP, widths: tuple[int, ...], every: np.ndarray, y: np.ndarray, noise: float
) -> Mixture | MatrixMixture:
    """One output by quadrature; several by draws of the matrix that they share."""
    if y.shape[1] == 1 or not widths:
        return mixture(net, widths, every, y[:, 0], noise)
    if len(widths) > 1 and not (_is_linear(net) and is_homogeneous(net)):
        raise ValueError(
            f"`y` has {y.shape[1]} outputs, which share their neurons: their law is known for one hidden layer and "
            f"for linear networks without biases, not for {len(widths)} hidden layers; use measure_posterior."
        )
    if noise == 0 and min(widths) < y.shape[1]:
        raise ValueError(
            f"`noise` must be greater than 0: {min(widths)} neurons cannot have {y.shape[1]} independent outputs."
        )
    found = matrix_mixture(scaled_process(net, every, y, noise), widths)
    if found.share < _FEW:
        raise ValueError(
            f"the scale of {y.shape[1]} outputs is a matrix, too far from Gaussian to be sampled at widths "
            f"{widths}: use measure_posterior."
        )
    return found


class WidthEvidenceResult(Result, eqx.Module):
    """Log evidence of networks of several widths and depths.

    **Fields:** `widths` (k,); `depths` (l,); `log_evidence` (l, k); `infinite` (l,), the evidence of infinitely wide
    networks; `best`, the depth and the width (None: infinite) with the largest evidence.
    """

    widths: tuple[int, ...]
    depths: tuple[int, ...]
    log_evidence: np.ndarray
    infinite: np.ndarray
    best: tuple[int, int | None]

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the log evidence against the width, one line per depth, on Matplotlib's `axes`."""
        from ..._plots.lines import draw_lines

        found = draw_lines(
            np.array(self.widths), self.log_evidence.T, axes, labels=[f"depth {depth}" for depth in self.depths],
            xlabel="width", ylabel="log evidence", log="x",
        )  # fmt: skip
        for line, value in zip(found.lines, self.infinite, strict=False):
            found.axhline(value, color=line.get_color(), linestyle="--", linewidth=1)
        return found


@in_float64
def width_evidence(
    net: AbstractNetwork, x: ArrayLike, y: ArrayLike, noise: float, widths: Any, depths: Any = (1,)
) -> WidthEvidenceResult:
    """The log evidence of each width and depth, from the distribution of the kernel's scale.

    **Arguments:** `net`, an `nk.MLP` with one activation and one pair of variances; `x` (n, d); `y` (n,); `noise` >
    0; `widths` and `depths` to compare; more than two hidden layers need homogeneous activations without biases.
    """
    widths, depths = wholes(widths, "widths"), wholes(depths, "depths")
    if not widths or not depths:
        raise ValueError("`widths` and `depths` must each contain at least one number.")
    net = chain_of(net, "width_evidence", mean_field=True).mlp()
    if not net.uniform:
        raise ValueError("`net` must have the same activation and variances in all layers.")
    x = inputs(x, "x", net.in_dim)
    y, noise = targets(y, len(x)), float(positive(noise, "noise"))
    rows, infinite = [], []
    for depth in depths:
        deep = MLP(net.in_dim, (1,) * depth, 1, net.activation, net.weight_var, net.bias_var)
        finite = (finite_posterior(resized(deep, (n,) * depth), x, y, x[:1], noise, True) for n in widths)
        rows.append([law.log_evidence for law in finite])
        factor = _factor(NNGP(deep).entries(x, None), noise)
        infinite.append(factor.log_evidence(y, factor.solve(y)))
    table = np.array(rows)
    every = np.column_stack([table, infinite])
    at = np.unravel_index(int(every.argmax()), every.shape)
    best = (depths[at[0]], widths[at[1]] if at[1] < len(widths) else None)
    return WidthEvidenceResult(widths, depths, table, np.array(infinite), best)


def resized(net: MLP, widths: Any) -> MLP:
    """The same network with hidden layers of these `widths`."""
    chosen = wholes(widths, "widths")
    if len(chosen) != len(net.widths):
        raise ValueError(
            f"`widths` must have one width per hidden layer of the network, {len(net.widths)}; got {len(chosen)}."
        )
    return dataclasses.replace(net, widths=chosen)


def _require_known(net: MLP) -> None:
    if net.parametrization == "mean_field":
        raise ValueError("`problem` must be a network in NTK or standard scaling, not in mean-field scaling.")
    if len(net.widths) > _MOST_LAYERS and not is_homogeneous(net):
        raise ValueError(
            f"`problem` with more than {_MOST_LAYERS} hidden layers needs a homogeneous activation (relu, linear) and "
            f"no biases; got {len(net.widths)} layers."
        )


def _require_noise(noise: float, net: MLP, n: int) -> None:
    if noise == 0 and net.dense(len(net.widths)).bias_var:
        raise ValueError("`noise` must be greater than 0 for a finite-width network with biases.")
    if noise == 0 and net.widths and n > min(net.widths) and not _is_linear(net):
        raise ValueError(
            f"`noise` must be greater than 0: {min(net.widths)} neurons cannot fit {n} points exactly."
        )


def _misfit(net: MLP, x: np.ndarray, y: np.ndarray, noise: float) -> float:
    return float((y * _factor(NNGP(net).entries(x, None), noise).solve(y)).sum() / y.size)


def _factor(kernel: np.ndarray, noise: float) -> Cholesky:
    factor = cholesky(np.asarray(kernel, np.float64), noise, need_max=False)
    if factor is None:
        raise ValueError("the kernel matrix of `x` is singular to working accuracy: use `noise` > 0.")
    return factor


def _warning(net: MLP, misfit: float, load: float) -> str:
    if not _is_linear(net) and load > _CROWDED and misfit > 1:
        return (
            f"{load:.2g} times as many points as neurons, and the prior does not fit them (misfit {misfit:.3g}): the "
            "variance may be off by a factor of two; sample it (nk.theory.measure_posterior)"
        )
    if _is_linear(net) or _FAITHFUL[0] <= misfit <= _FAITHFUL[1]:
        return ""
    return (
        f"y^T (K + noise)^-1 y / n = {misfit:.3g} is far from 1: the network learns features, so the mean may be off "
        "by 5 to 30 % and the variance by up to 20 %: see nk.theory.adapted_mean and measure_posterior"
    )


def _is_linear(net: MLP) -> bool:
    z = jnp.array([1.0, 2.0, -1.0])
    return all(bool(jnp.all(f(z) == f(z[:1]) * z)) for f in net.activations)
