"""Model files written by earlier releases: every one is read, holds the same arrays, and predicts the same."""

import csv
import hashlib
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import nearkernel as nk
from nearkernel._saved.file import model_bytes
from nearkernel._saved.names import _IN_0_2, _places, class_of, field_of, tag_of
from support.commands import nearkernel

FOLDER = Path(__file__).parents[1] / "golden" / "models_0_2"
FILES = sorted(FOLDER.glob("*.nk"))
PREDICTIONS = np.load(FOLDER / "predictions.npz")


def contents(data):
    """The document of a model file, and the arrays as written."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        document = json.loads(archive.read("model.json"))
        return document, {name: archive.read(name) for name in document["arrays"]}


def renamed(node):
    """A tree of 0.2 with tags for paths, and the attributes of today."""
    if isinstance(node, list):
        return [renamed(each) for each in node]
    if not isinstance(node, dict):
        return node
    if "state" in node:
        node = node | {"state": [[field_of(key), each] for key, each in node["state"]]}
    return {
        key: tag_of(class_of(each)) if key in ("object", "named", "enum") else renamed(each)
        for key, each in node.items()
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_of_0_2_is_read_to_the_last_bit(file):
    old, arrays = contents(file.read_bytes())
    again, now = contents(model_bytes(nk.load(file)))
    assert old["version"] == 1 and again["version"] == 2
    assert again["model"] == renamed(old["model"])
    assert now == arrays
    assert all(hashlib.sha256(data).hexdigest() == old["arrays"][name] for name, data in arrays.items())


@pytest.mark.filterwarnings("ignore:.*the correction is too large")  # of a small network
@pytest.mark.parametrize("name", [name for name in PREDICTIONS.files if name not in ("x_new", "command")])
def test_a_model_of_0_2_predicts_the_same(name):
    model = nk.load(FOLDER / f"{name}.nk")
    method = next(each for each in ("predict_proba", "decision_function", "predict") if hasattr(model, each))
    np.testing.assert_allclose(
        getattr(model, method)(PREDICTIONS["x_new"]), PREDICTIONS[name], rtol=1e-7, atol=1e-9
    )


def test_a_model_of_the_command_is_applied_as_before(tmp_path):
    """Its formats of columns were not kept, which a note says; `command.csv` is what it was trained on."""
    result = nearkernel("apply", FOLDER / "command.nk", FOLDER / "command.csv", "--out", tmp_path / "new.csv")
    assert "fit and save the model again" in result.output
    with open(tmp_path / "new.csv") as file:
        prices = [float(row["price"]) for row in csv.DictReader(file)]
    np.testing.assert_allclose(prices, PREDICTIONS["command"], rtol=1e-6)


def test_every_name_leads_to_its_class():
    """Each path of 0.2 and each tag; a tag leads to one class, and that class to its tag."""
    for text, (module, name) in _places().items():
        cls = class_of(text)
        assert (cls.__module__, cls.__qualname__) == (module, name)
        assert class_of(tag_of(cls)) is cls
    assert {f"nearkernel.{old}:{name}" for old, names in _IN_0_2.items() for name in names.split()} < set(
        _places()
    )
