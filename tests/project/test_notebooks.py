"""The notebooks are those of their scripts, can be read without running them, and their cells run."""

import ast
import base64
import importlib.util
import json
from pathlib import Path

import pytest

from support.printed import same_text

FOLDER = Path(__file__).parents[2] / "docs/notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def load(name: str, path: Path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make = load("make_notebooks", FOLDER / "make.py")


def text_of(output: dict) -> str:
    return "".join(output["text"] if "text" in output else output["data"]["text/plain"])


def test_every_script_has_its_notebook_and_every_notebook_is_linked():
    assert [path.stem for path in NOTEBOOKS] == [path.stem for path in make.SCRIPTS], (
        "run docs/notebooks/make.py"
    )
    index = (FOLDER.parent / "index.md").read_text("utf-8")
    missing = [path.name for path in NOTEBOOKS if f"](notebooks/{path.name})" not in index]
    assert not missing, f"link {missing} in docs/index.md"


@each_notebook
def test_a_notebook_is_that_of_its_script_with_outputs(path):
    stored = json.loads(path.read_text("utf-8"))
    assert (stored["nbformat"], stored["nbformat_minor"]) == (4, 5) and path.stat().st_size < 400_000
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in stored["cells"]]
    assert cells == make.cells(path.with_suffix(".py").read_text("utf-8")), "run docs/notebooks/make.py"
    assert len({cell["id"] for cell in stored["cells"]}) == len(cells) and cells[0][1].startswith("# ")
    pictures = silent = 0
    for cell in stored["cells"]:
        if cell["cell_type"] == "markdown":
            assert "outputs" not in cell
            continue
        assert isinstance(ast.parse("".join(cell["source"])), ast.Module)
        for output in cell["outputs"]:
            assert output["output_type"] in ("stream", "display_data", "execute_result")
            if picture := output.get("data", {}).get("image/png"):
                assert base64.b64decode(picture).startswith(b"\x89PNG")
                pictures += 1
        silent += not cell["outputs"]
    assert pictures >= 2 and silent <= 2  # imports, data


def test_cells_of_a_script_and_what_they_show():
    parts = make.cells(
        '"""A script."""\n\n# %% [markdown]\n# # Title\n#\n# words\n\n# %%\nprint(1)\na = 2\na + 1\n\n# %%\na = 3\n'
    )
    assert parts == [("markdown", "# Title\n\nwords"), ("code", "print(1)\na = 2\na + 1"), ("code", "a = 3")]
    outputs = make.run([*parts, ("code", "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")])
    assert [text_of(each) for each in outputs[1]] == ["1\n", "3"] and not outputs[0] and not outputs[2]
    assert [sorted(each["data"]) for each in outputs[3]] == [["image/png", "text/plain"]]
    made = make.notebook([*parts, ("code", "1")], outputs)
    assert [cell.get("execution_count") for cell in made["cells"]] == [None, 1, 2, 3]


@pytest.mark.merge
@each_notebook
def test_cells_run_and_print_what_is_stored(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = json.loads(path.read_text("utf-8"))["cells"]
    found = make.run([(cell["cell_type"], "".join(cell["source"])) for cell in cells])
    for cell, outputs in zip(cells, found, strict=True):
        stored = cell.get("outputs", [])
        assert [each["output_type"] for each in outputs] == [each["output_type"] for each in stored], cell[
            "source"
        ]
        for one, other in zip(outputs, stored, strict=True):
            assert same_text(text_of(one), text_of(other)), f"{cell['source']} prints\n{text_of(one)}"
