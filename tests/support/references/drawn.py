"""Random networks written out in NumPy, for tests: the same that claims draw."""

import numpy as np

from nearkernel.claims._drawn import Drawn as Drawn


def controlled(kernel: np.ndarray, diagonal: np.ndarray, a: int, b: int) -> tuple[float, float]:
    """Mean and standard error of kernel[:, a, b] over draws, given the exact means on the diagonal.

    Both diagonal entries are regressed out: narrow networks differ mostly by a factor common to all entries.
    """
    own = np.column_stack([kernel[:, a, a], kernel[:, b, b]]) - diagonal[[a, b]]
    slopes = np.linalg.lstsq(own - own.mean(axis=0), kernel[:, a, b] - kernel[:, a, b].mean(), rcond=None)[0]
    draws = kernel[:, a, b] - own @ slopes
    return float(draws.mean()), float(draws.std() / np.sqrt(len(draws)))
