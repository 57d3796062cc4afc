"""Makes the notebooks of this folder from the scripts beside it: runs their cells, keeps what they print and draw.

    python docs/notebooks/make.py                      # all of them
    python docs/notebooks/make.py forecast_and_check   # only this

A script is a notebook as text: after a line `# %% [markdown]` comes a cell of text, after `# %%` one of code. What a
cell shows is what a notebook shows: prints, the value of a last expression, and every figure that is open at its end.
"""

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
import types
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

sys.path.insert(
    0, str(Path(__file__).parents[1])
)  # for the style that the figures of the documentation share
from drawing import STYLE

FOLDER = Path(__file__).parent
SCRIPTS = sorted(path for path in FOLDER.glob("*.py") if path != Path(__file__))


def cells(script: str) -> list[tuple[str, str]]:
    """Kind ("markdown" or "code") and text of each cell. What stands before the first one belongs to the script."""
    found = []
    for part in ("\n" + script).split("\n# %%")[1:]:
        mark, _, text = part.partition("\n")
        kind = "markdown" if mark.strip() == "[markdown]" else "code"
        lines = text.strip().splitlines()
        if kind == "markdown":
            lines = [line.removeprefix("#").removeprefix(" ") for line in lines]
        found.append((kind, "\n".join(lines)))
    return found


def run(parts: list[tuple[str, str]]) -> list[list[dict]]:
    """The outputs of each cell, in the format of notebooks. The cells share one namespace."""
    module, outputs = types.ModuleType("notebook"), []
    plt.close("all")
    with plt.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", ".*is non-interactive, and thus cannot be shown"
        )  # plt.show() of a cell
        for number, (kind, code) in enumerate(parts):
            outputs.append(_run_cell(code, module.__dict__, number) if kind == "code" else [])
    return outputs


def _run_cell(code: str, namespace: dict, number: int) -> list[dict]:
    body, last = ast.parse(code), None
    if body.body and isinstance(body.body[-1], ast.Expr):
        last = ast.Expression(body.body.pop().value)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(body, f"cell {number}", "exec"), namespace)
        value = eval(compile(last, f"cell {number}", "eval"), namespace) if last else None
    outputs = []
    if text := printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)})
    if value is not None:
        shown = {"text/plain": repr(value).splitlines(keepends=True)}
        outputs.append(
            {"output_type": "execute_result", "metadata": {}, "data": shown, "execution_count": None}
        )
    for each in plt.get_fignums():
        shown = {"image/png": _png(plt.figure(each)), "text/plain": ["<Figure>"]}
        outputs.append({"output_type": "display_data", "metadata": {}, "data": shown})
    plt.close("all")
    return outputs


def _png(drawn: plt.Figure) -> str:
    """A PNG of 128 colors, as text."""
    drawn.canvas.draw()
    pixels, file = Image.fromarray(np.asarray(drawn.canvas.buffer_rgba())).convert("RGB"), io.BytesIO()
    pixels.quantize(128, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def notebook(parts: list[tuple[str, str]], outputs: list[list[dict]]) -> dict:
    """As nbformat 4.5 has it."""
    made, count = [], 0
    for number, ((kind, text), found) in enumerate(zip(parts, outputs, strict=True)):
        cell = {
            "cell_type": kind,
            "id": f"cell-{number}",
            "metadata": {},
            "source": text.splitlines(keepends=True),
        }
        if kind == "code":
            count += 1
            for output in found:
                if "execution_count" in output:
                    output["execution_count"] = count
            cell |= {"execution_count": count, "outputs": found}
        made.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def main(names: list[str]) -> None:
    known = {path.stem: path for path in SCRIPTS}
    if unknown := set(names) - set(known):
        sys.exit(f"unknown notebook {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    for name in names or known:
        parts = cells(known[name].read_text("utf-8"))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            made = notebook(parts, run(parts))
        path = FOLDER / f"{name}.ipynb"
        path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", "utf-8")
        print(
            f"{path.name}: {path.stat().st_size / 1000:.0f} kB, {sum(os.times()[:2]):.0f} CPU seconds so far"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
