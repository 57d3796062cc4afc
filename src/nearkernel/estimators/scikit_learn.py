"""Imports the parts of scikit-learn that draw from Python's global generator meanwhile, and puts it back."""

from .._run.random_state import random_state_kept

with random_state_kept():
    import sklearn.model_selection  # noqa: F401  its progress bars are numbered at random
