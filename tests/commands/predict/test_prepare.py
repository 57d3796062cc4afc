"""Splitting and standardising."""

import numpy as np
import pytest

from nearkernel._commands.predict.reading.data import LabeledData, load
from nearkernel._commands.predict.reading.prepare import shuffled, split


def table(rows=50, **changes):
    rng = np.random.default_rng(0)
    x = rng.normal(3, [1, 10, 100], size=(rows, 3))
    fields = dict(name="table", x=x, y=x[:, 0] * 5 + 7, features=("a", "b", "c"), target="y")
    return LabeledData(**{**fields, **changes})


def test_rows_are_split_once_and_reproducibly():
    data = table()
    parts = split(data, 0.2, 1000, seed=0)
    assert len(parts.x) == 40 and len(parts.x_new) == len(parts.truth) == 10
    np.testing.assert_array_equal(parts.truth, data.y[parts.rows])
    np.testing.assert_array_equal(parts.rows, split(data, 0.2, 1000, seed=0).rows)
    assert not np.array_equal(parts.rows, split(data, 0.2, 1000, seed=1).rows)


def test_training_inputs_and_targets_are_standardized_and_can_be_undone():
    data = table()
    parts = split(data, 0.2, 1000, seed=0)
    np.testing.assert_allclose(parts.x.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(parts.x.std(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(np.mean(parts.y**2), 1, rtol=1e-12)
    train = np.setdiff1d(np.arange(50), parts.rows)
    np.testing.assert_allclose(parts.mean_in_target_units(parts.y)[:, 0], data.y[train], rtol=1e-12)


def test_classes_are_one_hot_centered_and_keep_their_shares():
    data = load("iris")
    parts = split(data, 0.2, 1000, seed=3)
    assert np.bincount(parts.truth).tolist() == [10, 10, 10]
    np.testing.assert_allclose(parts.y.mean(axis=0), 0, atol=1e-12)
    one_hot = parts.mean_in_target_units(parts.y)
    np.testing.assert_allclose(one_hot.sum(axis=1), 1, rtol=1e-12)


def test_pixels_share_one_scale():
    parts = split(load("digits"), 0.2, 5000, seed=0)
    assert parts.x.std() == pytest.approx(1, rel=1e-3)
    assert parts.x.std(axis=0).min() == 0 and "one standard deviation for all" in parts.input_scaling


def test_a_large_table_is_cut_and_says_so():
    parts = split(table(1000), 0.2, 80, seed=0)
    assert (len(parts.x), len(parts.x_new)) == (80, 20)
    assert parts.notes == ("kept 80 training and 20 test rows of 1000 (--max-train)",)


def test_constant_features_are_harmless_and_said():
    data = table()
    data.x[:, 1] = 0.1  # not exact in binary, so that its computed spread is not exactly 0
    parts = split(data, 0.2, 1000, seed=0)
    np.testing.assert_allclose(parts.x_new[:, 1], 0, atol=1e-12)
    assert parts.notes == ("1 of 3 features are constant in the training rows",)


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match=r"--test-fraction 0.99 leaves 0 training and 50 test rows of 50"):
        split(table(), 0.99, 1000, seed=0)
    with pytest.raises(ValueError, match=r"--test-fraction 0.01 leaves 50 training and 0 test rows"):
        split(table(), 0.01, 1000, seed=0)
    with pytest.raises(ValueError, match=r"--max-train 2 leaves 2 training and 0 test rows of 50"):
        split(table(), 0.2, 2, seed=0)
    x = np.zeros((50, 1))
    x[split(table(), 0.2, 1000, seed=0).rows[0]] = 1
    with pytest.raises(ValueError, match="every feature is constant in the 40 training rows"):
        split(table(x=x, features=("a",)), 0.2, 1000, seed=0)
    with pytest.raises(ValueError, match="target 'y' is the same in all 40 training rows"):
        split(table(y=x[:, 0]), 0.2, 1000, seed=0)


def test_values_whose_squares_leave_the_numbers_are_refused():
    with pytest.raises(
        ValueError, match=r"feature 'a' varies by \S+, too far from 1 for its square: rescale it"
    ):
        split(table(x=table().x * 1e200), 0.2, 1000, seed=0)
    with pytest.raises(ValueError, match=r"feature 'a' varies by \S+, too far"):
        split(table(x=table().x * 1e-200), 0.2, 1000, seed=0)
    with pytest.raises(ValueError, match=r"target 'y' varies by \S+, too far"):
        split(table(y=table().y * 1e290), 0.2, 1000, seed=0)


def test_columns_are_prepared_on_the_training_rows_alone(tmp_path):
    rows = [f"{'' if i % 5 == 0 else i * i % 17},{'ab'[i % 2]},{i % 3}.5" for i in range(40)]
    path = tmp_path / "table.csv"
    path.write_text("a,k,y\n" + "\n".join(rows))
    data = load(str(path), "y")
    parts = split(data, 0.25, 1000, 0)
    assert parts.preparation is not None and len(parts.trained) == 30
    known = data.frame["a"].values[parts.trained]
    assert parts.preparation.columns_[0].fill == np.median(known[~np.isnan(known)])
    assert parts.x.shape[1] == len(parts.preparation.get_feature_names_out())
    np.testing.assert_allclose(parts.x.mean(axis=0), 0.0, atol=1e-12)
    last = [f"{int(i == 39)},{i % 3}.5" for i in range(40)]
    path.write_text("a,y\n" + "\n".join(last))
    late = load(str(path), "y")
    for seed in range(20):  # until the only other value is in the test rows
        train = shuffled(late, 40, 10, seed)[0]
        if 39 not in train:
            break
    with pytest.raises(ValueError, match="every feature is constant in the 30 training rows; use more rows"):
        split(late, 0.25, 1000, seed)
