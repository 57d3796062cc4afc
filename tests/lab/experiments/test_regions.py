"""The regions experiment against a network written out in NumPy, on dense grids."""

import numpy as np
import pytest

from nearkernel.lab import Watch, find
from nearkernel.lab.experiment import Stopped
from nearkernel.lab.experiments.regions import data, drawn
from support.answers import number, part

RegionsResult = find("regions")


def outputs_and_signs(chosen, params, x):
    """The network by hand: outputs (n,) and which neurons are on (n, neurons)."""
    signs, h = [], x
    for layer, entry in enumerate(params):
        z = h @ entry["weight"] * np.sqrt(2.0 / len(entry["weight"])) + chosen.bias_var**0.5 * entry["bias"]
        if layer < len(params) - 1:
            signs.append(z > 0)
        h = np.maximum(z, 0)
    return z[:, 0], np.concatenate(signs, axis=1)


def test_polygons_and_bends_are_those_of_the_network():
    chosen = RegionsResult(width=5, depth=2, window=1.5, direction=60.0, seed=4)
    answer, params = chosen.theory(), drawn(chosen._net, chosen.seed)
    cells = part(answer, 0, "output")
    middles = np.array([polygon.mean(axis=0) for polygon in cells.polygons])
    z, signs = outputs_and_signs(chosen, params, middles)
    np.testing.assert_allclose(cells.values, z, atol=1e-12)
    assert len(np.unique(signs, axis=0)) == len(cells.polygons) >= number(answer, "regions")
    x, y = np.meshgrid(*2 * [np.linspace(-1.5, 1.5, 301)])
    grid = outputs_and_signs(chosen, params, np.column_stack([x.ravel(), y.ravel()]))[1]
    seen, counts = np.unique(grid, axis=0, return_counts=True)
    known = {row.tobytes() for row in signs}
    assert all(row.tobytes() in known for row, count in zip(seen, counts, strict=True) if count > 2)

    line = part(answer, 1, "output")
    t = np.linspace(-1.5, 1.5, 997)
    dense = outputs_and_signs(chosen, params, t[:, None] * [[0.5, np.sqrt(0.75)]])[0]
    np.testing.assert_allclose(np.interp(t, line.x, line.y), dense, atol=1e-12)
    slopes = np.diff(line.y) / np.diff(line.x)
    assert len(slopes) == number(answer, "pieces on the line") and np.all(np.diff(slopes) != 0)


def test_one_layer_reaches_its_bound():
    answer = RegionsResult(width=6, depth=1, window=20.0, seed=2, color="region").theory()
    assert number(answer, "regions") <= number(answer, "one layer") == number(answer, "upper bound") == 22
    counts = [
        number(RegionsResult(width=6, depth=1, window=20.0, seed=seed).theory(), "regions")
        for seed in range(8)
    ]
    assert max(counts) == 22


def test_switches_are_those_of_many_networks():
    chosen = [RegionsResult(width=10, depth=2, direction=130.0, seed=seed) for seed in range(20)]
    curves = [
        [part(one.theory(), 2, name).y for name in ("this network", "infinitely wide")] for one in chosen
    ]
    found, expected = np.array(curves).swapaxes(0, 1)
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - expected[0]) < 4 * error + 0.1)  # a width of 10 is not infinite


def test_training_moves_regions_and_can_be_stopped():
    chosen, seen = RegionsResult(width=6, depth=1, steps=300, seed=1, color="slope"), []
    answer = chosen.check(Watch(lambda *event: seen.append(event)))
    shown = [event[2] for event in seen if event[2] is not None]
    losses, regions = part(answer, 4, "loss"), part(answer, 3, "regions")
    assert len(losses.y) == 101 and losses.x[-1] == regions.x[-1] == 300 and len(shown) == len(regions.y) - 1
    assert losses.y[-1] < 0.8 * losses.y[0] and regions.y[-1] == number(answer, "regions")
    x, y = data(chosen.task, chosen.seed)
    z, _ = outputs_and_signs(chosen, drawn(chosen._net, chosen.seed), x)
    np.testing.assert_allclose(losses.y[0], 0.5 * np.mean((z - y) ** 2))
    watch = Watch()
    watch.stop()
    with pytest.raises(Stopped):
        chosen.check(watch)


@pytest.mark.parametrize("color", ["output", "slope", "direction", "region"])
def test_the_ends_of_all_settings(color):
    answer = RegionsResult(width=1, depth=3, bias_var=0.0, window=20.0, direction=180.0, color=color).theory()
    assert all(np.isfinite(each.y).all() for picture in answer.pictures[1:] for each in picture.parts)
    assert np.isfinite(answer.pictures[0].parts[0].values).all()
