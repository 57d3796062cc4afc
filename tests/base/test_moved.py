"""Old names work for one release, and say what they are called now."""

import numpy as np
import pytest

import nearkernel as nk
from nearkernel._base.rooms import renamed

OLD = {
    "phase": (nk, nk.theory.learning_rate_phase),
    "sawtooth": (nk.geometry, nk.theory.sawtooth),
    "zaslavsky": (nk.geometry, nk.theory.zaslavsky),
    "lipschitz_code": (nk.geometry, nk.theory.lipschitz_code),
    "lipschitz_decode": (nk.geometry, nk.theory.lipschitz_decode),
    "walk_density": (nk.dynamics, nk.theory.walk_density),
    "Scaled": (nk.kernels, nk.results.Multiple),
    "Critical": (nk.statistics, nk.results.CriticalResult),
    "Forecast": (nk.statistics, nk.results.WideForecast),
    "Regions": (nk.geometry, nk.results.RegionsResult),
    "MaxMargin": (nk.dynamics, nk.results.MaxMarginResult),
    "Positivity": (nk.kernels, nk.results.PositivityResult),
}


@pytest.mark.parametrize("name", OLD)
def test_old_names_lead_to_new_ones(name):
    room, new = OLD[name]
    with pytest.warns(DeprecationWarning, match=rf"nk[\w.]*\.{name} is now nk\.\w+"):
        assert getattr(room, name) is new
    assert name not in dir(room)


def test_names_that_never_were_are_refused():
    for room in (nk.geometry, nk.dynamics, nk.kernels):
        with pytest.raises(AttributeError, match="has no attribute 'sawteeth'"):
            _ = room.sawteeth


def test_old_arguments_are_taken():
    x, labels = np.array([[1.0, 0.0], [-1.0, 0.5]]), [1, -1]
    with pytest.warns(DeprecationWarning, match="`X` of max_margin is now `x`"):
        old = nk.theory.max_margin(X=x, labels=labels)
    assert old.margin == nk.theory.max_margin(x, labels).margin

    @renamed(a="b")
    def same(b):
        return b

    assert same(1) == same(b=1) == 1


def test_british_names_lead_to_american_ones():
    with pytest.warns(DeprecationWarning, match="`centred` of Scaled is now `centered`.*removed in 0.5"):
        model = nk.Scaled(nk.MLP(2), 2.0, centred=False)
    assert not model.centered
    with pytest.warns(DeprecationWarning, match="`centred` of Scaled is now `centered`"):
        assert not model.centred
    with pytest.warns(DeprecationWarning, match="`centres` of Nystrom is now `centers`"):
        solver = nk.dynamics.Nystrom(centres=2)
    solution = nk.solve(nk.kernels.RBF(), np.eye(3), np.ones(3), nk.Ridge(0.1), solver=solver)
    with pytest.warns(DeprecationWarning, match="`centres` of MachineSolution is now `centers`"):
        assert len(solution.centres) == 2


def test_no_two_public_names_differ_by_case_alone():
    rooms = (nk, nk.dynamics, nk.statistics, nk.geometry, nk.kernels, nk.scale, nk.models, nk.layers)
    for room in rooms:
        names = [name.lower().replace("_", "") for name in dir(room) if not name.startswith("_")]
        assert not {name for name in names if names.count(name) > 1} - KNOWN, room.__name__


KNOWN = {"mercer"}  # the kernel of features, and the features of a kernel
