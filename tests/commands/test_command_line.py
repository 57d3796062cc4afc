"""What all commands share: flags, JSON, exit codes, colors, completion."""

import importlib
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
import typer.main

import nearkernel as nk
from nearkernel._commands import completion as _completion
from nearkernel.cli import EXIT_CODES, app
from support.commands import nearkernel, self_contained

pytestmark = pytest.mark.usefixtures("inside_an_empty_folder")

# Every command: what to type, and the function that does its work.
COMMANDS = {
    ("predict",): (("iris",), "_commands.predict.command.predict_and_report"),
    ("apply",): ((__file__, "new.csv"), "_commands.predict.apply.apply_and_write"),  # any file that is there
    ("inspect",): (("net.py:net", "digits"), "_commands.inspect.command.inspect_and_report"),
    ("curve",): (("iris",), "_commands.curve.command.curve_and_report"),
    ("advise",): ((), "_commands.advise.command.advise_and_report"),
    ("ladder",): ((), "_commands.ladder.command.ladder_and_report"),
    ("lab",): ((), "lab.server.serve.serve"),
    ("completion",): (("bash",), "_commands.completion.script"),
    ("kernel", "build"): (
        ("data.npz", "--kernel", "rbf", "--length", "1", "--out", "K.zarr"),
        "_commands.kernel.command.build",
    ),
    ("kernel", "info"): (("K.zarr",), "_commands.kernel.command.info"),
    ("kernel", "verify"): (("K.zarr",), "_commands.kernel.command.verify"),
    ("kernel", "solve"): (("K.zarr", "data.npz", "--ridge", "1"), "_commands.kernel.command.solve"),
    ("kernel", "plan"): (("--n", "1000", "--d", "5", "--kernel", "rbf"), "_commands.kernel.plan.plan"),
    ("claims", "list"): ((), "_commands.claims.command.list_claims"),
    ("claims", "show"): (("sawtooth",), "_commands.claims.command.show"),
    ("claims", "run"): (("sawtooth",), "_commands.claims.command.run"),
}


def leaves(group=None, path=()):
    """Every command that does something, with its words."""
    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from leaves(command, (*path, name))
        else:
            yield (*path, name), command


def test_the_table_above_knows_every_command():
    known = {words for words, _ in leaves()}
    assert known == set(COMMANDS), (
        f"COMMANDS in tests/commands/test_command_line.py differs by {known ^ set(COMMANDS)}"
    )


@pytest.mark.parametrize("command", [pytest.param(found, id=" ".join(words)) for words, found in leaves()])
def test_flags_are_the_same_everywhere(command):
    options = {name: option for option in command.params for name in option.opts}
    panel = lambda name: options[name].rich_help_panel
    for name, text in (
        ("--json", "Print one JSON document instead of text."),
        ("--debug", "Show where an error comes from."),
    ):
        assert options[name].help == text and panel(name) == "Output"
    if "--seed" in options:
        assert options["--seed"].help == "Seed of all random numbers." and options["--seed"].default == 0
    if "--out" in options:
        assert panel("--out") == "Output" and re.match("Fol|File", options["--out"].help)
    for name in {"--depth", "--activation", "--weight-var", "--bias-var"} & set(options):
        assert panel(name) == "The network"


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_each_way_to_end_has_its_exit_code_and_one_line(words, monkeypatch):
    """2, bad input; 1, unexpected; 130, interrupted; a traceback only with --debug; then nothing on stdout."""
    rest, where = COMMANDS[words]
    open("new.csv", "w").close()  # `apply` looks for it before its work begins
    module, _, function = where.rpartition(".")
    place = importlib.import_module(f"nearkernel.{module}")

    def ends(error, code):
        def broken(*args, **others):
            raise error

        monkeypatch.setattr(place, function, broken)
        plain, shown = (nearkernel(*words, *rest, *more, code=code) for more in ((), ("--debug",)))
        assert plain.stdout == shown.stdout == "" and plain.stderr.count("\n") == 1
        return plain.stderr, shown.stderr

    line, debugged = ends(ValueError("--depth of\n  despair"), 2)
    assert line == "error: --depth of despair\n" and "Traceback" in debugged
    line, debugged = ends(KeyError("surprise"), 1)
    assert line == "error: unexpected KeyError('surprise'); --debug shows where.\n"
    assert "Traceback" in debugged and debugged.endswith(line)
    assert ends(KeyboardInterrupt(), 130)[0] == "interrupted: nothing was written\n"
    plain = nearkernel(*words, *rest, "--color", "red", code=2)
    assert plain.stdout == "" and plain.stderr.count("\n") == 1 and "--color" in plain.stderr


