"""Which parameters train: patterns, functions and adapters of low rank."""

import numpy as np
import pytest

import nearkernel as nk
from nearkernel.models.interop.trainable import Parameter, choose

NAMES = ("embed.weight", "blocks.0.norm.weight", "blocks.0.mlp.weight", "blocks.0.mlp.bias", "head.weight")
PARAMETERS = {
    name: Parameter(
        names=(name, "tied.weight") if name == "embed.weight" else (name,),
        owner=name.rpartition(".")[0],
        shape=(3,) if "norm" in name or "bias" in name else (4, 3),
        requires_grad=not name.startswith("embed"),
        embeds=name.startswith("embed"),
    )
    for name in NAMES
}


def names(trainable):
    return list(choose(trainable, PARAMETERS).names)


def test_patterns_fit_parameters_and_the_submodules_that_hold_them():
    assert names("head") == names("head.*") == names("h*d.weight") == ["head.weight"]
    assert names("blocks") == list(NAMES[1:4])
    assert names("blocks.*.mlp") == list(NAMES[2:4])
    assert names("*.bias") == ["blocks.0.mlp.bias"]
    assert names("tied") == ["embed.weight"]  # by any of its names
    assert names(["head", "*norm*"]) == ["blocks.0.norm.weight", "head.weight"]


def test_by_default_what_requires_gradients_trains():
    assert names(None) == list(NAMES[1:])
    frozen = {name: each._replace(requires_grad=False) for name, each in PARAMETERS.items()}
    with pytest.raises(
        ValueError, match=r"`trainable` finds no parameter that requires gradients in `module`, which h"
    ):
        choose(None, frozen)


def test_a_function_sees_name_and_owner():
    assert names(lambda name, owner: owner.endswith("norm")) == ["blocks.0.norm.weight"]
    with pytest.raises(
        ValueError, match=r"`trainable` finds no parameter for which the function is true in `module`"
    ):
        names(lambda name, owner: False)


def test_adapters_start_at_zero_and_leave_embeddings_out():
    choice = choose(nk.LoRA(rank=2), PARAMETERS)
    assert choice.names == () and [each.name for each in choice.adapters] == [
        "blocks.0.mlp.weight",
        "head.weight",
    ]
    assert {name: array.shape for name, array in choice.drawn.items()} == {
        "blocks.0.mlp.weight.A": (2, 3),
        "blocks.0.mlp.weight.B": (4, 2),
        "head.weight.A": (2, 3),
        "head.weight.B": (4, 2),
    }
    assert all((choice.drawn[each.second] == 0).all() for each in choice.adapters)
    first = choice.drawn["head.weight.A"]
    assert np.abs(first).max() <= 3**-0.5 and np.abs(first).max() > 0.1
    again = choose(nk.LoRA(rank=2, seed=1), PARAMETERS).drawn["head.weight.A"]
    assert not np.array_equal(first, again)
    assert nk.LoRA(rank=4, alpha=8.0).scale == 2.0 and nk.LoRA(rank=4).scale == 1.0


def test_bad_choices_cost_one_line():
    with pytest.raises(ValueError, match=r"`trainable` finds no matrix like 'norm\*' in `module`"):
        choose(nk.LoRA(names="norm*"), PARAMETERS)
    with pytest.raises(ValueError, match=r"`trainable` both trains 'head\.weight' and adapts it: choose one"):
        choose([nk.LoRA(names="head"), "head"], PARAMETERS)
    with pytest.raises(
        TypeError, match=r"`trainable` must be a pattern such as 'head\.\*', a function .*; got int"
    ):
        choose(3, PARAMETERS)
    with pytest.raises(ValueError, match=r"`rank` must be at least 1; got 0"):
        nk.LoRA(rank=0)
    with pytest.raises(ValueError, match=r"`alpha` must be greater than 0; got -1"):
        nk.LoRA(alpha=-1.0)
