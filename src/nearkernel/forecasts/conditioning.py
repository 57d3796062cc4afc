"""`nk.posterior`: Bayesian networks and Gaussian processes, given data."""

from typing import Any, overload

import numpy as np

from .._base.check import inputs, instance, positive, refuse_unused, shown, targets
from .._base.rooms import renamed
from .._base.types import ArrayLike, Num
from .._base.warning import warn
from .._run.precision import in_float64
from ..kernels.base import AbstractKernel
from ..models.networks.mlp import MLP
from ..models.networks.network import AbstractNetwork
from .infinite_width.posterior import PosteriorResult
from .infinite_width.theory import InfiniteWidth
from .order_one.theory import FiniteWidth
from .posteriors.finite_width import FinitePosterior, resized
from .theory import AbstractBayesianTheory, P


@overload
def posterior(
    problem: AbstractKernel | AbstractNetwork,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    x_new: Num[ArrayLike, " m *d"],
    noise: float = 0.0,
    widths: None = None,
    *,
    theory: AbstractBayesianTheory[Any, P],
) -> P: ...


@overload
def posterior(
    problem: AbstractKernel | AbstractNetwork,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    x_new: Num[ArrayLike, " m *d"],
    noise: float = 0.0,
    widths: None = None,
    *,
    theory: None = None,
) -> PosteriorResult: ...


@overload
def posterior(
    problem: MLP,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    x_new: Num[ArrayLike, " m *d"],
    noise: float,
    widths: tuple[int, ...] | int,
) -> FinitePosterior: ...


@renamed("0.5", kernel="problem")
@in_float64
def posterior(
    problem: AbstractKernel | AbstractNetwork,
    x: Num[ArrayLike, " n *d"],
    y: Num[ArrayLike, " n *out"],
    x_new: Num[ArrayLike, " m *d"],
    noise: float = 0.0,
    widths: tuple[int, ...] | int | None = None,
    *,
    theory: AbstractBayesianTheory | None = None,
) -> Any:
    r"""The posterior of a Gaussian process, or of a Bayesian network.

    $$\text{mean} = k\, (K + \sigma^2)^{-1} y, \qquad \text{cov} = K_{BB} - k\, (K + \sigma^2)^{-1} k^\top$$

    With the NNGP kernel of a network and no noise this is the distribution of infinitely wide networks in which only
    the last layer is trained.

    With `theory=nk.FiniteWidth()` it is the posterior of a network with its widths, a `FinitePosterior`. The scale
    of the kernel is then random. This is exact for linear networks, and gives the variance of other networks within
    about 20 %. The mean is reliable where `misfit` is near 1. Several outputs share their neurons, so their scale is a
    random matrix; they are supported for one hidden layer, and for linear networks of any depth.

    **Arguments:**

    - `problem`: a network, or a kernel, e.g. `nk.kernels.NNGP(net)`, which is the same at infinite width.
    - `x` (n, d); `y` (n,) or (n, out); `x_new` (m, d).
    - `noise`: $\sigma^2$, the variance of the observations around the function.
    - `widths`: the old way to ask for a network of finite width.
    - `theory`: `nk.InfiniteWidth()`, the default, or `nk.FiniteWidth()`.

    **Returns:** a `PosteriorResult`, or a `FinitePosterior`.
    """
    if widths is not None:
        refuse_unused(
            "with `theory`, which takes the widths of the network", widths=None if theory is None else widths
        )
        problem, theory = _of_widths(problem, widths), FiniteWidth()
    if not isinstance(problem, AbstractKernel | AbstractNetwork):
        raise TypeError(
            f"`problem` must be a kernel, e.g. nk.kernels.NNGP(net), or a network; got {shown(problem)}."
        )
    chosen = InfiniteWidth() if theory is None else instance(theory, "theory", AbstractBayesianTheory)  # type: ignore[type-abstract]
    shape = problem.in_shape if isinstance(problem, AbstractNetwork) else problem.input_dim()
    x = np.array(inputs(x, "x", shape))
    x_new = inputs(x_new, "x_new", x.shape[1:])
    noise = float(positive(noise, "noise", zero=True))
    return chosen.posterior(problem, x, targets(y, len(x)), x_new, noise, np.ndim(y) == 1)


def _of_widths(problem: Any, widths: Any) -> MLP:
    """The network with other widths, and a warning that prints the replacement."""
    if not isinstance(problem, MLP):
        raise TypeError(f"`problem` must be an nk.MLP if `widths` are given; got {shown(problem)}.")
    warn(
        f"`widths={widths}` of nk.posterior is now `theory=nk.FiniteWidth()` for an nk.MLP of these widths; the old "
        "argument will be removed in 0.5.",
        DeprecationWarning,
    )
    return resized(problem, widths)
