"""Randomness has a key: one of JAX, or an integer seed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel._base.keys import generator, random_key
from public_calls import CALLS

NET = nk.MLP(3, (4,))
WITH_KEY = [call for call in CALLS if any(kind == "key" for kind, _ in call.arguments.values())]
QUICK = [call for call in WITH_KEY if call.name not in ("sgd_until_stationary", "gaussianity")]


def test_every_call_that_draws_is_looked_at():
    assert len(WITH_KEY) >= 18


@pytest.mark.parametrize("call", QUICK, ids=lambda call: call.name)
@pytest.mark.parametrize("seed", [0, np.int64(7)])
def test_a_whole_number_is_the_key_that_it_seeds(call, seed):
    found, expected = (
        call.function(**{**call.good(), "key": key}) for key in (seed, jax.random.key(int(seed)))
    )
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        if hasattr(one, "dtype"):
            np.testing.assert_array_equal(one, other)


def test_raw_keys_and_other_kinds_are_taken_as_they_are():
    raw = jax.random.PRNGKey(3)
    np.testing.assert_array_equal(NET.init(raw)[0]["weight"], NET.init(jax.random.key(3))[0]["weight"])
    assert random_key(raw) is raw
    assert NET.init(jax.random.key(3, impl="rbg"))[0]["weight"].shape == (3, 4)


def test_keys_and_seeds_can_be_mapped_over():
    many = jax.vmap(lambda key: NET.init(key)[1]["bias"])(jax.random.split(jax.random.key(0), 5))
    assert many.shape == (5, 1) and len(np.unique(many)) == 5
    seeds = jax.vmap(lambda seed: NET.init(seed)[1]["bias"])(jnp.arange(5))
    assert seeds.shape == (5, 1) and len(np.unique(seeds)) == 5


def test_a_large_seed_is_not_cut_off():
    draws = [generator(seed).normal() for seed in (0, 2**32, 2**40, 2**63 - 1)]
    assert len(set(draws)) == 4


@pytest.mark.parametrize(
    "key, error, message",
    [
        ("a", TypeError, r"`key` must be a key such as jax\.random\.key\(0\), or an integer seed.*got 'a'"),
        (None, TypeError, "`key` must be a key .* it is missing"),
        (1.5, TypeError, "`key` must be a key .* got 1.5"),
        (True, TypeError, "`key` must be a key .* got True"),
        (np.zeros(2), TypeError, r"`key` must be a key .* got an array of shape \(2,\)"),
        (-1, ValueError, r"`key` must be a key, or a seed from 0 to 2\^63 - 1; got -1"),
        (2**63, ValueError, r"`key` must be a key, or a seed from 0 to 2\^63 - 1; got 9223372036854775808"),
        (jax.random.split(jax.random.key(0), 3), ValueError, r"`key` must be one key; got an array of keys"),
        (
            np.zeros((3, 2), np.uint32),
            ValueError,
            r"got an array of keys of shape \(3,\): take one, or use jax.vmap",
        ),
    ],
)
def test_what_is_no_key_is_explained(key, error, message):
    with pytest.raises(error, match=message):
        NET.init(key)
