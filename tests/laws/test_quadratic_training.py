"""Training of quadratic and cubic models seen in three ways: parameters, outputs with features, outputs alone."""

import numpy as np
import pytest

import nearkernel as nk
from support.references.quadratic_problems import (
    F,
    Known,
    cubic,
    problem,
    psi_array,
    quadratic,
    slope,
    third_array,
    trained,
)

LR, STEPS = 0.3, 40  # lr * lambda_max = 1.2
P = problem(5, 1, new=2)
EVERYTHING = np.concatenate([P.x, P.x_new])
START = 0.4 * np.random.default_rng(0).normal(size=(1, F))
pytestmark = pytest.mark.filterwarnings(r"ignore:\|z\^I\|")


def run(model):
    """Outputs and kernel on all inputs after training, from the parameters themselves; and the run."""
    algorithm = nk.GradientDescent(LR, steps=STEPS)
    record = nk.Record(["outputs", "features", "kernel", "weights"], every=1)
    found = nk.simulate(model, START, P.x, P.y, algorithm, record)
    features = nk.theory.effective_features(model, found.params, EVERYTHING)[:, 0]
    return np.asarray(model(found.params, EVERYTHING))[:, 0], features @ features.T, found


def test_a_run_keeps_outputs_features_kernel_and_weights():
    eps = 0.05
    z, kernel, found = run(quadratic(eps))
    history = found.history
    assert history["weights"].shape == (STEPS + 1, 1, F)
    for t in (0, 17, STEPS):
        known, w = Known(P.x, eps), history["weights"][t, 0]
        np.testing.assert_allclose(history["outputs"][t, :, 0], known.outputs(w), atol=1e-12)
        np.testing.assert_allclose(history["features"][t, :, 0], known.features(w), atol=1e-12)
        np.testing.assert_allclose(
            history["kernel"][t, :, 0, :, 0], known.features(w) @ known.features(w).T, atol=1e-12
        )
    np.testing.assert_allclose(z[:5], history["outputs"][-1, :, 0], atol=1e-12)
    np.testing.assert_allclose(kernel[:5, :5], history["kernel"][-1, :, 0, :, 0], atol=1e-12)


def features_recursion(x, start, eps, degree):
    """z and f^E in steps that know psi, Psi and the data, but no weights: exact."""
    known, psi = Known(x, eps), eps * psi_array(x)
    third = eps**2 * third_array(x) * (degree == 3)
    w = start[0]
    z = known.outputs(w) + third @ w @ w @ w / 6
    f = known.features(w) + 0.5 * third @ w @ w
    psi = psi + third @ w
    n = len(P.x)
    for _ in range(STEPS):
        g = -LR * f[:n].T @ (z[:n] - P.y)
        z, f, psi = (
            z + f @ g + 0.5 * psi @ g @ g + third @ g @ g @ g / 6,
            f + psi @ g + 0.5 * third @ g @ g,
            psi + third @ g,
        )
    return z, f @ f.T


@pytest.mark.parametrize("model", (quadratic, pytest.param(cubic, marks=pytest.mark.slow)))
def test_outputs_and_features_close_among_themselves(model):
    """The parameter-space run and the recursion of (z, f^E) agree to rounding, at any eps."""
    z, kernel, _ = run(model(0.05))
    outputs, inner = features_recursion(EVERYTHING, START, 0.05, 2 if model is quadratic else 3)
    np.testing.assert_allclose(outputs, z, rtol=1e-10)
    np.testing.assert_allclose(inner, kernel, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("model", "order"),
    (
        (quadratic, 0),
        (quadratic, 1),
        (quadratic, 2),
        pytest.param(cubic, 2, marks=pytest.mark.slow),
    ),
)
def test_outputs_and_kernel_close_order_by_order(model, order):
    """The recursion of (z, k): frozen k is right to eps, frozen mu to eps^2, frozen second tensors to eps^3."""
    eps, errors = (2e-3, 5e-4), []
    for e in eps:
        z, kernel, _ = run(model(e))
        found = nk.theory.sample_space_descent(model(e), START, P.x, P.y, LR, STEPS, P.x_new, order)
        assert found.outputs.shape == (STEPS + 1, 7) and found.kernel.shape == (STEPS + 1, 7, 7)
        errors.append([np.linalg.norm(found.outputs[-1] - z), np.linalg.norm(found.kernel[-1] - kernel)])
    slopes = [slope(eps, column) for column in zip(*errors, strict=True)]
    assert slopes == pytest.approx([order + 1] * 2, abs=0.1)


def test_one_step_is_the_formula():
    """z, k and mu after one step, against the cubic model itself: no error in z and mu's effect on z of the next."""
    eps, tiny = 0.05, 1e-3
    model = cubic(eps)
    f = nk.theory.effective_features(model, START, EVERYTHING)[:, 0]
    e = np.asarray(model(START, P.x))[:, 0] - P.y
    after = START - tiny * f[:5].T @ e
    mu_before, mu_after = (nk.theory.EmpiricalDNTK(model, w)(EVERYTHING) for w in (START, after))
    nu, kappa = nk.theory.EmpiricalDDNTK(model, START)(EVERYTHING)
    turned = kappa[:, :, :, :5] @ e
    change = -tiny * (nu[:, :, :, :5] @ e + turned + turned.swapaxes(1, 2))
    assert np.abs(mu_after - mu_before - change).max() < 0.02 * np.abs(change).max()
    found = nk.theory.sample_space_descent(model, START, P.x, P.y, tiny, 1, P.x_new, order=2)
    np.testing.assert_allclose(found.outputs[1], np.asarray(model(after, EVERYTHING))[:, 0], rtol=1e-12)


