"""Shapes in signatures are those of real arguments and results: one letter is one size throughout a call."""

import inspect
import types
import typing

import numpy as np
import pytest
from jaxtyping import AbstractArray, Num, jaxtyped

import nearkernel as nk

RNG = np.random.default_rng(3)
X, NEW = RNG.normal(size=(14, 3)), RNG.normal(size=(4, 3))
Y = np.sin(X[:, 0])
PAIRS = np.stack([Y, np.cos(X[:, 1])], axis=1)
KERNEL = nk.kernels.RBF(2.0)
NET = nk.MLP(3, (32,), activation="erf", bias_var=0.1)
TWO = nk.MLP(3, (32,), 2, activation="erf", bias_var=0.1)
THETA, FLOW = NET.init(0), nk.GradientFlow(1.0)
IMAGES = RNG.normal(size=(5, 4, 4, 1))


def shapes(hint: object) -> list[type]:
    """Shapes within an annotation: `A | None`, `tuple[A, ...]`."""
    if inspect.isclass(hint) and not isinstance(hint, types.GenericAlias):
        return [hint] if issubclass(hint, AbstractArray) else []
    return [each for part in typing.get_args(hint) for each in shapes(part)]


def agree(hint: object, value: object, name: str) -> int:
    """Compares the arrays of a value with the shape in its annotation, which binds letters; the number of arrays."""
    found = shapes(hint)
    if not found or value is None:
        return 0
    arrays = value if isinstance(value, tuple) else (value,)
    for each in arrays:
        array = np.asarray(each)
        assert any(isinstance(array, shape) for shape in found), f"{name} {array.shape} is not {hint}"
    return len(arrays)


def fields(record: object) -> dict[str, object]:
    """Annotations of all fields and properties of a record, with those that it inherits."""
    kind = type(record)
    names = {"AbstractTheory": nk.forecasts.AbstractTheory} | {name: getattr(nk, name) for name in dir(nk)}
    found = typing.get_type_hints(kind, localns=names)
    for name in dir(kind):
        value = inspect.getattr_static(kind, name)
        if isinstance(value, property) and not name.startswith("_"):
            found[name] = typing.get_type_hints(value.fget).get("return")
    return found


def called(function, *arguments, **named):
    """The result of a call and the number of its arrays that were compared."""
    signature = inspect.signature(function)
    plain = inspect.isroutine(function) or hasattr(function, "__func__")  # a method of an Equinox module
    hints = typing.get_type_hints(
        getattr(function, "__func__", function) if plain else type(function).__call__
    )
    bound = signature.bind(*arguments, **named)
    with jaxtyped("context"):
        seen = sum(agree(hints.get(name), value, f"`{name}`") for name, value in bound.arguments.items())
        result = function(*arguments, **named)
        if isinstance(result, np.ndarray):
            return result, seen + agree(hints.get("return"), result, "the result")
        for name, hint in fields(result).items():
            if shapes(hint):
                seen += agree(hint, getattr(result, name), f"`{name}`")
    return result, seen


CALLS = {
    "solve": lambda: called(nk.solve, KERNEL, X, Y, FLOW),
    "solve, lists": lambda: called(nk.solve, KERNEL, X.tolist(), Y.tolist()),
    "predict": lambda: called(nk.solve(KERNEL, X, PAIRS, FLOW).predict, NEW),
    "predict, order 1": lambda: called(nk.solve(nk.expand(NET, THETA, 2), X, Y, FLOW, 1).predict, NEW),
    "residual": lambda: called(nk.solve(KERNEL, X, PAIRS, FLOW).residual),
    "simulate": lambda: called(nk.simulate, NET, THETA, X, Y, nk.GradientDescent(0.1, 2)),
    "forecast": lambda: called(nk.forecast, NET, X, Y, FLOW, NEW),
    "forecast, two outputs": lambda: called(nk.forecast, NET, X, PAIRS, FLOW, NEW),
    "forecast, order 1": lambda: called(
        nk.forecast, NET, X[:3], Y[:3], FLOW, NEW[:1], theory=nk.FiniteWidth()
    ),
    "sample": lambda: called(nk.forecast(NET, X, PAIRS, FLOW, NEW).sample, 4, 0),
    "posterior": lambda: called(nk.forecasts.posterior, nk.kernels.NNGP(NET), X, PAIRS, NEW, 0.1),
    "learning_curve": lambda: called(nk.learning_curve, KERNEL, X, PAIRS, nk.Ridge(0.1)),
    "inspect": lambda: called(nk.inspect, NET, THETA, X, Y, NEW, nk.GradientDescent(0.1, 3)),
    "propagate": lambda: called(nk.propagate, NET, X),
    "a layer": lambda: called(nk.propagate(NET, X).__getitem__, 1),
    "kernel": lambda: called(KERNEL, X, NEW),
    "kernel of lists": lambda: called(KERNEL, X.tolist()),
    "kernel of images": lambda: called(nk.kernels.NTK(nk.CNN((4, 4, 1))), IMAGES),
    "diag": lambda: called(KERNEL.diag, X),
}


@pytest.mark.parametrize("name", CALLS)
def test_shapes_of_arguments_and_results_are_those_of_the_signature(name):
    _, seen = CALLS[name]()
    assert seen


def test_outputs_of_a_model_have_the_shape_that_its_contract_says():
    hints = typing.get_type_hints(nk.models.AbstractModel.__call__)
    with jaxtyped("context"):
        assert isinstance(X, hints["x"]) and isinstance(TWO(TWO.init(0), X), hints["return"])
    with jaxtyped("context"):
        assert isinstance(NEW, hints["x"]) and not isinstance(TWO(TWO.init(0), X), hints["return"])


def test_a_wrong_shape_is_found():
    with jaxtyped("context"):
        assert agree(Num[np.ndarray, " n *d"], X, "`x`") == 1
        with pytest.raises(AssertionError, match="`y`"):
            agree(Num[np.ndarray, " n *out"], Y[1:], "`y`")
