"""Ways to use derivatives without arrays of them, against the arrays."""

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import nearkernel as nk
from nearkernel.models.expansion import derivatives as _derivatives
from nearkernel.models.expansion import feature_derivatives as _feature_derivatives
from nearkernel.results import FeatureDerivatives, ModelDerivatives
from support.helpers import points
from support.references.quadratic_problems import F, cubic, problem, psi_array, third_array

D = 3
NET = nk.MLP(D, (4,), out_dim=2, activation="tanh", bias_var=0.3)
PARAMS = NET.init(jax.random.key(0))
X = points(5, D)
KINDS = ("push", "pull", "bend", "bend_pull", "twist")


@pytest.fixture(scope="module")
def arrays():
    """First, second and third derivative of the outputs (m, P, ...), by nested forward differentiation."""
    with jax.enable_x64(True):
        theta, unravel = ravel_pytree(PARAMS)
        function = lambda t: NET(unravel(t), X).reshape(-1)
        one = jax.jacfwd(function)
        two = jax.jacfwd(one)
        return tuple(np.asarray(jax.jit(f)(theta)) for f in (one, two, jax.jacfwd(two)))


def expected(kind, arrays, *batches):
    f, psi, third = arrays
    formula, array = {
        "push": ("aj,rj->ra", f),
        "pull": ("ra,aj->rj", f),
        "bend": ("ajk,rj,rk->ra", psi),
        "bend_pull": ("ra,ajk,rk->rj", psi),
        "twist": ("ajkl,rj,rk,rl->ra", third),
        "twist_pull": ("ra,ajkl,rk,rl->rj", third),
    }[kind]
    vectors = {"twist": batches * 3, "twist_pull": (batches[0], *batches[1:] * 2)}.get(kind, batches)
    order = [vectors[0], array, *vectors[1:]] if formula.startswith("ra") else [array, *vectors]
    return np.einsum(formula, *order, optimize=True)


def batches_for(kind, derivatives, count):
    rng = np.random.default_rng(count)
    weights, u, v = (
        rng.normal(size=(count, n)) for n in (derivatives.outputs, derivatives.size, derivatives.size)
    )
    return {
        "push": (u,),
        "pull": (weights,),
        "bend": (u, v),
        "bend_pull": (weights, v),
        "twist": (u,),
        "twist_pull": (weights, u),
    }[kind]


def check(derivatives, arrays, kinds, count):
    with jax.enable_x64(True):
        for kind in kinds:
            batches = batches_for(kind, derivatives, count)
            found = getattr(derivatives, kind)(*batches)
            np.testing.assert_allclose(found, expected(kind, arrays, *batches), rtol=1e-9, atol=1e-11)
            assert derivatives.passes[kind] == count


