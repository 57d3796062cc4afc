"""Lint, types and tests of one room and of the laws that name it: `make test-room ROOM=forecasts`."""

import functools
import importlib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
TESTS, SOURCE = ROOT / "tests", ROOT / "src/nearkernel"
# Folders of tests whose source has other names.
ELSEWHERE = {
    "base": ("_base", "_run", "_look", "_plots"),
    "commands": ("_commands", "cli.py", "__main__.py"),
    "models": ("models", "layers.py"),
    "saved": ("_saved",),
}


def rooms() -> list[str]:
    """Folders of tests that have source of their own."""
    return sorted(path.name for path in TESTS.iterdir() if path.is_dir() and sources(path.name))


def sources(room: str) -> list[Path]:
    paths = [SOURCE / name for name in ELSEWHERE.get(room, (room,))]
    return [path for path in paths if path.exists()]


def laws(room: str) -> list[Path]:
    """Files of laws that name the room, or something that it defines."""
    found = []
    for path in sorted((TESTS / "laws").glob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        names = re.findall(r"\bnk\.([a-z]\w*\.\w+|\w+)", text)
        if re.search(rf"\b{room}\b", text) or any(home(name) == room for name in names):
            found.append(path)
    return found


@functools.cache
def home(name: str) -> str:
    """The room whose file defines `nk.name`, "" where that is none."""
    found = importlib.import_module("nearkernel")
    for part in name.split("."):
        found = getattr(found, part, None)
    module = getattr(found, "__module__", None) or getattr(found, "__name__", "")
    return module.partition("nearkernel.")[2].partition(".")[0]


def main(room: str = "", *options: str) -> int:
    if room not in rooms():
        sys.exit(f"ROOM={room}: give one of {', '.join(rooms())}.")
    tests = [TESTS / room, *laws(room)]
    commands = [
        ["ruff", "check", *sources(room), *tests],
        ["ruff", "format", "--check", *sources(room), *tests],
        ["mypy", *sources(room)],
        ["pytest", "-q", *options, *tests],
    ]
    codes = [subprocess.run([sys.executable, "-m", *each], cwd=ROOT).returncode for each in commands]
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
