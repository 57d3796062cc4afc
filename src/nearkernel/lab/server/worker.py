"""A process that computes for the lab: it reads questions, one per line, and writes messages.

The server can end it at any time, which nothing that runs in the server's own process allows: the compiler cannot be
interrupted, and memory that it took is not given back. A message is a status as in HTTP, a length, and JSON of that
length.
"""

import functools
import json
import os
import queue
import re
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO

from ..experiment import Experiment, Stopped, Watch
from ..experiment_list import NAMES, find
from ..picture import Answer, plain

HEADER = struct.Struct(">HI")
READY, PROGRESS, DONE, BAD, LEFT, BROKEN = 100, 102, 200, 400, 410, 500
STOP = b"stop\n"
Question = dict[str, Any]


def main() -> None:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no message
    work(sys.stdin.buffer, out)


def work(questions: BinaryIO, out: BinaryIO) -> None:
    """Answers until its input ends."""
    from ..describe import about

    def send(status: int, value: object) -> None:
        body = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
        try:
            out.write(HEADER.pack(status, len(body)) + body)
            out.flush()
        except BrokenPipeError:  # the server is gone
            os._exit(0)

    send(READY, [about(find(name)) for name in NAMES])
    waiting: queue.SimpleQueue[tuple[Question, Watch]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(questions, waiting, send), daemon=True).start()
    while True:
        question, watch = waiting.get()
        send(*_reply(question, watch))


def _listen(questions: BinaryIO, waiting: queue.SimpleQueue, send: Callable[[int, object], None]) -> None:
    watch = Watch()
    for line in questions:
        if line == STOP:
            watch.stop()
            continue
        question = json.loads(line)
        watch = Watch(_progress(question, send))
        waiting.put((question, watch))
    os._exit(0)  # the server is gone: whatever is being computed, nobody waits for it


def _reply(question: Question, watch: Watch) -> tuple[int, object]:
    try:
        return DONE, _ASKED[question["ask"]](question, watch)
    except Stopped:
        return LEFT, {"error": "stopped."}
    except (ValueError, TypeError, ArithmeticError) as error:
        return BAD, {"error": one_line(error)}
    except Exception as error:
        traceback.print_exc()
        return BROKEN, {
            "error": f"unexpected {error!r:.300}; please report it with the address of this page."
        }


def one_line(error: Exception) -> str:
    """The message, with the name of a setting first as the page has it."""
    words = re.sub(r"^(?:--|`(\w+)`(?=[ :]))", r"\1", str(error))
    return " ".join(words.split()) or repr(error)


def _chosen(question: Question) -> Experiment:
    return find(question["name"]).with_settings(question["typed"])


def _answer(question: Question, watch: Watch) -> object:
    chosen = _chosen(question)
    return shown(chosen.theory(), chosen.python())


def shown(answer: Answer, python: str) -> dict[str, object]:
    """An answer as a page reads it."""
    return {**plain(answer), "csv": [picture.csv() for picture in answer.pictures], "python": python}


def _runnable(question: Question, watch: Watch) -> None:
    """Nothing, if the settings can be checked by a run."""
    chosen = _chosen(question)
    if not chosen.button:
        raise ValueError(f"{chosen.name()} has no check to run.")


def _check(question: Question, watch: Watch) -> object:
    chosen = _chosen(question)
    return {"share": 1.0, "words": "done", "answer": shown(chosen.check(watch), chosen.python(checked=True))}


def _progress(question: Question, send: Callable[[int, object], None]) -> Callable[..., None]:
    """Tells of a check on its way."""
    python = functools.cache(lambda: _chosen(question).python(checked=True))

    def show(share: float, words: str, answer: Answer | None) -> None:
        event = {"share": share, "words": words}
        send(PROGRESS, event if answer is None else {**event, "answer": shown(answer, python())})

    return show


def _claims(question: Question, watch: Watch) -> object:
    from ..claims_page import claims_about

    return claims_about()


def _claim(question: Question, watch: Watch) -> object:
    from ..claims_page import claim_about

    return claim_about(question["name"])


def _flags(question: Question, watch: Watch) -> object:
    from ..claims_page import flags

    return flags(question["name"], question["typed"])


_ASKED = {
    "answer": _answer,
    "runnable": _runnable,
    "check": _check,
    "claims": _claims,
    "claim": _claim,
    "flags": _flags,
}

if __name__ == "__main__":
    main()
