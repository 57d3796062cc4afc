"""A row of a result: what theory says, what the experiment shows, and whether they agree."""

import dataclasses
import math
from typing import Any

SIGMAS = 4.0  # how many standard errors theory and experiment may be apart


@dataclasses.dataclass(frozen=True)
class Row:
    """One quantity. `relation` says how `measured` should stand to `theory`:

    "equals", within SIGMAS standard errors plus the relative `tolerance`, of which most rows have only one; "differs",
    the opposite, for other forms, printed or tempting; "at most" and "at least" for bounds, which a `sem` loosens.
    """

    quantity: str
    theory: float
    measured: float
    sem: float = 0.0
    tolerance: float = 0.0
    relation: str = "equals"

    @property
    def allowed(self) -> float:
        """The distance between theory and experiment up to which they agree."""
        return SIGMAS * self.sem + self.tolerance * abs(self.theory)

    @property
    def ok(self) -> bool:
        away = self.measured - self.theory
        if not (math.isfinite(self.measured) and math.isfinite(self.allowed)):
            return False
        return {
            "equals": abs(away) <= self.allowed,
            "differs": abs(away) > self.allowed,
            "at most": away <= self.allowed,
            "at least": away >= -self.allowed,
        }[self.relation]

    @property
    def sigmas(self) -> float | None:
        """(measured - theory) in standard errors; None for a row without."""
        return (self.measured - self.theory) / self.sem if self.sem > 0 else None

    @property
    def deviation(self) -> str:
        """The distance in words: sigmas, or a share of theory and what is allowed of it."""
        if self.sigmas is not None:
            return f"{self.sigmas:+.1f} σ" + (
                f" (limit 4 σ + {self.tolerance:.2g})" if self.tolerance else ""
            )
        if self.relation.startswith("at"):
            return f"{self.relation} theory"
        share = abs(self.measured - self.theory) / abs(self.theory) if self.theory else math.inf
        return f"{share:.1e} (limit {self.tolerance:.0e})"

    @property
    def told(self) -> str:
        """The row as one sentence, for messages."""
        spread = f" ± {self.sem:.2g}" if self.sem > 0 else ""
        word = {"equals": "theory", "differs": "not"}.get(self.relation, self.relation)
        return f"{self.quantity}: {word} {self.theory:.6g}, measured {self.measured:.6g}{spread} ({self.deviation})"

    def as_dict(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "sigmas": self.sigmas, "ok": self.ok}


def statistical(quantity: str, theory: Any, measured: Any, sem: Any, tolerance: float = 0.0) -> Row:
    """Agrees within SIGMAS standard errors; plus a relative `tolerance` where theory itself is a leading order."""
    return Row(quantity, float(theory), float(measured), float(sem), tolerance)


def exact(quantity: str, theory: Any, measured: Any, tolerance: float) -> Row:
    """Agrees to a relative `tolerance`."""
    return Row(quantity, float(theory), float(measured), tolerance=tolerance)


def refuted(quantity: str, printed: Any, measured: Any, *, sem: Any = 0.0, tolerance: float = 0.0) -> Row:
    """A printed value that the experiment excludes: further away than `exact` or `statistical` would allow.

    For claims with an `erratum`, which says where it is printed.
    """
    return Row(quantity, float(printed), float(measured), float(sem), tolerance, "differs")


def unlike(quantity: str, other: Any, measured: Any, *, sem: Any = 0.0, tolerance: float = 0.0) -> Row:
    """Another value that one could expect, and that the experiment excludes. No source is said to print it."""
    return Row(quantity, float(other), float(measured), float(sem), tolerance, "differs")


def at_most(quantity: str, bound: Any, measured: Any, sem: Any = 0.0) -> Row:
    """Stays below `bound`, or above it by no more than SIGMAS standard errors."""
    return Row(quantity, float(bound), float(measured), float(sem), relation="at most")


def at_least(quantity: str, bound: Any, measured: Any, sem: Any = 0.0) -> Row:
    """Stays above `bound`, or below it by no more than SIGMAS standard errors."""
    return Row(quantity, float(bound), float(measured), float(sem), relation="at least")
