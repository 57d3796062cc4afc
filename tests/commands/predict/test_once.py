"""No kernel matrix of a prediction is computed twice."""

import hashlib
from collections import Counter

import numpy as np
import pytest

from nearkernel._commands.predict import shared
from nearkernel.estimators.auto import members as _members
from support.commands import nearkernel

pytestmark = pytest.mark.usefixtures("inside_an_empty_folder")


def digest(rows):
    return None if rows is None else hashlib.sha256(np.ascontiguousarray(rows)).hexdigest()


@pytest.fixture
def built(monkeypatch):
    """Counts what is computed between which rows."""
    found = Counter()

    def counted(module, name, rows):
        made = getattr(module, name)

        def count(*args):
            found[(name, *(digest(each) for each in args[rows]))] += 1
            return made(*args)

        monkeypatch.setattr(module, name, count)

    counted(shared, "both_kernels", slice(1, 3))
    counted(_members, "relu_kernels", slice(0, 2))
    counted(_members, "cdist", slice(0, 2))
    counted(_members, "squareform", slice(0, 1))
    return found


@pytest.mark.parametrize("labels", (False, True))
def test_every_kernel_matrix_is_computed_once(built, labels):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(75, 3))
    y = x[:, 0] * x[:, 1] + 0.1 * rng.normal(size=75)
    np.savez("data.npz", x=x, y=y > 0 if labels else y)
    nearkernel("predict", "data.npz", "--depth", 1, "--save", "model.nk")
    assert max(built.values()) == 1
    wide = [key for key in built if key[0] == "both_kernels"]
    assert (
        len(wide) == 2
    )  # training rows with themselves, and test rows with them: all that NNGP and NTK need
    # Both views of the training rows, and the learned metric of a regression; as many again of test rows, and where
    # these kernels are in the average, of all rows and, fold by fold, of those with a column shuffled.
    views = 2 if labels else 3
    assert views <= sum(key[0] == "relu_kernels" for key in built) <= (3 + 5) * views
    assert 2 <= sum(key[0] == "squareform" for key in built) <= 2 + 2
    before = sum(built.values())
    nearkernel("apply", "model.nk", "data.npz")
    assert max(built.values()) == 1 and sum(built.values()) - before <= 2 + views
