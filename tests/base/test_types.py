"""Types of signatures, and the check that compares them with what functions take."""

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Num

from nearkernel._base.types import Array, ArrayLike
from support.typed import Untrue, allows, typed


class Table:
    def __array__(self, dtype=None, copy=None):
        return np.eye(2)


@pytest.mark.parametrize("value", [np.eye(2), jnp.eye(2), [[1.0]], (1, 2), 3.0, np.float32(1), Table()])
def test_whatever_becomes_an_array_is_like_one(value):
    assert isinstance(value, ArrayLike)


@pytest.mark.parametrize("value", ["text", None, {"a": 1}, print])
def test_text_and_functions_are_not_like_arrays(value):
    assert not isinstance(value, ArrayLike)


def test_lists_have_the_shape_of_their_arrays():
    assert allows(Num[ArrayLike, "n d"], [[1.0, 2.0]]) and not allows(Num[ArrayLike, "n d"], [1.0, 2.0])


def test_what_a_function_takes_must_be_allowed():
    @typed
    def double(x: Array, times: int = 2) -> Array:
        if times < 0:
            raise ValueError("times")
        return times * x

    assert double(np.ones(1))[0] == 2
    with pytest.raises(Untrue, match=r"`times` of .*double"):
        double(np.ones(1), 0.5)
    with pytest.raises(ValueError, match="times"):  # the function's own answer
        double(np.ones(1), -0.5)
    with pytest.raises(Untrue, match="`x` of"):
        double(3, 2)


def test_shapes_of_a_call_agree():
    @typed
    def add(x: Num[np.ndarray, " n"], y: Num[np.ndarray, " n"]) -> Num[np.ndarray, " n"]:
        return x + y

    assert len(add(np.ones(2), np.ones(2))) == 2
    with pytest.raises(Untrue, match=r"`y` of .*add"):
        add(np.ones(2), np.ones(1))
