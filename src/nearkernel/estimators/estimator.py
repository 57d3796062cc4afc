"""What every estimator of the library can do besides scikit-learn's contract."""

import os

from sklearn.base import BaseEstimator

from .._saved.verbs import save


class Estimator(BaseEstimator):
    """An estimator that can save itself."""

    def save(self, path: str | os.PathLike) -> None:
        """Write the fitted model to the file `path`, which `nk.load` reads: JSON and arrays, no code."""
        save(self, path)
