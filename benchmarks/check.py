"""Which speeds fell: quick runs of the benchmarks, their ratios beside the committed ones.

    make benchmark-check                                    # or:
    .venv/bin/python benchmarks/check.py [NAME ...]

A ratio compares CPU seconds of a rival with ours in one run, so that machines hardly matter. What fell by more than
a quarter is measured once more, then printed; the exit code is 1 if any did. Ratios of a quick run are committed with
`python benchmarks/NAME.py --quick --write`; those that were made while other programs ran are named.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from _record import RESULTS, Change, Ratio, changes, committed, load, was_shared

HERE = Path(__file__).parent


def names() -> list[str]:
    """The scripts whose quick runs are committed."""
    return sorted(path.name.removesuffix(".quick.json") for path in RESULTS.glob("*.quick.json"))


def measured(name: str) -> tuple[Ratio, ...]:
    """A quick run in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratios.json"
        command = [sys.executable, str(HERE / f"{name}.py"), "--quick", "--json", str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"error: benchmarks/{name}.py --quick failed:\n{done.stderr[-2000:]}")
        return load(path)


def refresh(name: str) -> str:
    return f"python benchmarks/{name}.py --quick --write"


def best(first: tuple[Ratio, ...], second: tuple[Ratio, ...]) -> tuple[Ratio, ...]:
    """The better of two runs, comparison by comparison: other programs only make us slower or the rival."""
    again = {each.name: each for each in second}
    return tuple(max(each, again.get(each.name, each), key=lambda ratio: ratio.ratio) for each in first)


def compared(name: str) -> list[Change]:
    before, now = load(committed(name, quick=True)), measured(name)
    if any(change.fell for change in changes(before, now)):
        now = best(now, measured(name))
    return changes(before, now)


def main(typed: list[str]) -> int:
    if not names():
        sys.exit(
            f"error: no quick run is committed; make one, e.g. with `{refresh('solve')}`, and commit results/."
        )
    unknown = [name for name in typed if name not in names()]
    if unknown:
        sys.exit(f"error: {unknown[0]} has no committed quick run; choose of {', '.join(names())}.")
    fell = 0
    for name in typed or names():
        found = compared(name)
        bad = [change for change in found if change.fell or change.now is None]
        fell += sum(change.fell for change in found)
        print(
            f"{name}: {len(found)} ratios, {sum(change.fell for change in found)} fell by more than a quarter"
        )
        for change in bad:
            print(f"  {change}", flush=True)
        if was_shared(committed(name, quick=True)):
            print(f"  note: committed from a busy machine; refresh with `{refresh(name)}` on a quiet one.")
    return int(fell > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
