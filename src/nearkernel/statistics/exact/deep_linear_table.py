"""Bayesian model selection as a table: which depth, width and prior variance make the data most probable."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import numpy as np

from ..._base.check import shown, wholes
from ..._base.result import Result
from ..._base.rooms import renamed
from ..._base.types import ArrayLike
from .deep_linear import checked_var, effective_depth, interpolation, log_evidence, most_probable_var
from .deep_linear_posterior import posterior_of


class ModelRow(NamedTuple):
    r"""One model of a `ModelTable`.

    **Fields:** `depth`, number of hidden layers; `width` of each; `prior_var`; `best`, whether `prior_var` was chosen
    for the data; `effective_depth`; `log_evidence`; `scale`, $n_0\, \mathbb{E}[S]$ of the posterior.
    """

    depth: int
    width: int
    prior_var: float
    best: bool
    effective_depth: float
    log_evidence: float
    scale: float


class ModelTable(Result, eqx.Module):
    r"""Models of one data set, sorted by probability.

    **Fields:** `rows`, one `ModelRow` per model; its `scale` is $n_0\, \mathbb{E}[S]$ of the posterior, the variance of
    predictions in unseen directions, relative to a linear model.
    """

    rows: tuple[ModelRow, ...]

    @property
    def probabilities(self) -> np.ndarray:
        """The posterior probabilities of the models, (rows,), for equal prior probabilities."""
        logs = np.array([row.log_evidence for row in self.rows])
        shares = np.exp(logs - logs.max())
        return shares / shares.sum()

    def __str__(self) -> str:
        lines = ["depth  width  prior_var  effective_depth  log_evidence  scale  probability"]
        for row, share in zip(self.rows, self.probabilities, strict=True):
            mark = "*" if row.best else " "
            lines.append(
                f"{row.depth:5d}  {row.width:5d}  {row.prior_var:8.4f}{mark}  {row.effective_depth:15.3f}  "
                f"{row.log_evidence:12.3f}  {row.scale:5.3f}  {share:11.4f}"
            )
        return "\n".join([*lines, "* best for the data"])


@renamed(X="x")
def deep_linear_table(
    x: ArrayLike,
    y: ArrayLike,
    depths: Sequence[int],
    widths: Sequence[int],
    prior_vars: Sequence[float | None] = (1.0, None),
) -> ModelTable:
    """A table of the exact evidence of every depth, width and prior variance.

    **Arguments:** `x` (P, n_0); `y` (P,), not 0; `depths`, numbers of hidden layers (0: a linear model at any width);
    `widths` of the hidden layers; `prior_vars`, where None means the best variance for each model.
    """
    data = interpolation(x, y)
    if data.square == 0:
        raise ValueError(
            "`y` must not be 0: the evidence grows as `prior_var` decreases, so no value is best."
        )
    depths, widths = wholes(depths, "depths", 0), wholes(widths, "widths")
    if not isinstance(prior_vars, list | tuple | np.ndarray):
        raise TypeError(f"`prior_vars` must be a tuple such as (1.0, None); got {shown(prior_vars)}.")
    rows = {}
    for depth in depths:
        for width in widths:
            layers = (width,) * depth
            for asked in prior_vars:
                var = (
                    most_probable_var(data, layers)
                    if asked is None
                    else float(checked_var(asked, "prior_vars"))
                )
                rows[len(layers), width if layers else 0, asked] = ModelRow(
                    len(layers),
                    int(width) if layers else 0,
                    var,
                    asked is None,
                    effective_depth(data.basis.shape[1], layers),
                    log_evidence(data, layers, var),
                    len(data.theta) * posterior_of(data, layers, var).scale,
                )
    if not rows:
        raise ValueError("`depths`, `widths` and `prior_vars` must each hold at least one value.")
    return ModelTable(tuple(sorted(rows.values(), key=lambda row: -row.log_evidence)))
