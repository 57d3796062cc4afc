r"""How far a linear prediction of training can be trusted, from one evaluation of the network itself.

The linearized model says at once where its parameters go, and what its outputs become:

$$\theta_{\text{lin}} = \theta_0 + d, \qquad z_{\text{lin}} = z_0 + J d, \qquad
\text{check} = \frac{\lVert z(\theta_{\text{lin}}) - z_{\text{lin}}\rVert}{\lVert z_{\text{lin}} - z_0\rVert}$$

The check is zero for a model that is linear in its parameters. What its verdicts are worth was measured on networks
that were trained: `PROMISED` and `KEPT` are those of the study in the guide "Before you fine-tune".
"""

import enum
from collections.abc import Sequence

import numpy as np

TRUST, CARE = 0.2, 0.6  # largest checks of the first two verdicts


class Verdict(enum.StrEnum):
    """The verdict of the self-check on a prediction.

    `promise` says how accurate predictions with this verdict were in a study of networks that were then trained.
    """

    trust = "trust"
    care = "with care"
    distrust = "do not trust"

    @classmethod
    def of(cls, check: float) -> "Verdict":
        """The verdict on a self-check of size `check`."""
        if check <= TRUST:
            return cls.trust
        return cls.care if check <= CARE else cls.distrust  # what is not finite is not trusted

    @property
    def promise(self) -> str:
        """The largest output error that this verdict promises, and how often predictions kept it."""
        if self not in PROMISED:
            return "no promise about the error of the outputs"
        return (
            f"output errors of at most {100 * PROMISED[self]:.0f} % of the change by training, which held for "
            f"{100 * KEPT[self]:.0f} % of such predictions in a study of small networks"
        )


# Largest error of the outputs, as a share of their movement; and how often docs/fine_tuning_study.py found it kept, in
# the worse of its two ways (linearized once, several times).
PROMISED = {Verdict.trust: 0.25, Verdict.care: 0.6}
KEPT = {Verdict.trust: 0.96, Verdict.care: 0.83}


def self_check(gap: float, moved: float) -> float:
    """`gap` between the network and its linearization, beside how far outputs `moved`."""
    if not np.isfinite(gap) or not np.isfinite(moved):
        return float("inf")
    return 0.0 if gap == 0.0 else float(gap / max(moved, np.finfo(float).tiny))


def trusted_until(moments: Sequence[float], checks: Sequence[float], limit: float = TRUST) -> float:
    """The last of `moments` before the check passes `limit` for the first time; 0 if it does at once."""
    found = 0.0
    for moment, check in zip(moments, checks, strict=True):
        if not check <= limit:
            break
        found = float(moment)
    return found
