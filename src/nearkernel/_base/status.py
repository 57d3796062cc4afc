"""How a computation ended: a member of an enumeration, and a sentence with the numbers."""

import dataclasses
import enum


class StatusKind(enum.Enum):
    """How a computation ended. The value of each member says what it means.

    `ok` is True for `converged`, `finished`, `stationary`, `singular` and `positive`.
    """

    converged = "The end of training, a minimum or the requested tolerance was reached."
    finished = "Stopped at the requested step or time."
    stationary = "Fluctuations balance dissipation."
    singular = "The kernel matrix is singular; its pseudo-inverse was used."
    positive = "The kernel is positive on these points."
    unchecked = "Ran inside jit, vmap or measure, where values cannot be checked."
    not_converged = "Iterations ended before the requested tolerance was reached."
    diverged = "The loss is not finite, ended above its initial value, or was growing at the end."
    interrupted = "Ctrl-C came before the end; the result contains what was done so far."
    stiff = "The differential equation could not be integrated to its end."
    not_positive = "The kernel matrix has a negative eigenvalue."
    not_symmetric = "The kernel matrix is not symmetric."

    @property
    def ok(self) -> bool:
        """Whether the result is valid."""
        return self in _OK

    def __repr__(self) -> str:
        return f"StatusKind.{self.name}"


_OK = frozenset(
    (
        StatusKind.converged,
        StatusKind.finished,
        StatusKind.stationary,
        StatusKind.singular,
        StatusKind.positive,
    )
)


@dataclasses.dataclass(frozen=True, eq=False)
class Status:
    """How a computation ended, for programs and for readers.

    `str(status)` is the message. `status == nk.StatusKind.diverged` compares the kind; two statuses are equal if kind
    and message are.

    **Fields:** `kind`, a `StatusKind`; `message`, one sentence with the numbers; `ok`, that of the kind.
    """

    kind: StatusKind
    message: str

    @property
    def ok(self) -> bool:
        return self.kind.ok

    def __str__(self) -> str:
        return self.message

    def __format__(self, spec: str) -> str:
        return format(self.message, spec)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StatusKind):
            return self.kind is other
        if isinstance(other, Status):
            return (self.kind, self.message) == (other.kind, other.message)
        return NotImplemented

    def __hash__(self) -> int:  # that of the kind, to which it may be equal
        return hash(self.kind)
