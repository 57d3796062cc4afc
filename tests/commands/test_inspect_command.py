"""`nearkernel inspect` as a user meets it."""

import html
import json
import os
from pathlib import Path

import pytest

from support.commands import nearkernel, self_contained

NETWORK = """
import equinox as eqx, jax, jax.numpy as jnp
import nearkernel as nk

mlp = eqx.nn.MLP(4, 3, 8, 1, activation=jnp.tanh, key=jax.random.key(0))
number = 3

def network():
    return mlp

def pair():
    net = nk.MLP(4, (8,), 3, "relu")
    return net, net.init(0)
"""
FEW = ("--train", 12, "--new", 9, "--steps", 20)


@pytest.fixture(autouse=True)
def network(inside_an_empty_folder):
    Path("net.py").write_text(NETWORK)
    Path("two.csv").write_text("a,y\n1,2\n2,3\n")
    Path("syntax.py").write_text("net = 1\ndef (:\n")
    Path("zeros.py").write_bytes(bytes(20))
    Path("ends.py").write_text("import sys\nsys.exit(3)\n")
    Path("absent.py").write_text("import absent_\n")
    Path("raises.py").write_text("def net():\n    return {}['a']\n")


def test_a_network_of_equinox_the_main_job():
    result = nearkernel("inspect", "net.py:network", "iris", *FEW)
    assert sorted(os.listdir("out")) == ["inspection.json", "inspection.png", "report.html"]
    found = json.loads(Path("out/inspection.json").read_text())
    assert found["data"] == {"name": "iris", "train": 12, "new": 9, "notes": []}
    assert found["verdict"] in ("trust", "with care", "do not trust") and found["parameters"] == 67
    assert [row["step"] for row in found["curve"]][-1] == 20
    for name, key in (("predictions", "outputs"), ("halfway", "steps"), ("accuracy", "value")):
        assert found[name]["verdict"] == found["verdict"] and key in found[name]
    assert len(found["predictions"]["outputs"]) == 9
    assert len(found["kernel"]["alignment"]) == len(found["kernel"]["eigenvalues"]) <= 36
    for words in (
        "12 training rows, 9 new ones; 67 parameters train",
        "20 steps of full-batch gradient",
        "self-check",
        f"Regime: {found['regime']['name']} (self-check",
    ):
        assert words in result.stdout
    page = Path("out/report.html").read_text(encoding="utf-8")
    self_contained(page)
    assert "Order of learning" in page and "nearkernel inspect net.py:network iris" in page


@pytest.mark.parametrize("lr, verdict", [(1e-4, "trust"), (0.5, "do not trust")])
def test_accuracy_and_order_of_learning_have_the_verdict_or_are_withheld(lr, verdict):
    result = nearkernel("inspect", "net.py:network", "iris", *FEW, "--lr", lr)
    found = json.loads(Path("out/inspection.json").read_text())
    page = Path("out/report.html").read_text(encoding="utf-8")
    text = " ".join(result.stdout.split())
    assert found["verdict"] == verdict
    if verdict == "trust":
        assert found["promise"] == {"error": 0.25, "kept": 0.96}
        assert len(found["halfway"]["steps"]) == 12 and 0 <= found["accuracy"]["value"] <= 1
        told = ("% (trust).", "by the end (trust).", "'trust': output errors of at most 25 %")
    else:
        assert found["promise"] == {"error": None, "kept": None}
        assert found["halfway"]["steps"] is None and found["accuracy"]["value"] is None
        withheld = "withheld, since the verdict is 'do not trust'."
        told = (
            f"accuracy on the new rows: {withheld}",
            f"are halved: {withheld}",
            "no promise about the error",
        )
        assert "By class" not in text
    for words in told:
        assert words in text and words in html.unescape(page)


def test_a_pair_of_model_and_parameters():
    result = nearkernel(
        "inspect", "net.py:pair", "iris", *FEW, "--loss", "cross_entropy", "--pieces", 3, "--lr", 0.01,
        "--standardize", "--json",
    )  # fmt: skip
    found = json.loads(result.stdout)
    assert found["algorithm"] == {"lr": 0.01, "steps": 20} and found["kinked"]
    assert found["regime"]["width"] == 8 and found["regime"]["name"] == "rich"
    assert found["linearized_at"][0] == 0 and len(found["linearized_at"]) <= 3


@pytest.mark.merge
def test_a_module_of_pytorch_and_which_of_it_trains():
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'nearkernel[torch]'")
    Path("cnn.py").write_text(
        "from torch import nn\n"
        "cnn = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 10)).eval()\n"
    )
    words = ("inspect", "cnn.py:cnn", "digits", *FEW, "--shape", "1,8,8", "--standardize", "--json")
    whole = json.loads(nearkernel(*words).stdout)
    head = json.loads(nearkernel(*words, "--trainable", "3").stdout)
    assert whole["parameters"] == 20 + 730 and whole["kinked"]
    assert head["parameters"] == 730 and not head["kinked"] and head["verdict"] == "trust"
    assert max(row["self_check"] for row in head["curve"]) < 1e-9  # linear in its last layer


@pytest.mark.parametrize(
    "words, message",
    [
        (("net.py", "iris"), "'net.py' must be FILE.py:NAME, such as net.py:network."),
        (("no.py:net", "iris"), "no.py: no such file."),
        ((".:net", "iris"), ". is a folder."),
        (("syntax.py:net", "iris"), "syntax.py cannot be run: SyntaxError: invalid syntax (line 2)."),
        (
            ("zeros.py:net", "iris"),
            "zeros.py cannot be run: SyntaxError: source code string cannot contain null",
        ),
        (("ends.py:net", "iris"), "ends.py cannot be run: SystemExit: 3."),
        (
            ("absent.py:net", "iris"),
            "absent.py cannot be run: ModuleNotFoundError: No module named 'absent_'.",
        ),
        (("raises.py:net", "iris"), "raises.py:net cannot be run: KeyError: 'a'."),
        (("net.py:nothing", "iris"), "net.py has no 'nothing'; it has"),
        (("net.py:number", "iris"), "`network` must be a network of Flax, Equinox or Keras; got int."),
        (("net.py:network", "iris", "--shape", "2,3"), "--shape 2,3 has 6 numbers; a row of iris has 4."),
        (("net.py:network", "iris", "--shape", "a"), "--shape must be numbers such as 1,8,8; got 'a'."),
        (("net.py:network", "two.csv", "--target", "y"), "two.csv has 2 rows: at least 4 are needed."),
        (("net.py:network", "iris", "--lr", "0"), "--lr must be positive and finite; got 0.0."),
        (("net.py:network", "iris", "--trainable", "head"), "--trainable is for PyTorch modules"),
        (("net.py:network", "diabetes", "--loss", "cross_entropy"), "--loss cross_entropy needs classes"),
    ],
)
def test_bad_input_costs_one_line(words, message):
    result = nearkernel("inspect", *words, code=2)
    assert message in " ".join(result.stderr.split()) and result.stderr.count("\n") == 1
    assert not os.path.exists("out")
