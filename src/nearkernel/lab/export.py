"""`nearkernel lab --export folder`: pages with their answers beside them, which open from disk without a server."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._base.files import write_alone
from .._base.settings import Setting
from .._commands.predict.reporting.output import written_to
from .._commands.streams import note, print_json
from .describe import about
from .experiment import Experiment
from .experiment_list import NAMES, find
from .server.worker import one_line, shown
from .static_files import plotly, static

FRAMES = 25
_MODULES = (
    "page.js", "legend.js", "picture.js", "controls.js", "handles.js", "check.js", "lecture.js",
    "claims.js", "experiment.js", "story.js", "app.js",
)  # fmt: skip  # each after those that it imports
_IMPORT = re.compile(r'^import \{ (.*) \} from "\./(.*)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:async )?(?:function|const) (\w+)", re.MULTILINE)
_COPIED = ("look.css", "lab.css", "icon.svg", "stix-two-math.woff2", "stix-two-math-license.txt")


def export(folder: Path, names: Sequence[str], say: Callable[[str], None] = lambda words: None) -> list[Path]:
    """Writes a page for each of `names`, and a first page; returns the pages."""
    for name in names:
        find(name)  # before anything is written
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--export {folder}: is a file; give a folder.")
    chosen = [find(name) for name in names]
    described = [{**about(each), "controls": _controls(each)} for each in chosen]
    with written_to("--export", folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name in _COPIED:
            write_alone(folder / name, static()[name].plain)
        write_alone(folder / "plotly.min.js", plotly().plain)
        write_alone(folder / "lab.js", script().encode())
    story = json.loads(static()["story.json"].plain)
    pages = [_page(folder, "index", {"page": "", "experiments": described, "story": story})]
    for place, each in enumerate(chosen):
        say(f"{each.name()}: {place + 1} of {len(chosen)}")
        kept = {"page": each.name(), "experiments": described, "answers": answers(each)}
        pages.append(_page(folder, each.name(), kept))
    return pages


def moving(experiment: type[Experiment]) -> Setting | None:
    """The setting that moves in a copy."""
    return next((each for each in experiment.settings() if each.name == experiment.movie), None)


def frames(each: Setting) -> list[str]:
    """Values of a setting from end to end, as they are typed; the default is one of them."""
    if each.log or (each.low > 0 and each.high >= 1000 * each.low):
        found = np.geomspace(each.low, each.high, FRAMES)
    else:
        found = np.linspace(each.low, each.high, FRAMES)
    values = [each.kind(round(value)) if each.kind is int else float(f"{value:.3g}") for value in found]
    inside = [min(max(value, each.low), each.high) for value in (*values, each.default)]
    return [each.typed(each.kind(value)) for value in sorted(set(inside))]


def _controls(experiment: type[Experiment]) -> list[dict[str, Any]]:
    """As a page has them; the one that moves has the values that can be shown."""
    found, main = about(experiment)["controls"], moving(experiment)
    return [
        {**each, "frames": frames(main)} if main is not None and each["name"] == main.name else each
        for each in found
    ]


def answers(experiment: type[Experiment]) -> dict[str, Any]:
    """Answers by settings: the frames of the movie, and the presets."""
    main, found = moving(experiment), {}
    asked: list[dict[str, str]] = [{}]
    asked += [{main.name: value} for value in frames(main)] if main is not None else []
    asked += [each["settings"] for each in about(experiment)["presets"]]
    for typed in asked:
        key = address(experiment, typed)
        if key not in found:
            found[key] = _answer(experiment.with_settings(typed))
    return found


def address(experiment: type[Experiment], typed: dict[str, str]) -> str:
    """Settings that are not at their defaults, in the order of the page."""
    default = {each.name: each.typed(each.default) for each in experiment.settings()}
    return "&".join(
        f"{name}={typed[name]}" for name in default if typed.get(name, default[name]) != default[name]
    )


def _answer(chosen: Experiment) -> dict[str, Any]:
    try:
        return shown(chosen.theory(), chosen.python())
    except ValueError as error:
        return {"error": one_line(error)}


def script() -> str:
    """The modules of the page as one script: browsers load no modules from disk."""
    return "".join(_wrapped(name, static()[name].plain.decode()) for name in _MODULES)


def _wrapped(name: str, source: str) -> str:
    body = _IMPORT.sub(lambda found: f"const {{ {found[1]} }} = modules.{found[2]};", source)
    exported = ", ".join(_EXPORT.findall(source))
    plain = re.sub(r"^export ", "", body, flags=re.MULTILINE)
    first = "const modules = {};\n" if name == _MODULES[0] else ""
    return f"{first}modules.{Path(name).stem} = (() => {{\n{plain}\nreturn {{ {exported} }};\n}})();\n"


def _page(folder: Path, name: str, kept: dict[str, Any]) -> Path:
    """The page of the server, with files beside it and its answers in a script."""
    data = json.dumps(kept, allow_nan=False, separators=(",", ":"))
    page = static()["index.html"].plain.decode()
    page = page.replace("/static/", "").replace('href="/"', 'href="index.html"')
    page = page.replace('"/plotly.js"', '"plotly.min.js"')
    page = page.replace(
        '<script type="module" src="app.js">',
        f'<script src="{name}.data.js" defer></script>\n<script src="lab.js" defer>',
    )
    path = folder / f"{name}.html"
    with written_to("--export", folder):
        write_alone(folder / f"{name}.data.js", f"window.nearkernelCopy = {data};\n".encode())
        write_alone(path, page.encode())
    return path


def write(folder: Path, names: Sequence[str], as_json: bool = False) -> None:
    """What the command does: writes the pages asked for, all if none is, and says where they are."""
    pages = export(folder, tuple(names) or NAMES, note)
    if as_json:
        print_json({"pages": [str(page) for page in pages]})
    else:
        print(f"Wrote {len(pages)} pages: open {pages[0]} in a browser.")
