"""Steps of gradient descent that follow the flow."""

from typing import NamedTuple


class Course(NamedTuple):
    """How far a check trains: to `time`, by at least `steps`; `notes` if that is not as far as was asked."""

    time: float
    steps: float
    notes: tuple[str, ...]


def course(time: float, largest: float, depth: int, width: int, most: int) -> Course:
    """To `time`, or as far as `most` steps lead, each far from unstable at this largest eigenvalue of the kernel.

    Kernels of narrow deep networks scatter, so that their steps must be shorter.
    """
    rate = (2.0 + 8.0 * depth / width) * largest
    reached = float(min(time, most / rate))
    note = f"Trained up to time {reached:.3g} only and compared there: a check takes at most {most} steps."
    return Course(reached, rate * reached, (note,) if reached < time else ())
