"""Formulas typed by strangers: they mean what they say, and nothing in them is ever run."""

import builtins
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf

import nearkernel as nk
from nearkernel.activations import get
from nearkernel.activations.formula import DEEPEST, LONGEST, MOST, Formula, formula, is_formula

Z = np.linspace(-3, 3, 61)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("z", Z),
        ("tanh(z) + 0.1*z^2", np.tanh(Z) + 0.1 * Z**2),
        ("max(z, 0) - min(z, -1)/2", np.maximum(Z, 0) - np.minimum(Z, -1) / 2),
        ("-z**3 + +2*(z - 1)", -(Z**3) + 2 * (Z - 1)),
        ("sin(pi*z) * exp(-z^2/2)", np.sin(np.pi * Z) * np.exp(-(Z**2) / 2)),
        ("abs(x) + e", np.abs(Z) + np.e),
        ("0.123456789*z - 1e-3", 0.123456789 * Z - 1e-3),
        ("log1p(z^2) + arctan(z)", np.log1p(Z**2) + np.arctan(Z)),
        ("tanh(sin(erf(arctan(z))))", np.tanh(np.sin(erf(np.arctan(Z))))),
        ("exp(1)^2*sin(pi/4)*z", np.e**2 * np.sin(np.pi / 4) * Z),
    ],
)
def test_a_formula_has_the_values_it_says_and_so_has_its_program(text, expected):
    formula = Formula(text)
    with jax.enable_x64(True):
        np.testing.assert_allclose(np.broadcast_to(formula(jnp.asarray(Z)), Z.shape), expected, atol=1e-12)
        program = eval(f"lambda z: {formula.source}", {"jnp": jnp, "jax": jax})
        np.testing.assert_allclose(np.broadcast_to(program(jnp.asarray(Z)), Z.shape), expected, atol=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch hacked')",
        "z.__class__",
        "().__class__.__bases__[0]",
        "[z for z in (1,)]",
        "lambda z: z",
        "open('/etc/passwd')",
        "z if z else 1",
        "exec('1')",
        "tanh(z, z)",
        "tanh(x=z)",
        "tanh(*z)",
        "z[0]",
        "z @ z",
        "z // 2",
        "z and 1",
        "'text'",
        "True",
        "1j*z",
        "z := 1",
        "z; z",
        "z\nz",
        "{z}",
        "f'{z}'",
        "z**z",
        "9**9**9",
        "z^0.5",
        "z^99",
        "1e999*z",
        "10000000*z",
        "(" * 300,
        "-" * 119 + "z" * 2,
        "z" * (LONGEST + 1),
        "",
        "   ",
        "3",
        "1/z",
        "exp(z^2)",
        "sqrt(z)",
        "1/0",
        "z + 0/0",
        "z*(1e6^8)^8",
        "exp(1e6)*z",
        "sqrt(-1) + z",
        "log1p(-1)*z",
        "z/(1 - 1)",
        "tanh(" * 19 + "z" + ")" * 19,
        "tanh(" * (DEEPEST + 1) + "z" + ")" * (DEEPEST + 1),
        "+".join(["sin(z)"] * (MOST + 1)),
        "tahn(z)",
        "\x00",
        "z\u200b",
        "ℯ+\ud800",
    ],
)
def test_what_is_no_formula_costs_one_line_and_runs_nothing(text, monkeypatch):
    for dangerous in ("eval", "exec", "open", "__import__"):
        real = getattr(builtins, dangerous)

        def refuse(*args, real=real, dangerous=dangerous, **kwargs):
            if args and isinstance(args[0], str) and args[0] and args[0] in text:
                raise AssertionError(f"{dangerous} was called with the formula")
            return real(*args, **kwargs)

        monkeypatch.setattr(builtins, dangerous, refuse)
    with pytest.raises(ValueError, match="activation") as error:
        formula(text)
    assert "\n" not in " ".join(str(error.value).split()) and len(str(error.value)) < 400


def test_a_misspelt_function_is_told_from_a_known_one():
    with pytest.raises(ValueError, match=r"tahn is not known.*tanh"):
        get("tahn(z)")


def test_equal_texts_are_one_function_and_names_are_no_formulas():
    assert get("tanh(z)*2") is get("tanh(z)*2") and formula("tanh(z)*2") is formula("tanh(z)*2")
    assert pickle.loads(pickle.dumps(formula("tanh(z)*2"))) is formula("tanh(z)*2")
    assert formula("gelu(z)+z").source == "(jax.nn.gelu(z, approximate=False) + z)"
    assert is_formula("z^2") and not any(map(is_formula, ["relu", "leaky-relu", "leaky_relu(0.3)", "zx"]))


def test_a_network_takes_a_formula_and_is_saved_with_it(tmp_path):
    net = nk.MLP(2, (8,), activation="tanh(z) + 0.1*z^2")
    with jax.enable_x64(True):
        z = jnp.asarray(Z)
        np.testing.assert_allclose(net.activation(z), np.tanh(Z) + 0.1 * Z**2, atol=1e-12)
    x = np.array([[1.0, 2.0], [0.5, -1.0], [0.3, 0.1]])
    fitted = nk.estimators.NTKRegressor(depth=1, activation="tanh(z) + 0.1*z^2").fit(x, [0.0, 1.0, 2.0])
    nk.save(fitted, tmp_path / "model.nk")
    np.testing.assert_array_equal(nk.load(tmp_path / "model.nk").predict(x), fitted.predict(x))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("z + 1/0", r"`activation` z \+ 1/0: 1 / 0 has no value\."),
        (
            "tanh(" * 6 + "z" + ")" * 6,
            r"has 6 functions, nested 6 deep; use at most 12, nested at most 4 deep\.",
        ),
        ("z/(1 - 1)", r"has no value at z = -8; it must have one everywhere\."),
    ],
)
def test_it_is_said_what_is_wrong_with_a_formula(text, words):
    with pytest.raises(ValueError, match=words):
        formula(text)