def test_exit_codes_are_documented():
    shown = " ".join(nearkernel("--help").stdout.split())
    assert EXIT_CODES in shown and all(f" {code}, " in EXIT_CODES for code in (0, 1, 2, 130))
    guide = os.path.join(os.path.dirname(__file__), "../../docs/guides/command-line.md")
    with open(guide, encoding="utf-8") as file:
        text = file.read()
    assert all(f"| {code} |" in text for code in (0, 1, 2, 130))


def one_document(*words, code=0):
    found = nearkernel(*words, "--json", code=code)
    return json.loads(found.stdout)


def test_json_is_one_document_and_nothing_else():
    """Of the commands whose own tests do not say so already."""
    rng = np.random.default_rng(0)
    np.savez("data.npz", x=rng.normal(size=(30, 2)), y=rng.normal(size=30))
    build = COMMANDS["kernel", "build"][0]
    assert one_document("--version")["nearkernel"] == nk.__version__
    assert one_document("completion", "fish")["shell"] == "fish"
    assert one_document("kernel", "build", *build)["points"] == 30
    assert one_document("kernel", "info", "K.zarr")["kernel"] == "RBF(length=1.0)"
    assert one_document("kernel", "verify", "K.zarr")["bad"] == []
    assert one_document("kernel", "solve", "K.zarr", "data.npz", "--ridge", 1)["ok"]
    stopped = ("--tol", "1e-15", "--max-iterations", 1)
    assert not one_document("kernel", "solve", "K.zarr", "data.npz", "--ridge", "1e-9", *stopped, code=1)[
        "ok"
    ]
    with open("K.zarr/matrix/c/0/0", "wb") as file:
        file.write(b"damaged")
    assert len(one_document("kernel", "verify", "K.zarr", code=1)["bad"]) == 1


def test_the_ladder_as_json_and_as_a_page(monkeypatch):
    from nearkernel._commands.ladder import command
    from nearkernel.forecasts.theory_ladder import Rung, cases

    def climb(settings):
        errors = lambda alpha: (0.1 / alpha, 0.01 / alpha**2, 0.001 / alpha**3)
        return [
            Rung(*case, errors(case[1]), 0.2, (0.1,) * 3, 1.0, 9, 0.1, "converged", True)
            for case in cases(settings)
        ]

    monkeypatch.setattr(command, "_climb_all", climb)
    typed = ("ladder", "--seed", 5, "--seeds", 2, "--alphas", "1,2", "--widths", "64", "--out", "a & b")
    found = one_document(*typed)
    assert [rung["seed"] for rung in found["rungs"]] == [5, 5, 5, 6, 6, 6]
    with open("a & b/report.html", encoding="utf-8") as file:
        page = file.read()
    self_contained(page)
    assert page.count("<svg ") == 1 and "zI/zF" in page and "-1.00, -2.00, -3.00" in page
    assert (
        "nearkernel ladder --seed 5 --seeds 2 --alphas 1,2 --widths 64 --out &#x27;a &amp; b&#x27; --json"
        in page
    )


def test_the_ladder_with_the_rich_limit():
    """At richness 1 the rich limit of a network of 256 neurons is nearer than any order; lazily it is the opposite."""
    typed = ("ladder", "--rich", "--points", 6, "--test-points", 8, "--dim", 3, "--depth", 1, "--width", 256)
    found = one_document(*typed, "--alphas", "0.0625,2", "--widths", "", "--tol", "0.05", "--out", "rich")
    rich, lazy = found["rungs"]
    assert rich["regime"] == "rich" and lazy["regime"] == "lazy"
    assert rich["rich"] < min(rich["errors"]) and lazy["rich"] > max(lazy["errors"])
    with open("rich/report.html", encoding="utf-8") as file:
        page = file.read()
    assert "richness" in page and page.count("<svg ") == 1


def on_a_terminal(*words):
    """What a terminal would receive, and the exit code."""
    leader, follower = pty.openpty()
    kept = sys.stdout
    with open(follower, "w", encoding="utf-8", closefd=True) as terminal:
        sys.stdout = terminal
        try:
            app([str(word) for word in words])
        except SystemExit as ended:
            code = ended.code
        finally:
            sys.stdout = kept
            terminal.flush()
        text = b""
        os.set_blocking(leader, False)
        while True:
            try:
                text += os.read(leader, 65536)
            except BlockingIOError:
                break
    os.close(leader)
    return text.decode(), code


COLOR = re.compile(r"\x1b\[(?:\d+;)*3\d")


