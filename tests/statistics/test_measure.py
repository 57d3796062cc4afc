"""`measure`: means and standard errors of ensembles, in bounded memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk

NET = nk.MLP(3, (5,), 2, "tanh", weight_var=1.5, bias_var=0.2)
X = np.random.default_rng(2).normal(size=(4, 3))


def test_mean_and_error_are_those_of_the_draws():
    key = jax.random.key(4)
    found = nk.measure(lambda p: {"z": NET(p, X), "norm": jnp.sum(p[0]["weight"] ** 2)}, NET, 50, key)
    draws = [NET.init(jax.random.fold_in(key, i)) for i in range(50)]
    z = np.stack([np.asarray(NET(p, X)) for p in draws])
    np.testing.assert_allclose(found.mean["z"], z.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.sem["z"], z.std(axis=0, ddof=1) / np.sqrt(50), atol=1e-12)
    assert found.mean["norm"].shape == () and found.size == 50


def test_chunks_do_not_change_the_answer():
    whole = nk.measure(lambda p: NET(p, X), NET, 300, jax.random.key(1))
    pieces = nk.measure(lambda p: NET(p, X), NET, 300, jax.random.key(1), memory="8kB")
    np.testing.assert_allclose(whole.mean, pieces.mean, atol=1e-13)
    np.testing.assert_allclose(whole.sem, pieces.sem, atol=1e-13)


def test_agreement_is_counted_in_standard_errors():
    found = nk.measure(lambda p: p[0]["weight"][:, 0], NET, 400, jax.random.key(3))
    assert found.agrees(np.zeros(3)) and not found.agrees(np.full(3, 0.5))
    np.testing.assert_allclose(found.deviation(found.mean + found.sem), -1.0)
    constant = nk.measure(lambda p: jnp.ones(2), NET, 10, jax.random.key(0))
    assert constant.agrees(np.ones(2)) and not constant.agrees(np.ones(2) + 1e-9)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: nk.measure(lambda p: p[0]["bias"], NET, 1, jax.random.key(0)),
            "`size` must be at least 2; got 1",
        ),
        (
            lambda: nk.measure(lambda p: 1.0, NET, 5, jax.random.key(0), memory="lots"),
            '`memory` must be a size such as "4GiB"',
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
