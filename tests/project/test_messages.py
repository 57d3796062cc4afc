"""Every message that the library raises stands in a test, at least in part: what is read there is what users read."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/nearkernel"
RUN = 12  # characters in a row that a test must have of a message, or all of it
# Never seen by users: what a class must not be asked, and what a claim's own computation relies on.
INTERNAL = {
    "kernels/base.py: needs no repair.",
    "models/containers/sequential.py: absorbs nothing.",
    "models/containers/repeat.py: Its limit is prepared.",
    "models/containers/repeat.py: Its limit has rows.",
    "models/containers/repeat.py: Its limit has pairs.",
    "scale/fingerprint.py: , whose content is hidden",
    "claims/_drawn.py: `Drawn` knows relu and its kin, and tanh; got ",
    "claims/_registry.py: defines no subclass of Claim.",
    "claims/features/_problems.py: No root was found: ",
    "claims/features/_problems.py: The flow was not followed to its end: ",
    "claims/features/_problems.py: Training failed: ",
    "lab/experiment.py: has no check to run.",
    "lab/server/worker.py: has no check to run.",
    "lab/server/process.py: the process was ended meanwhile",
}


def texts(node: ast.AST) -> list[str]:
    """All literal parts of the texts below a node."""
    return [
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]


def messages(tree: ast.AST) -> Iterator[list[str]]:
    """The literal parts of each message that is raised in place, longest first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            found = [text for each in node.exc.args for text in texts(each) if len(text.strip()) > 5]
            if found:
                yield sorted(found, key=len, reverse=True)


def stands(part: str, tested: str) -> bool:
    """Whether a run of characters of a message stands in the tests."""
    length = min(RUN, len(part))
    return any(part[i : i + length] in tested for i in range(len(part) - length + 1))


def unescaped(pattern: str) -> str:
    return re.sub(r"\\(\W)", r"\1", pattern)


def test_every_message_stands_in_a_test():
    others = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    tested = "\n".join(
        unescaped(text) for path in others for text in texts(ast.parse(path.read_text(encoding="utf-8")))
    )
    missing = {
        f"{path.relative_to(SOURCE).as_posix()}: {parts[0].removeprefix(' ')}"
        for path in SOURCE.rglob("*.py")
        for parts in messages(ast.parse(path.read_text(encoding="utf-8")))
        if not any(stands(part, tested) for part in parts)
    }
    untested, gone = missing - INTERNAL, INTERNAL - missing
    assert not untested, (
        f"no test has {RUN} characters of these messages; match them in one: {sorted(untested)}"
    )
    assert not gone, (
        f"take {sorted(gone)} out of INTERNAL in tests/project/test_messages.py: tested, or no longer raised"
    )


def test_parts_of_messages_are_found():
    tree = ast.parse(
        "if x:\n    raise ValueError(f'`a` must be one of {names}; got {shown(x)}.')\nraise error\n"
    )
    (parts,) = messages(tree)
    assert parts == ["`a` must be one of "]
    assert stands(parts[0], "`a` must be one") and not stands(parts[0], "`b` must have")