def test_bad_input_of_the_recursion_gets_one_line():
    with pytest.raises(ValueError, match="`order` must be 0, 1 or 2; got 3"):
        nk.theory.sample_space_descent(quadratic(0.1), START, P.x, P.y, LR, STEPS, order=3)
    with pytest.raises(ValueError, match=r"`y` must have one value per output at `x`; got \(4,\)"):
        nk.theory.sample_space_descent(quadratic(0.1), START, P.x, P.y[:4], LR, STEPS)


def test_the_first_order_at_finite_steps_is_its_recursion():
    """e0, the accumulated a and the force F_d, in sample space."""
    eps, n = 0.01, 5
    f = EVERYTHING[:, :F]
    kernel = f @ f[:n].T
    mu = eps * np.einsum("ajk,bj,ck->abc", psi_array(EVERYTHING), f, f)
    e0, a, z = -P.y.copy(), np.zeros(n), np.zeros(len(f))
    for _ in range(STEPS):
        force = (
            LR * (mu[:, :n, :n] + mu[:n, :, :n].swapaxes(0, 1)) @ a @ e0 + LR**2 / 2 * mu[:, :n, :n] @ e0 @ e0
        )
        z = z - LR * kernel @ z[:n] + force
        e0, a = e0 - LR * kernel[:n] @ e0, a + LR * e0
    solution = nk.solve(quadratic(eps), P.x, P.y, nk.GradientDescent(LR, steps=STEPS), order=1)
    np.testing.assert_allclose(solution.predict(EVERYTHING).terms[1], z, atol=1e-9)


def test_the_unique_minimum_has_a_residual_term():
    """W^I = -G^-1 [f^T psi[W^F, W^F]/2 + H[r] W^F]; without H[r] the error is of first order."""
    p = problem(15, 2)
    f, psi = p.x[:, :F], psi_array(p.x)
    for ridge in (0.0, 0.4):
        gram = f.T @ f + ridge * np.eye(F)
        w = np.linalg.solve(gram, f.T @ p.y)
        r = f @ w - p.y
        bent = f.T @ (0.5 * psi @ w @ w)
        pushed = np.einsum("n,njk,k->j", r, psi, w)
        expected = -np.linalg.solve(gram, bent + pushed)
        first, second = nk.solve(quadratic(0.01), p.x, p.y, nk.Ridge(ridge), order=1).weights
        np.testing.assert_allclose(first[0], w, atol=1e-11)
        np.testing.assert_allclose(second[0], 0.01 * expected, atol=1e-11)
    errors, eps = [], (4e-3, 1e-3)
    for e in eps:
        exact = trained(nk.Ridge(0.0), p, e)[0]
        w = np.linalg.solve(f.T @ f, f.T @ p.y)
        expected = [-np.linalg.solve(f.T @ f, bent_ + h) for bent_, h in _terms(f, psi, p.y, w)]
        errors.append([np.linalg.norm(w + e * each - exact) for each in expected])
    assert [slope(eps, c) for c in zip(*errors, strict=True)] == pytest.approx([2, 1], abs=0.05)


def _terms(f, psi, y, w):
    bent, pushed = f.T @ (0.5 * psi @ w @ w), np.einsum("n,njk,k->j", f @ w - y, psi, w)
    return (bent, pushed), (bent, 0 * pushed)


def test_features_drift_towards_where_the_weights_go():
    """f^E(t) - f^E(0) = eps psi (1 - exp(-f^T f t)) (theta* - theta_0) for the flow, to first order."""
    p, time = problem(6, 3), 3.0
    f = p.x[:, :F]
    lam, v = np.linalg.eigh(f.T @ f)
    target = np.linalg.pinv(f) @ p.y
    moved = v @ ((1 - np.exp(-lam * time)) * (v.T @ target))
    eps, errors = (8e-3, 2e-3), []
    for e in eps:
        w = trained(nk.GradientFlow(time), p, e)[0]
        drift = Known(p.x, e).features(w) - f
        errors.append(
            [np.linalg.norm(drift - sign * e * psi_array(p.x) @ moved) for sign in (1, -1)]
        )  # the other sign is wrong at first order
    assert [slope(eps, c) for c in zip(*errors, strict=True)] == pytest.approx([2, 1], abs=0.05)


@pytest.mark.slow
def test_batches_train_it_too():
    import jax

    found = nk.simulate(
        quadratic(0.05), START, P.x, P.y, nk.SGD(0.05, batch_size=2, steps=400), key=jax.random.key(0)
    )
    assert found.ok and found.history["loss"][-1] < 0.05 * found.history["loss"][0]
