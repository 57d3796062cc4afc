"""What `nearkernel kernel build|info|verify|solve` does, with progress on a terminal."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

import nearkernel as nk

from ..._run.memory import human_bytes, parse_bytes
from ..predict.reporting.output import check_writable, write_together
from ..streams import console, note, print_json, progress
from .options import Build, Solve
from .settings import arrays_of, kernel_settings, make_kernel


def _print(about: dict[str, object], lines: list[str], as_json: bool) -> None:
    if as_json:
        print_json(about)
    else:
        console().print("\n".join(lines))


def _about(store: nk.results.KernelStore) -> dict[str, Any]:
    done, total = sum(store.has(i, j) for i, j in store.blocks()), len(store.blocks())
    return {
        "path": str(store.path), "kernel": store.kernel, "settings": store.settings, "points": store.n,
        "features": store.dim, "dtype": store.dtype.name, "block": store.block, "blocks": total, "blocks_there": done,
        "bytes": store.stored_bytes(), "version": store.version,
    }  # fmt: skip


def build(options: Build, as_json: bool) -> None:
    """Exit code 130 if interrupted: what is done is kept."""
    settings = kernel_settings(options, options.length, options.weight_var, options.bias_var)
    budget, out = parse_bytes(options.memory, "--memory"), options.out
    x = arrays_of(options.data, "x")["x"]
    if x.ndim != 2:
        raise ValueError(f"array 'x' of {options.data} must have shape (n, d); got {x.shape}.")
    kernel = make_kernel(settings, x.shape[1])
    counted = [0, 0]
    try:
        with progress(0) as shown:
            shown.say(f"building {out.name}")

            def watch(done: int, total: int) -> None:
                counted[:] = done, total
                shown.count(done, total)

            store = nk.scale.build(
                kernel, x, out, memory=budget, dtype=options.dtype, scheduler=options.scheduler,
                settings=settings, watch=watch,
            )  # fmt: skip
    except KeyboardInterrupt:
        there = (
            f"{counted[0]} of {counted[1]} blocks are stored" if counted[1] else "what was built is stored"
        )
        note(f"interrupted: {there}; the same command resumes from there")
        raise SystemExit(130) from None
    about = _about(store)
    _print(
        about,
        [
            f"{out}: {about['blocks']} blocks of a {store.n} x {store.n} matrix, {human_bytes(about['bytes'])}."
        ],
        as_json,
    )


def info(path: Path, as_json: bool) -> None:
    about = _about(nk.scale.open_store(path))
    lines = [
        f"{path}",
        f"  kernel    {about['kernel']}",
        f"  matrix    {about['points']} x {about['points']} {about['dtype']}, inputs of {about['features']} features",
        f"  blocks    {about['blocks_there']} of {about['blocks']}, {about['block']} rows each",
        f"  on disk   {human_bytes(about['bytes'])} when complete",
        f"  made by   nearkernel {about['version']}",
    ]
    _print(about, lines, as_json)


def verify(path: Path, as_json: bool) -> int:
    """0 if the inputs and every block are there and sound, else 1."""
    store = nk.scale.open_store(path)
    bad = []
    with progress(0) as shown:
        shown.say(f"reading {path.name}")
        inputs, blocks = store.inputs_state(), store.blocks()
        for count, (i, j) in enumerate(blocks, 1):
            if not store.is_sound(i, j):
                bad.append({"block": [i, j], "what": "damaged" if store.has(i, j) else "missing"})
            shown.count(count, len(blocks))
    about = {
        "path": str(path), "inputs": inputs, "blocks": len(blocks), "sound": len(blocks) - len(bad), "bad": bad,
    }  # fmt: skip
    lines = [f"inputs: {inputs}"] * (inputs != "sound")
    lines += [f"block {b['block'][0]}, {b['block'][1]}: {b['what']}" for b in bad[:10]]
    lines += [f"... and {len(bad) - 10} more"] * (len(bad) > 10)
    lines.append(
        f"{path}: {about['sound']} of {len(blocks)} blocks are present and intact"
        + (". Build again to repair it." if lines else ", and so are the inputs.")
    )
    _print(about, lines, as_json)
    return 0 if len(lines) == 1 else 1


def solve(options: Solve, out: Path, as_json: bool) -> int:
    """0 if the tolerance was reached, else 1; the coefficients are written in both cases."""
    if out.suffix != ".npz":
        raise ValueError(f"--out {out}: give a name that ends in .npz.")
    check_writable(out.parent, (out.name,))
    path, ridge = options.path, options.ridge
    budget = None if options.memory is None else parse_bytes(options.memory, "--memory")
    store, arrays = nk.scale.open_store(path), arrays_of(options.data, "x", "y")
    kernel = make_kernel(store.settings, store.dim)
    missing = next((f"block {i}, {j}" for i, j in store.blocks() if not store.has(i, j)), None)
    if missing:
        raise ValueError(
            f"{path} is not complete ({missing} is missing): finish it with `nearkernel kernel build`."
        )
    with progress() as shown:
        shown.say("preparing")
        solver = nk.dynamics.ConjugateGradients(
            tol=options.tol, iterations=options.max_iterations, memory=budget, blocks=path,
            watch=lambda k, r: shown.say(f"iteration {k}: relative residual {r:.1e}"),
        )  # fmt: skip
        solution = nk.solve(kernel, arrays["x"], arrays["y"], nk.Ridge(ridge), solver=solver)
        assert isinstance(solution, nk.results.MachineSolution)
        predicted: dict[str, Any] = (
            {"prediction": solution.predict(arrays["x_new"]).mean} if "x_new" in arrays else {}
        )
    about = {
        "path": str(path), "ridge": ridge, "tol": options.tol, "status": str(solution.status),
        "status_kind": solution.status.kind.name, "ok": solution.ok,
        "relative_residual": solution.relative_residual, "iterations": solution.iterations, "seconds": solution.seconds,
        "out": str(out),
    }  # fmt: skip
    held = io.BytesIO()
    coefficients = solution.coefficients[:, 0] if arrays["y"].ndim == 1 else solution.coefficients
    np.savez(
        held,
        coefficients=coefficients,
        history=solution.history,
        about=np.array(json.dumps(about)),
        **predicted,
    )
    write_together(out.parent, {out.name: held.getvalue()})
    lines = [
        f"{solution.status}; relative residual {solution.relative_residual:.1e}, {solution.seconds:.1f} s.",
        f"Wrote {out}",
    ]
    _print(about, lines, as_json)
    return 0 if solution.ok else 1
