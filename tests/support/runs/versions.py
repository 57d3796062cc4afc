"""The lowest or the newest versions that pyproject.toml allows, installed into a separate environment and tried there.

    make test-lowest        # or: python tests/support/runs/versions.py lowest [pytest's arguments]
    make test-newest

Lowest: direct dependencies have exactly the version of their lower bound; what those need in turn is the newest that
fits. Newest: whatever the package index has today, in an environment that is made anew each time.
"""

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[3]
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
EXTRAS = ("plot", "cli", "lab", "scale", "optax")  # PyTorch has one version here: it fills a disk
TESTS = (
    "tests/project/test_extras.py",
    "tests/public_calls/test_shapes.py",
    "tests/base/test_status.py",
    "tests/estimators/test_table.py",
    "tests/saved/test_saved.py",
    "tests/scale/test_store.py",
    "tests/dynamics/test_solve.py",
    "tests/forecasts/infinite_width/test_forecast.py",
)


def lowest(requirement: str) -> str:
    """`name==bound` of `name>=bound`."""
    found = re.fullmatch(r"([\w\[\]-]+)>=([\d.]+)", requirement)
    assert found, f"{requirement!r} has no lower bound of the form name>=version"
    return f"{found[1]}=={found[2]}"


def requirements(which: str) -> list[str]:
    """Every direct dependency of the core and of the extras, at its lower bound or as it is."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = [
        *project["dependencies"],
        *(each for name in EXTRAS for each in project["optional-dependencies"][name]),
    ]
    listed = [each for each in listed if not each.startswith("nearkernel[")]
    return [lowest(each) for each in listed] if which == "lowest" else listed


def environment(which: str) -> Path:
    """The Python of an environment with these versions; that of the lowest ones is kept."""
    place = ROOT / ".cache" / which
    python, made = place / "bin/python", place / "requirements.txt"
    wanted = "\n".join([*requirements(which), "pytest", "hypothesis", "mpmath"])
    if which == "newest" or not made.exists() or made.read_text() != wanted:
        venv.create(place, clear=True, with_pip=True)
        aside = place / "wanted.txt"
        aside.write_text(wanted)
        subprocess.run([python, *PIP, "-r", aside], check=True)
        subprocess.run([python, *PIP, "--no-deps", "-e", ROOT], check=True)
        aside.rename(made)
    return python


def main(arguments: list[str]) -> int:
    which, *rest = arguments or ["lowest"]
    if which not in ("lowest", "newest"):
        sys.exit(f"tests/support/runs/versions.py {which}: give lowest or newest.")
    return subprocess.run([environment(which), "-m", "pytest", "-q", *(rest or TESTS)], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
