"""The tensors of the nearly-kernel formula: what they are, and that predictions without them are theirs."""

import numpy as np
import pytest

import nearkernel as nk
from support.references.quadratic_problems import F, problem, quadratic

MOST = 4.0
TRAINED = {
    "descent": nk.GradientDescent(0.3 / MOST),
    "fast descent": nk.GradientDescent(1.7 / MOST),
    "flow": nk.GradientFlow(),
}
STATIC = {"direct": nk.DirectOptimization(), "least norm": nk.Ridge(0.0)}
pytestmark = pytest.mark.filterwarnings(r"ignore:\|z\^I\|")


def first_order(model, params, z, p, projectors):
    """The formula as it stands: z^F and z^I from mu, Z_A and Z_B; z the outputs at the start on (x, x_new)."""
    n, everything = len(p.x), np.concatenate([p.x, p.x_new])
    e = z[:n] - p.y
    kernel = nk.kernels.EmpiricalNTK(model, params)(everything, p.x)
    inner, cross = kernel[:n], kernel[n:]
    dntk = nk.theory.EmpiricalDNTK(model, params)
    side, top = dntk(p.x, everything, p.x), dntk(everything, p.x, p.x)
    contracted = [np.einsum("abcd,c,d->ab", z, e, e) for z in (projectors.Z_A, projectors.Z_B)]
    full = np.einsum("abc,ac->b", side, contracted[0]) + np.einsum("abc,bc->a", top, contracted[1])
    weights = cross @ np.linalg.inv(inner)
    return z[n:] - weights @ e, full[n:] - weights @ full[:n]


@pytest.mark.parametrize("algorithm", (TRAINED | STATIC).values(), ids=TRAINED | STATIC)
def test_predictions_without_tensors_are_those_with_them(algorithm):
    """At 8 points, from W(0) = 0."""
    p, model = problem(8, 1), quadratic(0.01)
    solution = nk.solve(model, p.x, p.y, algorithm, order=1)
    expected = first_order(model, np.zeros((1, F)), np.zeros(12), p, solution.algorithm_projectors())
    for found, value in zip(solution.predict(p.x_new).terms, expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=0, atol=1e-8 * np.abs(value).max())


def wide_problem(n, features, seed):
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(4, features)) / features**0.5

    def psi(x, u):
        return (x[:, features:] * (directions @ u)) @ directions

    model = nk.QuadraticModel(lambda x: x[:, :features] / features**0.5, psi, 0.01)
    x, x_new = (rng.normal(size=(count, features + 4)) for count in (n, 2))
    return model, x, rng.normal(size=n), x_new


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fast descent", "flow"])
def test_so_they_are_at_30_points_from_another_start(name):
    model, x, y, x_new = wide_problem(30, 42, 2)
    start = 0.5 * np.random.default_rng(0).normal(size=(1, 42))
    kernel = nk.kernels.EmpiricalNTK(model, start)(x)
    algorithm = (
        nk.GradientFlow() if name == "flow" else nk.GradientDescent(1.7 / np.linalg.eigvalsh(kernel)[-1])
    )
    solution = nk.solve(nk.expand(model, start, 2), x, y, algorithm, order=1)
    p = problem(6)._replace(x=x, y=y, x_new=x_new)
    everything = np.concatenate([x, x_new])
    w = start[0]
    z = np.asarray(nk.kernels.FeatureKernel(model.phi).features(everything)) @ w
    z += 0.5 * model.eps * np.asarray(model.psi(everything, w)) @ w
    expected = first_order(model, start, z, p, solution.algorithm_projectors())
    for found, value in zip(solution.predict(x_new).terms, expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=0, atol=1e-8 * np.abs(value).max())


# The tensors themselves, at 7 points


def tensors_of(algorithm):
    p = problem(7, 3)
    kernel = p.x[:, :F] @ p.x[:, :F].T
    found = nk.solve(quadratic(0.001), p.x, p.y, algorithm, order=1).algorithm_projectors()
    return kernel, found, np.einsum("ac,bd->abcd", np.linalg.inv(kernel), np.linalg.inv(kernel))


