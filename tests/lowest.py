"""The lowest versions that pyproject.toml allows, installed into an environment of their own and tried there.

    make test-lowest        # or: python tests/lowest.py [pytest's arguments]

Direct dependencies have exactly the version of their lower bound; what those need in turn is the newest that fits.
"""

import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = ROOT / ".cache/lowest"
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
EXTRAS = ("plot", "cli", "lab", "scale", "optax")  # PyTorch has one version here: it fills a disk
TESTS = (
    "tests/test_extras.py",
    "tests/test_status.py",
    "tests/test_table.py",
    "tests/test_saved.py",
    "tests/scale/test_store.py",
    "tests/dynamics/test_solve.py",
    "tests/statistics/test_forecast.py",
)


def lowest(requirement: str) -> str:
    """`name==bound` of `name>=bound`."""
    found = re.fullmatch(r"([\w\[\]-]+)>=([\d.]+)", requirement)
    assert found, f"{requirement!r} has no lower bound of the form name>=version"
    return f"{found[1]}=={found[2]}"


def requirements() -> list[str]:
    """Every direct dependency of the core and of the extras, at its lower bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = [
        *project["dependencies"],
        *(each for name in EXTRAS for each in project["optional-dependencies"][name]),
    ]
    return [lowest(each) for each in listed if not each.startswith("nearkernel[")]


def main(arguments: list[str]) -> int:
    python = PLACE / "bin/python"
    wanted = "\n".join([*requirements(), "pytest", "hypothesis", "mpmath"])
    made = PLACE / "requirements.txt"
    if not made.exists() or made.read_text() != wanted:
        venv.create(PLACE, clear=True, with_pip=True)
        aside = PLACE / "wanted.txt"
        aside.write_text(wanted)
        subprocess.run([python, *PIP, "-r", aside], check=True)
        subprocess.run([python, *PIP, "--no-deps", "-e", ROOT], check=True)
        aside.rename(made)
    return subprocess.run([python, "-m", "pytest", "-q", *(arguments or TESTS)], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
