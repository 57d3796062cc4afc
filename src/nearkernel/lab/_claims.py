"""The page of claims: recorded verdicts, and each claim run again on request, in a process that can be stopped."""

import asyncio
import base64
import functools
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import anyio

from .._claims.rows import HEADS, cells, row_of
from .._look import formula, inline
from ..claims import Claim, every, find
from ._describe import control


@functools.cache
def _recorded() -> dict[str, Any]:
    """Verdicts of the last whole run, which `make claims` writes."""
    return json.loads(files(__package__).joinpath("verdicts.json").read_text(encoding="utf-8"))


@functools.cache  # of every claim the source is read
def claims_about() -> dict[str, Any]:
    """All claims, short."""
    recorded = _recorded()
    claims = [_short(claim, recorded["claims"].get(claim.name())) for claim in every()]
    return {"version": recorded["version"], "claims": claims}


def _short(claim: type[Claim], recorded: dict[str, Any] | None) -> dict[str, Any]:
    same = recorded is not None and recorded["fingerprint"] == claim.fingerprint()
    return {
        "name": claim.name(),
        "topic": claim.topic(),
        "statement": claim.statement,
        "erratum": claim.told_erratum(),
        "verdict": recorded["verdict"] if same and recorded else "not run",
    }


def claim_about(name: str) -> dict[str, Any]:
    """One claim, with its controls and the rows of its last whole run."""
    claim, recorded = find(name), _recorded()["claims"].get(name)
    quick = claim.with_settings({}, quick=True).values()
    controls = [{**control(each), "default": each.typed(quick[each.name])} for each in claim.settings()]
    return {
        **_short(claim, recorded),
        "source": claim.source,
        "formula": str(formula(claim.formula)),
        "controls": controls,
        "python": claim().code(),
        "heads": HEADS,
        "rows": _rows(recorded["rows"]) if recorded else [],
    }


def _rows(rows: list[dict[str, Any]]) -> list[list[str]]:
    return [list(cells(row_of(row))) for row in rows]


async def claim_events(claim: Claim) -> AsyncIterator[dict[str, Any]]:
    """Runs a claim; yields how long it has taken, and at the end its record and figure."""
    name = claim.name()
    flags = [word for each in claim.settings()
             for word in (each.flag, each.typed(getattr(claim, each.name)))]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="nearkernel-lab-") as folder:
        command = ("-m", "nearkernel", "claims", "run", name, *flags, "--json", "--out", folder)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=pipe, stderr=pipe)
        reading = asyncio.ensure_future(process.communicate())
        try:
            begin = time.monotonic()
            while not (await asyncio.wait({reading}, timeout=0.5))[0]:
                yield {"share": None, "words": f"running for {time.monotonic() - begin:.0f} s"}
            written, trouble = reading.result()
            yield _ended(process.returncode, written, trouble, Path(folder), name)
        finally:
            if process.returncode is None:
                process.kill()
                with anyio.CancelScope(shield=True):  # it writes into the folder until it is gone
                    await process.wait()
            reading.cancel()


def _ended(code: int | None, written: bytes, trouble: bytes, folder: Path, name: str) -> dict[str, Any]:
    if code not in (0, 1) or not written:
        return {"error": trouble.decode(errors="replace").strip()[-300:] or f"exit code {code}"}
    record = json.loads(written)[0]
    if record["verdict"] == "failed":
        return {"error": record["error"]}
    drawing = (folder / f"{name}.svg").read_text(encoding="utf-8")
    return {
        "share": 1.0,
        "words": "done",
        "record": {"verdict": record["verdict"], "seconds": record["seconds"], "rows": _rows(record["rows"])},
        "svg": str(inline(drawing, f"{name}: theory and measurement")),  # in the colours of the page
        "file": drawing,
        "png": base64.b64encode((folder / f"{name}.png").read_bytes()).decode(),
        "csv": (folder / f"{name}.csv").read_text(encoding="utf-8"),
    }
