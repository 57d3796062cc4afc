"""A claim run again on request, in a separate process that can be stopped."""

import asyncio
import base64
import json
import sys
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import psutil

from .._look import inline
from .claims_page import rows_of

_LOOK = 0.5  # seconds between two words of progress


async def claim_events(name: str, flags: list[str], seconds: float) -> AsyncGenerator[dict[str, object]]:
    """Runs a claim; yields how long it has taken, and at the end its record and figure."""
    with tempfile.TemporaryDirectory(prefix="nearkernel-lab-") as folder:
        command = ("-P", "-m", "nearkernel", "claims", "run", name, *flags, "--json", "--out", folder)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=pipe, stderr=pipe)
        reading = asyncio.ensure_future(process.communicate())
        try:
            psutil.Process(process.pid).nice(10)  # moves of sliders go first
            clock = asyncio.get_running_loop().time
            begin = clock()
            while not (await asyncio.wait({reading}, timeout=_LOOK))[0]:
                if clock() - begin > seconds:
                    yield {
                        "error": f"stopped after {seconds / 60:g} minutes; `nearkernel claims run` has no limit."
                    }
                    return
                yield {"share": None, "words": f"running for {clock() - begin:.0f} s"}
            written, trouble = reading.result()
            yield _ended(process.returncode, written, trouble, Path(folder), name)
        finally:
            if process.returncode is None:
                process.kill()
                with anyio.CancelScope(shield=True):  # it writes into the folder until it is gone
                    await process.wait()
            reading.cancel()


def _ended(code: int | None, written: bytes, trouble: bytes, folder: Path, name: str) -> dict[str, object]:
    if code not in (0, 1) or not written:
        return {"error": trouble.decode(errors="replace").strip()[-300:] or f"exit code {code}"}
    record = json.loads(written)[0]
    if record["verdict"] == "failed":
        return {"error": record["error"]}
    drawing = (folder / f"{name}.svg").read_text(encoding="utf-8")
    return {
        "share": 1.0,
        "words": "done",
        "record": {
            "verdict": record["verdict"],
            "seconds": record["seconds"],
            "rows": rows_of(record["rows"]),
        },
        "svg": str(inline(drawing, f"{name}: theory and measurement")),  # in the colors of the page
        "file": drawing,
        "png": base64.b64encode((folder / f"{name}.png").read_bytes()).decode(),
        "csv": (folder / f"{name}.csv").read_text(encoding="utf-8"),
    }
