"""Imports go only downward, as ARCHITECTURE.md says: a room imports lower rooms and the base, never a command."""

import ast
import graphlib
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import nearkernel as nk

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/nearkernel"
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
    "forecasts",
    "geometry",
    "theory",
    "results",
    "examples",
    "estimators",
    "claims",
]
BASE = {"_base", "_run"}
EDGES = {"_commands", "lab", "cli", "__main__"}
MOST_FILES = 16


def imports(path: Path) -> Iterator[str]:
    """Dotted paths, within the package, of everything a file imports from it; "" for all of it."""
    package = path.relative_to(SOURCE).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ("" for each in node.names if each.name.split(".")[0] == "nearkernel")
        elif isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".")
            if node.level:
                parts = [*package[: len(package) + 1 - node.level], *filter(None, parts)]
            elif parts.pop(0) != "nearkernel":
                continue
            for each in node.names:
                if each.name == "__version__":
                    yield "__version__"
                    continue
                whole = SOURCE.joinpath(*parts, each.name)
                yield ".".join(
                    [*parts, each.name] if whole.is_dir() or whole.with_suffix(".py").is_file() else parts
                )


def files(room: str) -> list[Path]:
    """All files of a room, which is a folder or one file."""
    return sorted((SOURCE / room).rglob("*.py")) or [SOURCE / f"{room}.py"]


def folders() -> list[Path]:
    """All folders of Python files of the package and of its tests."""
    roots = (SOURCE, ROOT / "tests")
    return sorted({path.parent for root in roots for path in root.rglob("*.py")})


def test_all_of_the_package_has_its_place():
    there = {path.name.removesuffix(".py") for path in SOURCE.iterdir() if path.suffix in ("", ".py")}
    strange = (there - {"__init__", "__pycache__"}) ^ {*FLOORS, *BASE, *EDGES}
    assert not strange, f"name {sorted(strange)} in tests/project/test_imports.py and in ARCHITECTURE.md"


@pytest.mark.parametrize("room", FLOORS)
def test_a_room_imports_only_what_is_below(room):
    below = BASE | set(FLOORS[: FLOORS.index(room)]) | {room, "__version__"}
    if room == "claims":
        below.add("")  # as a user would
    elif room not in ("_look", "_plots"):
        below.discard("_look")
    for path in files(room):
        above = {name.partition(".")[0] for name in imports(path)} - below
        assert not above, f"{path.relative_to(SOURCE)} imports {sorted(above)}, which is not below it"


@pytest.mark.parametrize("room", sorted(BASE))
def test_the_base_imports_no_room(room):
    for path in files(room):
        above = {name.partition(".")[0] for name in imports(path)} - BASE - {"", "__version__"}
        assert not above, f"{path.relative_to(SOURCE)} imports {sorted(above)}"


def test_folders_do_not_import_each_other_in_circles():
    graph: dict[str, set[str]] = {}
    for path in [path for room in FLOORS for path in files(room)]:
        own = ".".join(path.relative_to(SOURCE).parent.parts)
        for name in imports(path):
            other = name if SOURCE.joinpath(*name.split(".")).is_dir() else name.rpartition(".")[0]
            # A room's list names what its folders hold, and folders use what stands directly in their room.
            if other and not f"{own}.".startswith(f"{other}.") and not f"{other}.".startswith(f"{own}."):
                graph.setdefault(own, set()).add(other)
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize("folder", folders(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_folder_holds_few_files(folder):
    held = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
    assert len(held) <= MOST_FILES, (
        f"{folder.relative_to(ROOT)} holds {len(held)} files: make folders of them"
    )


def test_no_public_name_is_hidden_by_a_module():
    """Importing `room.name` as a module would put it in place of what the room offers under that name."""
    hidden = []
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if len(parts) == 2 and parts[0] in FLOORS and not parts[0].startswith("_") and parts[1] != "__init__":
            room = importlib.import_module(f"nearkernel.{parts[0]}")
            hidden += [".".join(parts)] * (parts[1] in dir(room))
    hidden += [name for name in dir(nk) if (SOURCE / name).exists() and name not in FLOORS]
    assert not hidden


def test_imports_of_a_file_are_found(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    (tmp_path / "room/inner").mkdir(parents=True)
    (tmp_path / "_base").mkdir()
    (tmp_path / "_base/check.py").touch()
    path = tmp_path / "room/inner/file.py"
    path.write_text(
        "import numpy, nearkernel as nk\nfrom ..._base import check\nfrom .. import x\nfrom . import y\n"
        "def f():\n    from ...other.one import z\n    from nearkernel.third import w\n    import scipy.linalg\n"
    )
    assert sorted(imports(path)) == ["", "_base.check", "other.one", "room", "room.inner", "third"]
