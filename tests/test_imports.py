"""Imports go only downward, as ARCHITECTURE.md says: a room imports lower rooms and the base, never a command."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src/nearkernel"
FLOORS = [  # from the lowest; `_plots` knows records only by their fields
    "_look",
    "_plots",
    "activations",
    "models",
    "layers",
    "kernels",
    "scale",
    "dynamics",
    "_saved",
    "statistics",
    "geometry",
    "examples",
    "estimators",
    "claims",
]
COMMANDS = {path.parent.name for path in SOURCE.glob("_*/app.py")} | {"lab"}
OF_COMMANDS = {"cli", "__main__", "_options", "_terminal", "_completion"}  # files that only commands import
LISTS = {"__init__", "_api"}
BASE = {path.stem for path in SOURCE.glob("_*.py")} - OF_COMMANDS - LISTS


def imports(path: Path) -> Iterator[str]:
    """What a file of the package imports from it: rooms, files of the base, or "nearkernel" for all of them."""
    package = path.relative_to(SOURCE).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ("nearkernel" for each in node.names if each.name.split(".")[0] == "nearkernel")
        elif isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".")
            if node.level:
                parts = [*package[: len(package) + 1 - node.level], *filter(None, parts)]
            elif parts.pop(0) != "nearkernel":
                continue
            yield from [parts[0]] if parts else [each.name for each in node.names]


def test_all_of_the_package_has_its_place():
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    strange = folders ^ {*FLOORS, *COMMANDS}
    assert not strange, f"name {sorted(strange)} in FLOORS of tests/test_imports.py and in ARCHITECTURE.md"
    assert not set(FLOORS) & COMMANDS


@pytest.mark.parametrize("room", FLOORS)
def test_a_room_imports_only_what_is_below(room):
    below = BASE | set(FLOORS[: FLOORS.index(room)]) | {room, "__version__"}
    if room == "claims":
        below.add("nearkernel")  # as a user would
    elif room not in ("_look", "_plots"):
        below.discard("_look")
    for path in (SOURCE / room).rglob("*.py"):
        above = set(imports(path)) - below
        assert not above, f"{path.relative_to(SOURCE)} imports {sorted(above)}, which is not below it"


@pytest.mark.parametrize("name", sorted(BASE | OF_COMMANDS - {"cli", "__main__"}))
def test_the_base_imports_no_room(name):
    allowed = BASE | OF_COMMANDS | {"__version__"} if name in OF_COMMANDS else BASE | {"__version__"}
    assert set(imports(SOURCE / f"{name}.py")) <= allowed


def test_imports_of_a_file_are_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    (tmp_path / "room/inner").mkdir(parents=True)
    path = tmp_path / "room/inner/file.py"
    path.write_text(
        "import numpy, nearkernel as nk\nfrom ... import _check\nfrom .. import x\nfrom . import y\n"
        "def f():\n    from ...other._one import z\n    from nearkernel.third import w\n    import scipy.linalg\n"
    )
    assert sorted(imports(path)) == ["_check", "nearkernel", "other", "room", "room", "third"]
