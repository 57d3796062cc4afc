"""Every experiment answers at the ends of its ranges, and its program draws what its page shows."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest

from nearkernel.lab import NAMES, Cells, Curve, Heat, Picture, Watch, find
from nearkernel.lab.describe import about, typeset
from nearkernel.lab.experiment import Stopped
from nearkernel.lab.picture import plain

# Other settings than the defaults, small where a check trains.
OTHERS = {
    "regression": {"time": 2.0, "width": 16, "depth": 1, "points": "-1,0.5;0.2,-0.3;1,0.4"},
    "criticality": {"weight_var": 1.3, "bias_var": 0.1},
    "catapult": {"ratio": 1.3, "width": 60, "steps": 12},
    "quadratic": {},
    "circle": {"time": 0.3, "depth": 1, "points": 3, "activation": "erf", "width": 16, "networks": 10},
    "regions": {"width": 5, "seed": 3},
    "bias": {"alpha": 0.3},
    "deep-linear": {"depth": 2, "points": 6},
    "lazy-rich": {"richness": 0.5, "step": 42, "activation": "gelu", "width": 32},
    "finite-width": {"width": 16, "place": 0.4, "steps": 20, "networks": 500},
    "learning-curve": {"data": "wave", "ridge": 1.0, "depth": 1},
    "images": {"shift": 1, "ridge": 0.1},
    "own-data": {
        "rows": "a,b,c\n0,1,2\n1,0,1\n2,2,0\n3,1,1\n4,5,2\n5,2,0",
        "column": 2,
        "ridge": 0.5,
        "depth": 1,
    },
}
# Programs that compile for long.
HEAVY = {"regression", "criticality", "circle", "quadratic", "lazy-rich", "finite-width", "images"}


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def drawn(program: str):
    """The axes that a program makes, in order."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*non-interactive.*")
        warnings.filterwarnings("ignore", message="the correction is .* of the infinite-width result")
        warnings.filterwarnings(
            "ignore", message=".*correction is not small.*"
        )  # shown as a number on the page
        exec(compile(program, "program", "exec"), {"__name__": "program"})
    return [axes for axes in plt.gcf().axes if axes.get_label() != "<colorbar>"]


def same(picture: Picture, axes) -> None:
    taken: dict[str, int] = {}
    for part in picture.parts:
        match part:
            case Curve():
                compare_curve(part, axes, taken)
            case Heat():
                meshes = [item for item in axes.collections if item.get_array() is not None]
                shown = (meshes or axes.images)[0].get_array()
                np.testing.assert_allclose(np.ravel(shown), np.ravel(part.z), rtol=1e-6, atol=1e-9)
            case Cells():
                cells = next(item for item in axes.collections if len(item.get_paths()) == len(part.polygons))
                np.testing.assert_allclose(cells.get_array(), part.values, rtol=1e-6, atol=1e-9)


def compare_curve(part: Curve, axes, taken: dict[str, int]) -> None:
    """A line, or the points or bars of a container, with the name of the curve; the next one of that name."""
    x, y = np.asarray(part.x, float), np.asarray(part.y, float)
    lines = [line for line in axes.lines if line.get_label() == part.name]
    which = taken[part.name] = taken.get(part.name, -1) + 1
    if len(lines) > which:
        found = np.asarray(lines[which].get_xdata(), float), np.asarray(lines[which].get_ydata(), float)
    else:
        container = next(each for each in axes.containers if each.get_label() == part.name)
        if part.kind == "bars":
            found = x, np.array([bar.get_height() for bar in container])
        else:
            found = container[0].get_data()
    known = np.isfinite(y)  # the page leaves out what no axis can show
    assert len(found[0]) == len(x), part.name
    np.testing.assert_allclose(np.asarray(found[0], float)[known], x[known], rtol=1e-6, err_msg=part.name)
    np.testing.assert_allclose(
        np.asarray(found[1], float)[known], y[known], rtol=1e-6, atol=1e-9, err_msg=part.name
    )


def weighed(names, heavy):
    return [pytest.param(name, marks=[pytest.mark.slow] if name in heavy else []) for name in names]


@pytest.mark.parametrize("name", weighed(NAMES, HEAVY))
@pytest.mark.parametrize("other", [False, True])
def test_the_program_draws_what_the_page_shows(name, other):
    chosen = find(name).with_settings(OTHERS[name] if other else {})
    answer = chosen.theory()
    axes = drawn(chosen.python())
    assert len(axes) == len(answer.pictures)
    for picture, there in zip(answer.pictures, axes, strict=True):
        same(picture, there)


@pytest.mark.parametrize("name", weighed(NAMES, {*NAMES} - {"deep-linear"}))
def test_the_program_of_a_check_draws_what_the_check_shows(name):
    chosen = find(name).with_settings(OTHERS[name])
    if not chosen.button:
        pytest.skip("nothing to run")
    told = []
    answer = chosen.check(Watch(lambda share, words, shown: told.append((share, words))))
    shares = [share for share, _ in told]
    assert shares == sorted(shares) and 0 <= shares[0] and shares[-1] <= 1
    for picture, there in zip(answer.pictures, drawn(chosen.python(checked=True)), strict=True):
        same(picture, there)


# Regions and deep-linear have quicker tests of their ends in files of their own.
@pytest.mark.parametrize(
    "name", weighed([n for n in NAMES if n not in HEAVY], {"regions", "deep-linear", "learning-curve"})
)
def test_every_end_of_every_range_has_an_answer(name):
    experiment = find(name)
    for each in experiment.settings():
        if each.kind is str and not each.choices:
            continue
        ends = (each.low, each.high if each.name != "column" else 1)  # more than the rows have is refused
        for value in each.choices or (ends if each.kind is not tuple else ("0,0",)):
            answer = experiment.with_settings({each.name: value}).theory()
            assert answer.pictures and plain(answer)
            for picture in answer.pictures:
                assert picture.csv().count("\n") > 1, (each.name, value)


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_describes_itself(name):
    described = about(find(name))
    assert described["title"] and len(described["about"]) > 80 and described["controls"]
    assert 3 <= len(described["presets"]) <= 5 and described["movie"] in find(name)().values()
    for preset in described["presets"]:
        assert preset["settings"] and find(name).with_settings(preset["settings"]) != find(name)()
        assert 20 < len(preset["see"]) < 120 and len(preset["title"]) < 30
    for formula in find(name).formulas:
        assert "\\" not in typeset(formula), formula  # a command that the converter does not know


def test_a_stopped_check_ends_at_once():
    watch = Watch()
    watch.stop()
    with pytest.raises(Stopped):
        find("catapult")(steps=12, width=60).check(watch)


def test_csv_has_every_part_of_a_picture():
    picture = Picture(
        "p",
        (
            Curve("a", [0.0, 1.0], [2.0, 3.0], band=([1.0, 2.0], [3.0, 4.0]), sem=[0.1, 0.2]),
            Heat("h", [0.0], [1.0, 2.0], [[5.0], [6.0]]),
            Cells("c", (np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]),), np.array([7.0])),
        ),
    )
    assert picture.csv().splitlines() == [
        '"x","a","a, lower","a, upper","a, standard error"', "0,2,1,3,0.1", "1,3,2,4,0.2", "",
        '"x","y","h"', "0,1,5", "0,2,6", "",
        '"polygon","x","y","c"', "0,0,0,7", "0,1,0,7", "0,0,1,7",
    ]  # fmt: skip
