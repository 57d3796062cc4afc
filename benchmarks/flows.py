"""How far a call runs through the source: files, changes of file, changes of room.

    .venv/bin/python benchmarks/flows.py [--source FOLDER/src] [--only e ...]

Each call is small and runs in its own process, so tracing by JAX, which runs the library's Python, is included. A hop
is a call or a return from one file of the library to another. Imports and the base (`_base/`, `_run/`) are left out.
`--source` is another tree of the library, such as an earlier one.
"""

import argparse
import collections
import contextlib
import inspect
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType

import numpy as np

HERE = Path(__file__).resolve()
_HEAD = ("call", "files", "hops", "room hops", "most hops between two files")


class Trace:
    """Counts the changes of file in all threads while it is entered."""

    def __init__(self, package: Path):
        self._package = str(package) + os.sep
        self._names: dict[CodeType, str | None] = {}
        self.files: set[str] = set()
        self.hops: collections.Counter[tuple[str, str]] = collections.Counter()

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        threading.setprofile(self._event)
        sys.setprofile(self._event)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def row(self) -> dict[str, object]:
        room = lambda name: name.partition("/")[0]
        pairs: collections.Counter[tuple[str, str]] = collections.Counter()
        for (one, other), count in self.hops.items():
            pairs[min(one, other), max(one, other)] += count
        (one, other), most = pairs.most_common(1)[0]
        between_rooms = sum(count for (one, other), count in self.hops.items() if room(one) != room(other))
        numbers = len(self.files), self.hops.total(), between_rooms
        return dict(zip(_HEAD[1:], (*numbers, f"{one} - {other}: {most:,}"), strict=True))

    def _event(self, frame: FrameType, event: str, _: object) -> None:
        if event not in ("call", "return"):
            return
        name = self._name(frame.f_code)
        caller = self._caller(frame) if name else None
        # A module or the body of a class runs when it is imported.
        if name is None or not _is_function(frame) or (caller and not _is_function(caller)):
            return
        self.files.add(name)
        before = self._name(caller.f_code) if caller else None
        if before and before != name:
            self.hops[(before, name) if event == "call" else (name, before)] += 1

    def _caller(self, frame: FrameType) -> FrameType | None:
        above = frame.f_back
        while above is not None and self._name(above.f_code) is None:
            above = above.f_back
        return above

    def _name(self, code: CodeType) -> str | None:
        """The file within the package, without suffix; None outside of it and for what every file uses."""
        if code not in self._names:
            inside = code.co_filename.startswith(self._package)
            name = code.co_filename.removeprefix(self._package).removesuffix(".py")
            # Before 0.3 the base, with what commands share, lay directly in the package.
            shared = name.startswith("_") and "/" not in name.removeprefix("_commands/")
            base = shared or name.startswith(("_base/", "_run/"))
            self._names[code] = name if inside and not base else None
        return self._names[code]


def _is_function(frame: FrameType) -> bool:
    return bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED)


def calls() -> dict[str, tuple[str, Callable[[], object]]]:
    """The calls by letter: what each does, and the work itself."""
    import nearkernel as nk

    random = np.random.default_rng(0)
    x, x_new = random.normal(size=(6, 3)), random.normal(size=(2, 3))
    y = np.sin(x.sum(axis=1))
    many = random.normal(size=(16, 3))
    flow = nk.GradientFlow()
    net = nk.MLP(3, (64, 64), activation="tanh")
    images = random.normal(size=(4, 8, 8, 1))

    def forecast(net: object, x: np.ndarray, theory: str, **order: object) -> object:
        named = {"theory": getattr(nk, theory)()} if hasattr(nk, theory) else order
        return nk.forecast(net, x, np.sin(x.sum(axis=1)), flow, x_new, **named).std

    def mean_field() -> object:
        rich = nk.MLP(3, (64, 64), activation="tanh", parametrization="mean_field")
        few = {"neurons": 128, "scrambles": 2}
        if hasattr(nk, "MeanField"):
            settings = {"theory": nk.MeanField(**few)}
        else:
            settings = {"clouds": getattr(nk, "forecasts", nk.statistics).Clouds(**few)}
        return nk.forecast(rich, x, y, nk.GradientDescent(lr=0.1, steps=5), x_new, **settings).mean

    def predict() -> None:
        from nearkernel import cli

        sys.argv = ["nearkernel", "predict", "digits"]
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(SystemExit):
            os.chdir(folder)
            with contextlib.redirect_stdout(io.StringIO()):
                cli.main()

    def inspected() -> object:
        import torch

        module = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
        model, params = nk.from_torch(module, x[:1].astype("float32"))
        return nk.inspect(model, params, x, y, algorithm=nk.GradientDescent(lr=0.01, steps=20))

    def expanded() -> object:
        model = nk.expand(net, net.init(0), degree=3)
        return nk.solve(model, x, y, flow, order=2).predict(x_new, time=2.0)

    return {
        "a": ("`forecast`, infinite width", lambda: forecast(net, x, "InfiniteWidth")),
        "b": ("`forecast`, order 1/width, tensors", lambda: forecast(net, x, "FiniteWidth", theory=nk.FiniteWidth())),
        "b'": ("the same of many points", lambda: forecast(net, many, "FiniteWidth", theory=nk.FiniteWidth())),
        "c": ("`forecast`, kinks", lambda: forecast(nk.MLP(3, (64, 64)), x, "Kinks", theory=nk.Kinks())),
        "d": ("`forecast`, mean field", mean_field),
        "e": ("`solve(expand(net), order=2)`", expanded),
        "f": ("`NTK(CNN)(x)`", lambda: nk.kernels.NTK(nk.CNN((8, 8, 1), (8, 8), 1))(images)),
        "f'": ("`NTK(MLP)(x)`", lambda: nk.kernels.NTK(nk.MLP(3, (64, 64)))(x)),
        "g": ("`nearkernel predict digits`", predict),
        "h": ("`from_torch` and `inspect`", inspected),
    }  # fmt: skip


def traced(letter: str, source: Path) -> dict[str, object]:
    """The row of a call, from a process of its own that imports the library from `source`."""
    # -P: `statistics.py` beside this file is not Python's.
    command = [sys.executable, "-P", "-W", "ignore", str(HERE), "--source", str(source), "--call", letter]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(source)}, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--source", type=Path, default=HERE.parents[1] / "src")
    parser.add_argument("--only", nargs="*", metavar="LETTER")
    parser.add_argument("--call", help=argparse.SUPPRESS)
    args = parser.parse_args()
    source = args.source.resolve()
    if args.call:
        what, work = calls()[args.call]
        trace = Trace(source / "nearkernel")
        with trace.on():
            work()
        print(json.dumps({"call": f"({args.call}) {what}", **trace.row()}))
        return
    print("| " + " | ".join(_HEAD) + " |\n" + "|---" * len(_HEAD) + "|")
    for letter in args.only or ("a", "b", "b'", "c", "d", "e", "f", "f'", "g", "h"):
        row = traced(letter, source)
        cells = (format(row[key], "," if isinstance(row[key], int) else "") for key in _HEAD)
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
