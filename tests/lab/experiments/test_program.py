"""A program is a page's lines below the source of what they use."""

from nearkernel.lab.experiments.parts.program import program

MODULE = "nearkernel.lab.experiments.learning_curve"


def test_a_program_has_what_its_lines_use_and_no_more():
    text = program(MODULE, "x, y = pool({data!r})\nSIZES = x[:3]\nprint(SIZES)", data="wave")
    scope: dict = {"__name__": "program"}
    exec(compile(text.split("for axes in")[0], "program", "exec"), scope)
    assert scope["x"].shape == (240, 5) and len(scope["SIZES"]) == 3
    assert "def raw(" in text and "POOL = 240" in text
    assert "ROUNDS" not in text and "class" not in text and "import jax" not in text


def test_imports_stand_on_top_once():
    text = program(MODULE, "from os import sep\n\nprint(sep, pool('wave'))")
    head = text.split("\n\n")[0].splitlines()
    assert "from os import sep" in head and head.count("import numpy as np") == 1
    assert text.count("import sep") == 1