def test_colors_are_for_terminals(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    run = ("claims", "run", "brownian-norm", "--points", 3)
    shown, code = on_a_terminal(*run)
    assert code == 0 and COLOR.search(shown) and "confirmed" in shown
    assert "\x1b" not in nearkernel(*run).stdout
    document, code = on_a_terminal(*run, "--json")
    assert code == 0 and "\x1b" not in document and json.loads(document)[0]["verdict"] == "confirmed"
    monkeypatch.setenv("NO_COLOR", "1")
    shown, code = on_a_terminal(*run)
    assert code == 0 and not COLOR.search(shown) and "confirmed" in shown


def test_names_that_are_completed_are_those_that_exist():
    from nearkernel._commands.predict.reading.data import EMBEDDED
    from nearkernel.activations import get, names
    from nearkernel.claims._registry import modules

    assert sorted(_completion.ACTIVATIONS) == sorted(names())
    kinked = {name for name in names() if not get(name).smooth}
    assert set(_completion.activations("")) - set(_completion.smooth_activations("")) == kinked
    assert _completion.DATA_SETS == EMBEDDED
    assert sorted(_completion.claims("")) == sorted(modules())
    assert _completion.claims("sawt") == ["sawtooth"]


@pytest.fixture
def command_in_path(tmp_path, monkeypatch):
    """`nearkernel` as a program, wherever the tests run."""
    folder = tmp_path.parent / f"{tmp_path.name}-bin"
    folder.mkdir()
    program = folder / "nearkernel"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nearkernel "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


ASKED = {
    "nearkernel ": {
        "predict",
        "curve",
        "inspect",
        "apply",
        "advise",
        "ladder",
        "lab",
        "kernel",
        "claims",
        "completion",
    },
    "nearkernel predict di": {"digits", "diabetes"},
    "nearkernel predict digits --activation ge": {"gelu"},
    "nearkernel predict digits --algorithm ": {"flow", "gd", "ridge"},
    "nearkernel kernel build data.npz --kernel n": {"ntk", "nngp"},
    "nearkernel claims run random-": {"random-walk", "random-features"},
    "nearkernel kernel info K": set(),  # then bash completes the names of files
}


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_bash_completes(command_in_path):
    """The script in a bash of its own, asked as Tab asks it."""
    ask = 'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _nearkernel_completion nearkernel; echo "${COMPREPLY[*]}"'
    word = {True: '""', False: ""}  # a new word is begun after a space
    calls = "\n".join(f"COMP_WORDS=({line}{word[line.endswith(' ')]})\n{ask}" for line in ASKED)
    text = f'eval "$(nearkernel completion bash)"\ncomplete -p nearkernel\n{calls}\n'
    done = subprocess.run(["bash", "--norc"], input=text, capture_output=True, text=True, timeout=60)
    how, *answers = done.stdout.splitlines()
    assert done.stderr == "" and "-o default -F" in how
    assert {line: set(words.split()) for line, words in zip(ASKED, answers, strict=True)} == ASKED


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_tab_in_an_interactive_bash(command_in_path):
    terminal, other = pty.openpty()
    settings = {**os.environ, "TERM": "dumb", "PS1": "$ "}
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), other)
    process = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"], env=settings, start_new_session=True, **streams
    )
    os.close(other)
    try:
        os.write(terminal, b'eval "$(nearkernel completion bash)"; echo rea""dy\n')
        read_until(terminal, "ready")
        os.write(terminal, b"echo nearkernel; nearkernel claims show sawt\t")
        assert "claims show sawtooth " in read_until(terminal, "sawtooth ")
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def read_until(terminal, word, seconds=30):
    text, end = "", time.monotonic() + seconds
    while word not in text and select.select([terminal], [], [], max(0.0, end - time.monotonic()))[0]:
        text += os.read(terminal, 4096).decode(errors="replace")
    return text


@pytest.mark.parametrize(
    ("shell", "answer"),
    [("zsh", '_arguments \'*: :(("digits"\n"diabetes"))\'\n'), ("fish", "digits\ndiabetes\n")],
)
def test_other_shells_get_their_scripts_and_answers(shell, answer, monkeypatch):
    script = nearkernel("completion", shell).stdout
    assert f"_NEARKERNEL_COMPLETE=complete_{shell}" in script and os.listdir() == []
    monkeypatch.setenv("_NEARKERNEL_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "nearkernel predict di")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    assert nearkernel().stdout == answer


def test_help_is_quick_because_nothing_heavy_is_imported():
    code = (
        "import sys; import nearkernel; from nearkernel.cli import app\n"
        "try: app(['--help'])\n"
        "finally: print(sorted({'jax', 'numpy', 'scipy', 'sklearn', 'matplotlib', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.rstrip().endswith("[]"), done.stdout


def test_the_package_offers_its_names_when_asked():
    assert {"solve", "kernels", "claims", "estimators", "precision"} <= set(dir(nk))
    assert not {"importlib", "typing", "Any"} & set(dir(nk))
    everything: dict = {}
    exec("from nearkernel import *", everything)
    assert everything["solve"] is nk.solve and everything["kernels"] is nk.kernels
    with pytest.raises(AttributeError, match="module 'nearkernel' has no attribute 'nothing'"):
        nk.nothing  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        from nearkernel import nothing  # noqa: F401
