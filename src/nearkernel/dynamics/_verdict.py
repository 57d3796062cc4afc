r"""How far a linear prediction of training can be trusted, from one evaluation of the network itself.

The linearized model says at once where its parameters go, and what its outputs become:

    theta_lin = theta_0 + d,    z_lin = z_0 + J d,    check = |z(theta_lin) - z_lin| / |z_lin - z_0|

The check is zero for a model that is linear in its parameters. Its limits were measured on networks that were trained:
see the study in the guide "Before you fine-tune".
"""

import enum
from collections.abc import Sequence

import numpy as np

TRUST, CARE = 0.2, 0.6  # largest checks of the first two verdicts


class Verdict(enum.StrEnum):
    """The verdict of the self-check on a prediction."""

    trust = "trust"
    care = "with care"
    distrust = "do not trust"

    @classmethod
    def of(cls, check: float) -> "Verdict":
        """The verdict on a self-check of size `check`."""
        if check <= TRUST:
            return cls.trust
        return cls.care if check <= CARE else cls.distrust  # what is not finite is not trusted


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
