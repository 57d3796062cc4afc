"""The library's slow and sure quadrature against closed forms, over all variances and correlations."""

import numpy as np
import pytest

from nearkernel.activations import get
from nearkernel.activations.averages.breaks import on_numpy, slope_of
from nearkernel.activations.averages.quadrature import pair_quadrature
from nearkernel.activations.averages.series import series
from nearkernel.theory import dual, moments
from support.references import gaussian_averages as reference

KINKED = ("relu", "leaky_relu(0.3)", "abs")
GAPS = np.array([0.0, 1e-12, 1.0, 2.0])


def largest_errors(name: str, q1: float, q2: float, gap: np.ndarray) -> tuple[float, float]:
    """Of values and of slopes, relative to sqrt(E11 E22)."""
    activation = get(name)
    panels = series(activation, name).panels(max(q1, q2))
    of_pairs = np.full(len(gap), q1), np.full(len(gap), q2), gap
    found = pair_quadrature(on_numpy(activation), on_numpy(slope_of(activation)), panels, *of_pairs)
    expected = dual(activation, *of_pairs[:2], gap=gap)
    single = moments(activation, [q1, q2])
    sizes = np.sqrt(single.value.prod()), np.sqrt(single.slope.prod())
    return tuple(np.abs((a - b) / size).max() for a, b, size in zip(found, expected, sizes, strict=True))


def grid(qs) -> list[tuple[str, float, float]]:
    """Waves are not resolved where the Gaussian holds thousands of them."""
    return [
        (name, q1, q2)
        for name in reference.CLOSED
        for q1 in qs
        for q2 in qs
        if q1 <= q2 and not (name in ("sin", "cos") and (q2 > 1e3 or (q2 == 1e3 and q1 < 1)))
    ]


@pytest.mark.parametrize("name, q1, q2", [row for row in grid([1e-6, 1e6]) if row[1:] != (1e-6, 1e-6)])
def test_closed_forms_equal_quadrature_at_the_ends(name, q1, q2):
    value, slope = largest_errors(name, q1, q2, GAPS)
    assert value < 1e-11
    assert slope < (1e-6 if name in KINKED else 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name, q1, q2", grid([1e-6, 1e-3, 1.0, 1e3, 1e6]))
def test_closed_forms_equal_quadrature_everywhere(name, q1, q2):
    value, slope = largest_errors(
        name, q1, q2, np.array([0.0, 1e-12, 1e-6, 1e-3, 0.3, 1.0, 1.7, 2 - 1e-9, 2.0])
    )
    assert value < 1e-11
    assert slope < (1e-6 if name in KINKED else 1e-10)
