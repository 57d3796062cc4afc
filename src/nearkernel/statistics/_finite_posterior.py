"""The posterior of a network of finite width, by the law of its scale."""

from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.optimize
import scipy.special as special

from .._check import inputs, positive, shown, targets, wholes
from .._precision import in_float64
from .._result import Result
from ..dynamics._factor import cholesky
from ..kernels import NNGP
from ..models import MLP
from ._scale_mixture import is_homogeneous, mixture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FAITHFUL = (0.15, 3.0)  # misfits between which the kernel keeps its shape
_CROWDED = 1.5  # points per neuron
_MOST_LAYERS = 2  # hidden ones, if only all of their scales are enough


class FinitePosterior(Result, eqx.Module):
    """The posterior of the noise-free function of a network of finite width: a mixture of Gaussians.

    **Fields:** `mean`, `std` (m,); `scale` and `scale_std`, mean and standard deviation of the kernel's scale, (1,),
    or (layers,) if each hidden layer has a separate one; `misfit` r = y^T (K + noise)^-1 y / n, 1 if the prior fits
    the targets; `load` n / (smallest width); `log_evidence`; `warning`, empty if the result is reliable.
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
        """The quantile `q` of the function, (m,)."""
        q = positive(q, "q")
        if not q < 1:
            raise ValueError(f"`q` must be between 0 and 1; got {q}.")
        deviations = np.sqrt(np.maximum(self.variances, 1e-300))
        found = []
        for i in range(len(self.mean)):
            below = lambda v, i=i: (
                float(self.weights @ special.ndtr((v - self.means[:, i]) / deviations[:, i])) - q
            )
            reach = 40 * float(deviations[:, i].max()) + float(np.ptp(self.means[:, i])) + 1e-12
            found.append(scipy.optimize.brentq(below, self.mean[i] - reach, self.mean[i] + reach, rtol=1e-12))
        return np.array(found)

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw mean and 2 standard deviations, point by point, on Matplotlib's `axes`."""
        from .._plots.bands import draw_band

        return draw_band(self.mean, self.std, axes)


def finite_posterior(net: Any, x: Any, y: Any, x_new: Any, noise: float, widths: Any) -> FinitePosterior:
    """`posterior` of a network, `widths` given."""
    net, chosen = _checked(net, widths)
    x = inputs(x, "x", net.in_dim)
    y = targets(y, len(x))
    if y.shape[1] != 1:
        raise ValueError(
            f"`y` must have one output if `widths` are finite; got {y.shape[1]}: outputs share the random scale."
        )
    x_new = inputs(x_new, "x_new", net.in_dim)
    noise = _noise(noise, net, len(x), chosen)
    found = mixture(net, chosen, np.concatenate([x, x_new]), y[:, 0], noise)
    w = found.weights
    mean = w @ found.means
    variance = w @ found.variances + w @ (found.means - mean) ** 2
    scale = w @ found.scales
    misfit = _misfit(net, x, y, noise)
    return FinitePosterior(
        mean,
        np.sqrt(variance),
        scale,
        np.sqrt(np.maximum(w @ found.scales**2 - scale**2, 0.0)),
        misfit,
        len(x) / min(chosen) if chosen else 0.0,
        found.log_evidence,
        _warning(net, misfit, len(x) / min(chosen) if chosen else 0.0),
        w,
        found.means,
        found.variances,
    )


class WidthEvidenceResult(Result, eqx.Module):
    """Log evidence of networks of several widths and depths.

    **Fields:** `widths` (k,); `depths` (l,); `log_evidence` (l, k); `infinite` (l,), the evidence of infinitely wide
    networks; `best`, the depth and the width (infinite if None) with the largest evidence.
    """

    widths: tuple[int, ...]
    depths: tuple[int, ...]
    log_evidence: np.ndarray
    infinite: np.ndarray
    best: tuple[int, int | None]

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the log evidence against the width, one line per depth, on Matplotlib's `axes`."""
        from .._plots.lines import draw_lines

        found = draw_lines(
            np.array(self.widths), self.log_evidence.T, axes, labels=[f"depth {depth}" for depth in self.depths],
            xlabel="width", ylabel="log evidence", log="x",
        )  # fmt: skip
        for line, value in zip(found.lines, self.infinite, strict=False):
            found.axhline(value, color=line.get_color(), linestyle="--", linewidth=1)
        return found


