"""A formula as activation on the command line: the numbers of the activation that it spells, or one line of error."""

import json
import os
import re

import pytest

from support.cases import few
from support.commands import nearkernel

pytestmark = pytest.mark.usefixtures("inside_an_empty_folder")

TANH = "(exp(2*z) - 1)/(exp(2*z) + 1)"


def numbers(tree):
    """All numbers of a JSON document, in order, but those of settings and versions."""
    if isinstance(tree, dict):
        kept = [
            value
            for key, value in tree.items()
            if key not in ("settings", "versions") and "seconds" not in key
        ]
        return [each for value in kept for each in numbers(value)]
    if isinstance(tree, list):
        return [each for value in tree for each in numbers(value)]
    return [tree] if isinstance(tree, float) else []


@pytest.mark.parametrize("formula, name", few([("tanh(z)", "tanh"), ("z/(1 + exp(-z))", "silu")], 1))
def test_advise_takes_a_formula(formula, name):
    shape = ["--depth", 3, "--width", 16, "--json"]
    found, expected = (
        json.loads(nearkernel("advise", "--activation", each, *shape).stdout) for each in (formula, name)
    )
    assert found["settings"]["activation"] == formula
    assert found["critical"]["universality"] == expected["critical"]["universality"]
    for key in ("weight_var", "bias_var", "fixed_point"):
        assert found["critical"][key] == pytest.approx(expected["critical"][key], rel=1e-5, abs=1e-8)
    for start, other in zip(
        found["initializations"].values(), expected["initializations"].values(), strict=True
    ):
        for part in ("signal", "gradient"):
            assert start[part]["predicted"] == pytest.approx(other[part]["predicted"], rel=1e-4)
            assert start[part]["measured"] == pytest.approx(other[part]["measured"], rel=1e-4)


def test_predict_takes_a_formula():
    shape = ["iris", "--depth", 1, "--weight-var", 1.5, "--json"]
    found, expected = (
        json.loads(nearkernel("predict", *shape, "--activation", each).stdout) for each in (TANH, "tanh")
    )
    assert numbers(found) == pytest.approx(numbers(expected), rel=1e-3, abs=1e-6) and numbers(found)


@pytest.mark.slow
def test_ladder_takes_a_formula():
    shape = ["--points", 4, "--test-points", 3, "--dim", 2, "--depth", 1, "--width", 12, "--alphas", "8"]
    shape += ["--widths", "", "--tol", 1e-3, "--json"]
    found, expected = (
        json.loads(nearkernel("ladder", *shape, "--activation", each).stdout) for each in (TANH, "tanh")
    )
    assert numbers(found) == pytest.approx(numbers(expected), rel=1e-3, abs=1e-6) and numbers(found)


@pytest.mark.parametrize("command", ["advise", "predict iris", "ladder"])
@pytest.mark.parametrize(
    "formula, match",
    [("tanh(z", r"--activation"), ("__import__(z)", r"--activation"), ("z + y", r"--activation")],
)
def test_a_bad_formula_costs_one_line(command, formula, match):
    result = nearkernel(*command.split(), "--activation", formula, code=2)
    assert re.fullmatch(r"error: [^\n]*\n", result.stderr) and re.search(match, result.stderr), result.stderr
    assert result.stdout == "" and os.listdir() == []