@pytest.mark.parametrize("algorithm", TRAINED.values(), ids=TRAINED)
def test_x_inverts_a_step_of_training(algorithm):
    kernel, found, _ = tensors_of(algorithm)
    lr = getattr(algorithm, "lr", 0.0)
    unit = np.eye(7)
    step = (
        np.einsum("ac,bd->abcd", kernel, unit)
        + np.einsum("ac,bd->abcd", unit, kernel)
        - lr * np.einsum("ac,bd->abcd", kernel, kernel)
    )
    product = np.einsum("abcd,cdef->abef", found.X, step)
    np.testing.assert_allclose(product, np.einsum("ac,bd->abcd", unit, unit), atol=1e-10)


@pytest.mark.parametrize("algorithm", TRAINED.values(), ids=TRAINED)
def test_projectors_are_the_printed_formulas(algorithm):
    """Z_A = K^-1 x K^-1 - K^-1 on the accumulated leg of X; Z_B = Z_A + lr/2 X."""
    kernel, found, both = tensors_of(algorithm)
    z_a = both - np.einsum("be,aecd->abcd", np.linalg.inv(kernel), found.X)
    np.testing.assert_allclose(found.Z_A, z_a, atol=1e-10)
    np.testing.assert_allclose(found.Z_B, z_a + getattr(algorithm, "lr", 0.0) / 2 * found.X, atol=1e-10)


@pytest.mark.parametrize("algorithm", (TRAINED | STATIC).values(), ids=TRAINED | STATIC)
def test_the_symmetric_part_of_z_b_is_the_same_for_all(algorithm):
    _, found, both = tensors_of(algorithm)
    symmetric = (found.Z_B + found.Z_B.swapaxes(0, 1).swapaxes(2, 3)) / 2
    np.testing.assert_allclose(symmetric, both / 2, atol=1e-10)


@pytest.mark.parametrize("algorithm", TRAINED.values(), ids=TRAINED)
def test_the_symmetric_part_of_z_a_depends_on_the_learning_rate_alone(algorithm):
    _, found, both = tensors_of(algorithm)
    symmetric = (found.Z_A + found.Z_A.swapaxes(0, 1).swapaxes(2, 3)) / 2
    np.testing.assert_allclose(symmetric, (both - getattr(algorithm, "lr", 0.0) * found.X) / 2, atol=1e-10)


def test_static_rules_have_no_x():
    _, direct, both = tensors_of(nk.DirectOptimization())
    assert direct.X is None and not direct.Z_A.any()
    _, least, _ = tensors_of(nk.Ridge(0.0))
    np.testing.assert_allclose(least.Z_A, both, atol=1e-10)
    assert least.X is None


def test_slow_descent_is_flow():
    _, slow, _ = tensors_of(nk.GradientDescent(1e-7))
    _, flow, _ = tensors_of(nk.GradientFlow())
    np.testing.assert_allclose(slow.Z_A, flow.Z_A, atol=1e-5)


def test_projectors_are_for_training_to_its_end_on_few_points():
    p = problem(7, 3)
    for algorithm in (nk.GradientDescent(0.1, steps=9), nk.GradientFlow(1.0), nk.Ridge(0.1)):
        with pytest.raises(
            ValueError, match="a projector exists only for training to convergence: solve without"
        ):
            nk.solve(quadratic(0.001), p.x, p.y, algorithm, order=1).algorithm_projectors()
    many = problem(17, 3)
    with pytest.raises(
        ValueError, match=r"a projector needs a kernel matrix of full rank; its rank for 17 outputs is 11"
    ):
        nk.solve(quadratic(0.001), many.x, many.y, order=1).algorithm_projectors()


def test_projectors_of_many_points_are_refused(monkeypatch):
    p = problem(7, 3)
    solution = nk.solve(quadratic(0.001), p.x, p.y, order=1)
    monkeypatch.setattr("nearkernel.dynamics.orders.projectors._LARGEST", 50_000)
    with pytest.raises(
        MemoryError, match=r"the projectors of 7 points need 56.3 KiB: .* use at most 6 points"
    ):
        solution.algorithm_projectors()