def check_curves(derivatives, arrays, count):
    """What curvature adds along w = t w0 + t^2 w1 to outputs and to gradients, from the tensors."""
    _, psi, third = arrays
    rng = np.random.default_rng(count)
    r = [rng.normal(size=(count, derivatives.outputs)) for _ in range(2)]
    w = [rng.normal(size=(count, derivatives.size)) for _ in range(2)]
    bent = lambda u, v: np.einsum("ajk,rj,rk->ra", psi, u, v)
    pulled = lambda p, v: np.einsum("ra,ajk,rk->rj", p, psi, v)
    outputs = {1: bent(w[0], w[0]) / 2, 2: bent(w[0], w[1])}
    gradients = {1: pulled(r[0], w[0]), 2: pulled(r[1], w[0]) + pulled(r[0], w[1])}
    if derivatives.degree > 2:
        outputs[2] += np.einsum("ajkl,rj,rk,rl->ra", third, w[0], w[0], w[0]) / 6
        gradients[2] += np.einsum("ra,ajkl,rk,rl->rj", r[0], third, w[0], w[0]) / 2
    with jax.enable_x64(True):
        for k in (1, 2):
            b, h = derivatives.curved(k, r, w)
            np.testing.assert_allclose(derivatives.curve(k, w), outputs[k], rtol=1e-9, atol=1e-10)
            np.testing.assert_allclose(b, outputs[k], rtol=1e-9, atol=1e-10)
            np.testing.assert_allclose(h, gradients[k], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("mode", ("taylor", "nested", "quadratic"))
def test_curves_of_any_model_are_their_series(arrays, mode):
    with jax.enable_x64(True):
        derivatives = ModelDerivatives(NET, PARAMS, X, 2 if mode == "quadratic" else 3)
        assert derivatives._mode == ("quadratic" if mode == "quadratic" else "taylor")
        derivatives._mode = mode
    check_curves(derivatives, arrays, 3)


def test_a_model_without_taylor_rules_is_nested():
    net = nk.MLP(D, (4,), activation="softplus")
    with jax.enable_x64(True):
        derivatives = ModelDerivatives(net, net.init(jax.random.key(1)), X, 3)
        assert derivatives._mode == "nested"


def test_passes_of_any_model_are_its_derivatives(arrays):
    with jax.enable_x64(True):
        derivatives = ModelDerivatives(NET, PARAMS, X, 3)
    assert derivatives.size == arrays[0].shape[1] and derivatives.outputs == 10
    check(derivatives, arrays, KINDS, 3)
    with jax.enable_x64(True):
        p, v = batches_for("bend_pull", derivatives, 3)
        np.testing.assert_allclose(
            derivatives.bend_pull_sum(p, v), derivatives.bend_pull(p, v).sum(0), atol=1e-12
        )


def test_rows_and_directions_may_come_in_chunks(arrays):
    with jax.enable_x64(True):
        derivatives = ModelDerivatives(NET, PARAMS, X, 3)
        derivatives._rows, derivatives._batch = 2, 2  # 5 inputs in 3 chunks, 3 directions in 2
    check(derivatives, arrays, ("push", "pull", "bend_pull"), 3)


def test_chunks_follow_from_the_memory_allowed(monkeypatch):
    with jax.enable_x64(True):
        assert ModelDerivatives(NET, PARAMS, X, 3)._rows == 5
        monkeypatch.setattr(_derivatives, "BUDGET", 1)
        small = ModelDerivatives(NET, PARAMS, X, 3)
    assert small._rows == 1 and small._batch == 1


P = problem(7, 0)
TENSORS = (P.x[:, :F], psi_array(P.x), third_array(P.x))


@pytest.mark.parametrize("count", (1, 11))
def test_passes_of_given_features_are_their_tensors(count):
    with jax.enable_x64(True):
        derivatives = FeatureDerivatives(cubic(0.3), P.x)  # at eps = 1, whatever the model's
    check(derivatives, TENSORS, (*KINDS, "twist_pull"), count)
    check_curves(derivatives, TENSORS, count)
    with jax.enable_x64(True):
        p, v = batches_for("bend_pull", derivatives, count)
        np.testing.assert_allclose(
            derivatives.bend_pull_sum(p, v), derivatives.bend_pull(p, v).sum(0), atol=1e-12
        )
        u = batches_for("push", derivatives, count)[0]
        np.testing.assert_allclose(
            list(derivatives.drifts(u)), np.einsum("njk,rk->rnj", TENSORS[1], u), atol=1e-12
        )


def test_given_features_too_come_in_chunks(monkeypatch):
    monkeypatch.setattr(_feature_derivatives, "BUDGET", 3 * 8 * 2 * 8 * F)  # three rows
    with jax.enable_x64(True):
        derivatives = FeatureDerivatives(cubic(0.3), P.x)
    check(derivatives, TENSORS, (*KINDS, "twist_pull"), 5)
    with jax.enable_x64(True):
        u = batches_for("push", derivatives, 2)[0]
        np.testing.assert_allclose(
            list(derivatives.drifts(u)), np.einsum("njk,rk->rnj", TENSORS[1], u), atol=1e-12
        )


def test_the_degree_is_the_models():
    with jax.enable_x64(True):
        assert FeatureDerivatives(cubic(0.3), P.x).degree == 3
        assert FeatureDerivatives(nk.QuadraticModel(cubic(0.3).phi, cubic(0.3).psi), P.x).degree == 2


def test_features_of_too_many_points_are_refused(monkeypatch):
    monkeypatch.setattr("nearkernel._run.memory.available_bytes", lambda: 100)
    with pytest.raises(MemoryError, match=r"features of 5 points needs .* but 100 bytes are free: use fewer"):
        nk.theory.effective_features(NET, PARAMS, X)