@in_float64
def width_evidence(
    net: MLP, x: Any, y: Any, noise: float, widths: Any, depths: Any = (1,)
) -> WidthEvidenceResult:
    """The log evidence of each width and depth, from the distribution of the kernel's scale.

    **Arguments:** `net`, an `nk.MLP` with one activation and one pair of variances; `x` (n, d); `y` (n,); `noise` >
    0; `widths` and `depths` to compare; more than two hidden layers need homogeneous activations without biases.
    """
    widths, depths = wholes(widths, "widths"), wholes(depths, "depths")
    if not widths or not depths:
        raise ValueError("`widths` and `depths` must hold at least one number each.")
    if not isinstance(net, MLP) or not net.uniform:
        raise TypeError(
            f"`net` must be an nk.MLP whose layers have equal activations and variances; got {shown(net)}."
        )
    x = inputs(x, "x", net.in_dim)
    rows, infinite = [], []
    for depth in depths:
        deep = MLP(net.in_dim, (1,) * depth, 1, net.activation, net.weight_var, net.bias_var)
        rows.append([finite_posterior(deep, x, y, x[:1], noise, (n,) * depth).log_evidence for n in widths])
        infinite.append(_infinite(deep, x, targets(y, len(x)), noise))
    table = np.array(rows)
    every = np.column_stack([table, infinite])
    at = np.unravel_index(int(every.argmax()), every.shape)
    best = (depths[at[0]], widths[at[1]] if at[1] < len(widths) else None)
    return WidthEvidenceResult(widths, depths, table, np.array(infinite), best)


def _infinite(net: MLP, x: np.ndarray, y: np.ndarray, noise: float) -> float:
    from ._posterior import posterior

    return posterior(NNGP(net), x, y, x[:1], noise).log_marginal_likelihood


def _checked(net: Any, widths: Any) -> tuple[MLP, tuple[int, ...]]:
    if not isinstance(net, MLP):
        raise TypeError(f"`kernel` must be an nk.MLP if `widths` are given; got {shown(net)}.")
    chosen = wholes(widths, "widths")
    if len(chosen) != len(net.widths):
        raise ValueError(
            f"`widths` must have one width per hidden layer of the network, {len(net.widths)}; got {len(chosen)}."
        )
    if net.parametrization == "mean_field":
        raise ValueError("`kernel` must be a network in NTK or standard scaling, not in mean-field scaling.")
    if len(chosen) > _MOST_LAYERS and not is_homogeneous(net):
        raise ValueError(
            f"`widths` of more than {_MOST_LAYERS} hidden layers need a homogeneous activation (relu, linear) and no "
            f"biases; got {len(chosen)} layers."
        )
    return net, chosen


def _noise(noise: Any, net: MLP, n: int, widths: tuple[int, ...]) -> float:
    noise = float(positive(noise, "noise", zero=True))
    if noise == 0 and net.dense(len(net.widths)).bias_var:
        raise ValueError("`noise` must be greater than 0 for a network with biases of finite width.")
    if noise == 0 and widths and n > min(widths) and not _is_linear(net):
        raise ValueError(
            f"`noise` must be greater than 0: {min(widths)} neurons cannot fit {n} points exactly."
        )
    return noise


def _misfit(net: MLP, x: np.ndarray, y: np.ndarray, noise: float) -> float:
    factor = cholesky(np.asarray(NNGP(net).entries(x, None), np.float64), noise, need_max=False)
    if factor is None:
        raise ValueError("the kernel matrix of `x` is singular to working accuracy: give `noise` > 0.")
    return float((y * factor.solve(y)).sum() / len(x))


def _warning(net: MLP, misfit: float, load: float) -> str:
    if not _is_linear(net) and load > _CROWDED and misfit > 1:
        return (
            f"{load:.2g} times as many points as neurons, and the prior does not fit them (misfit {misfit:.3g}): the "
            "variance may be off by a factor of two; sample it (nk.statistics.measure_posterior)"
        )
    if _is_linear(net) or _FAITHFUL[0] <= misfit <= _FAITHFUL[1]:
        return ""
    return (
        f"y^T (K + noise)^-1 y / n = {misfit:.3g} is far from 1: the network learns features, the mean may be off by "
        "5 to 30 % and the variance by up to 20 %: see nk.statistics.adapted_mean and measure_posterior"
    )


def _is_linear(net: MLP) -> bool:
    z = jnp.array([1.0, 2.0, -1.0])
    return all(bool(jnp.all(f(z) == f(z[:1]) * z)) for f in net.activations)
