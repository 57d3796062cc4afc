"""Curvature without matrices: operators against dense derivatives, spectra against LAPACK."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import nearkernel as nk
from support.helpers import compiled

G = nk.geometry
RNG = np.random.default_rng(7)
LABELS = RNG.integers(0, 3, 18)
X = RNG.normal(size=(18, 4)) + 2 * np.eye(4)[LABELS]
Y = np.eye(3)[LABELS]
NET = nk.MLP(4, (13,), 3, "tanh", weight_var=1.5, bias_var=0.1)
with jax.enable_x64(True):
    THETA = jax.tree.map(np.asarray, NET.init(jax.random.key(0)))
    FLAT, UNRAVEL = ravel_pytree(THETA)
P = FLAT.size
LOG = nk.from_function(lambda w, x: jnp.log(x @ w))  # -inf at w = 0


LOSSES = {
    "squared": lambda z: 0.5 * jnp.sum((z - Y) ** 2),
    "cross_entropy": lambda z: -jnp.sum(Y * jax.nn.log_softmax(z)),
}
JACOBIAN = compiled(jax.jacobian(lambda flat: NET(UNRAVEL(flat), X)))(FLAT)  # (n, out, P)
DENSE = {
    loss: compiled(jax.hessian(lambda flat, f=f: f(NET(UNRAVEL(flat), X))))(FLAT)
    for loss, f in LOSSES.items()
}


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_the_hessian_operator_is_the_hessian(loss):
    operator = G.Hessian(NET, THETA, X, Y, loss)
    assert operator.size == P
    np.testing.assert_allclose(operator.dense(), DENSE[loss], atol=1e-11)
    if loss == "squared":
        vectors = RNG.normal(size=(P, 2))
        np.testing.assert_allclose(operator(vectors), DENSE[loss] @ vectors, atol=1e-10)
        np.testing.assert_allclose(operator(vectors[:, 0]), DENSE[loss] @ vectors[:, 0], atol=1e-10)


def output_hessian(loss) -> np.ndarray:
    """(n, out, out) second derivatives of the loss by the outputs of a point."""
    z = np.asarray(NET(THETA, X))
    if loss == "squared":
        return np.broadcast_to(np.eye(3), (18, 3, 3))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return p[:, :, None] * np.eye(3) - p[:, :, None] * p[:, None, :]


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_gauss_newton_is_the_fisher_information(loss):
    expected = np.einsum("nop,noq,nqr->pr", JACOBIAN, output_hessian(loss), JACOBIAN)
    np.testing.assert_allclose(G.GaussNewton(NET, THETA, X, Y, loss).dense(), expected, atol=1e-11)
    np.testing.assert_allclose(G.Fisher(NET, THETA, X, Y, loss).dense(), expected, atol=1e-11)


def test_the_empirical_fisher_sums_squared_gradients():
    z = np.asarray(NET(THETA, X))
    each = np.einsum("nop,no->np", JACOBIAN, z - Y)
    np.testing.assert_allclose(G.EmpiricalFisher(NET, THETA, X, Y).dense(), each.T @ each, atol=1e-11)
    np.testing.assert_allclose(G.EmpiricalFisher(NET, THETA, X, Y).gradient(), each.sum(axis=0), atol=1e-11)


def test_gauss_newton_and_tangent_kernel_have_the_same_spectrum():
    kernel = nk.kernels.EmpiricalNTK(NET, THETA).full(X).reshape(54, 54)
    of_kernel = np.linalg.eigvalsh(kernel)
    of_matrix = np.linalg.eigvalsh(G.GaussNewton(NET, THETA, X, Y).dense())
    np.testing.assert_allclose(of_matrix[-54:], of_kernel, atol=1e-11 * of_kernel[-1])
    assert np.abs(of_matrix[:-54]).max() < 1e-11 * of_kernel[-1]
    # For another loss the kernel is dressed by the roots of the outputs' second derivatives.
    values, vectors = np.linalg.eigh(output_hessian("cross_entropy"))
    root = np.einsum("nij,nj,nkj->nik", vectors, np.sqrt(np.maximum(values, 0)), vectors)
    dressed = np.einsum("nij,njmk,mkl->niml", root, kernel.reshape(18, 3, 18, 3), root).reshape(54, 54)
    of_matrix = np.linalg.eigvalsh(G.GaussNewton(NET, THETA, X, Y, "cross_entropy").dense())
    np.testing.assert_allclose(of_matrix[-36:], np.linalg.eigvalsh(dressed)[-36:], atol=1e-11 * of_kernel[-1])


@pytest.mark.parametrize("which", ["largest", "smallest", "magnitude"])
def test_top_eigenpairs_are_those_of_lapack(which):
    operator = G.Hessian(NET, THETA, X, Y)
    found = G.top_eigenpairs(operator, 5, which)
    values = np.linalg.eigvalsh(DENSE["squared"])
    sort = {"largest": -values, "smallest": values, "magnitude": -np.abs(values)}[which]
    np.testing.assert_allclose(found.values, values[np.argsort(sort)[:5]], rtol=1e-8)
    assert (
        found.ok
        and found.status == nk.StatusKind.converged
        and found.residuals.max() < 1e-6 * np.abs(values).max()
    )
    every = G.top_eigenpairs(operator, P, which)
    np.testing.assert_allclose(np.sort(every.values), values, atol=1e-10)


def log_cosh(z, y):
    return jnp.sum(jnp.log(jnp.cosh(z - y)))


def test_any_loss_that_is_a_sum_over_points_has_a_hessian():
    linear = nk.from_function(lambda p, x: x @ p)
    slope = 1 / np.cosh(X @ np.ones(4) - Y[:, 0]) ** 2
    found = G.Hessian(linear, np.ones(4), X, Y[:, 0], log_cosh).dense()
    np.testing.assert_allclose(found, (X.T * slope) @ X, atol=1e-12)


def test_sharpness_is_the_largest_eigenvalue():
    assert G.sharpness(NET, THETA, X, Y) == pytest.approx(np.linalg.eigvalsh(DENSE["squared"])[-1], rel=1e-8)


def test_sharpness_can_be_followed_along_a_run():
    product = nk.from_function(lambda p, x: p[0] * p[1] * x[:, 0])  # Hessian of 1/2 (p0 p1 - 1)^2 by hand
    record = nk.Record(
        {"sharpness": lambda p: G.sharpness(product, p, [[1.0]], [1.0]), "p": lambda p: p}, every=5
    )
    run = nk.simulate(product, np.array([2.0, 0.1]), [[1.0]], [1.0], nk.GradientDescent(0.1, 15), record)
    for (a, b), found in zip(run.history["p"], run.history["sharpness"], strict=True):
        expected = np.linalg.eigvalsh([[b * b, 2 * a * b - 1], [2 * a * b - 1, a * a]])[-1]
        assert found == pytest.approx(expected, rel=1e-10)


def test_moments_of_the_spectral_density_are_right_to_a_percent():
    descent = nk.GradientDescent(0.5 / np.linalg.eigvalsh(DENSE["squared"])[-1], 200)
    params = nk.simulate(NET, THETA, X, Y, descent).params
    operator = G.Hessian(NET, params, X, Y)
    exact = np.linalg.eigvalsh(operator.dense())
    density = G.spectral_density(operator, outliers=10, probes=32)
    for order in (1, 2, 3, 4):
        assert density.moment(order).mean == pytest.approx(np.mean(exact**order), rel=0.01), order
        assert density.moment(order).agrees(np.mean(exact**order))
    np.testing.assert_allclose(density.outliers, exact[np.argsort(-np.abs(exact))[:10]], rtol=1e-5)
    width = 0.03 * exact[-1]
    grid = np.linspace(exact[0] - 6 * width, exact[-1] + 6 * width, 400)
    drawn = density.density(grid, width)
    truth = np.exp(-0.5 * ((grid[:, None] - exact) / width) ** 2).mean(axis=1) / (width * np.sqrt(2 * np.pi))
    assert np.trapezoid(drawn, grid) == pytest.approx(1.0, abs=1e-6)
    assert np.trapezoid(np.abs(drawn - truth), grid) < 0.02
    assert density.count_above(0.2 * exact[-1]) == (exact > 0.2 * exact[-1]).sum()


def test_a_density_of_few_dimensions_is_exact():
    few = nk.from_function(lambda p, x: x @ p)
    operator = G.GaussNewton(few, np.ones(4), X, Y[:, 0])
    exact = np.linalg.eigvalsh(X.T @ X)
    density = G.spectral_density(operator, outliers=2)
    for order in (0, 1, 3):
        assert density.moment(order).mean == pytest.approx(np.mean(exact**order), rel=1e-12)


@pytest.mark.slow
def test_a_density_of_low_rank_ends_early():
    low = G.GaussNewton(NET, THETA, X[:4], Y[:4])  # rank 12 of 107: Lanczos runs out of directions
    density, exact = G.spectral_density(low, outliers=3, probes=80), np.linalg.eigvalsh(low.dense())
    above = density.nodes > 1e-9 * exact[-1]
    counts = 3 + (density.size - 3) * np.sum(density.weights * above, axis=1)  # one a probe
    assert density.count_above(1e-9 * exact[-1]) == pytest.approx(counts.mean(), rel=1e-12)
    error = counts.std(ddof=1) / np.sqrt(len(counts))
    assert error < 0.7 and abs(counts.mean() - 12) < 4 * error
    assert density.moment(2).agrees(np.mean(exact**2))


def test_overlaps_of_spaces():
    basis = np.linalg.qr(RNG.normal(size=(P, 6)))[0]
    overlap = nk.theory.subspace_overlap
    assert overlap((basis[:, :3] @ RNG.normal(size=(3, 3))).T, basis[:, :3].T) == pytest.approx(1.0)
    assert overlap(basis[:, 3:].T, basis[:, :3].T) == pytest.approx(0.0, abs=1e-12)
    assert overlap(basis[:, 1:4].T, basis[:, :2].T) == pytest.approx(0.5)
    operator = G.Hessian(NET, THETA, X, Y)
    gradient = operator.gradient()
    assert nk.theory.gradient_share(operator, np.column_stack([gradient, basis])) == pytest.approx(1.0)
    share = np.sum((basis.T @ gradient) ** 2) / np.sum(gradient**2)
    assert nk.theory.gradient_share(operator, basis) == pytest.approx(share)


@pytest.mark.slow
def test_many_points_are_summed_in_chunks(monkeypatch):
    from nearkernel.geometry.curvature import operators as _curvature

    monkeypatch.setattr(_curvature, "_ROWS", 5)  # 18 points: three chunks and a rest
    net = nk.MLP(4, (3,), 3, "tanh")
    theta = net.init(jax.random.key(1))
    chunked = G.Hessian(net, theta, X, Y).dense()
    monkeypatch.undo()
    parts = [G.Hessian(net, theta, X[rows], Y[rows]).dense() for rows in (slice(0, 9), slice(9, 18))]
    np.testing.assert_allclose(chunked, sum(parts), atol=1e-11)


HUGE = jax.tree.map(lambda leaf: 1e200 * leaf, THETA)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: G.Hessian(sum, THETA, X, Y), "`model` must be a nearkernel model; got builtin"),
        (lambda: G.Hessian(NET, THETA, X, Y[:, :2]), "`y` has 2 outputs per row; the model has 3"),
        (lambda: G.sharpness(NET, THETA, X, Y, "hinge"), "`loss` must be one of"),
        (lambda: G.sharpness(NET, HUGE, X, Y), "holds values up to 1.*e.200, whose squares overflow"),
        (
            lambda: G.sharpness(NET, jax.tree.map(lambda a: a * np.nan, THETA), X, Y),
            r"`params\[0\].* holds .* NaN",
        ),
        (
            lambda: G.Hessian(LOG, np.zeros((X.shape[1], 3)), X, Y),
            "the loss at `params` is .*, so its curvature is undefined",
        ),
        (lambda: G.Fisher(NET, THETA, X, Y, log_cosh), "other losses do not define a distribution of labels"),
        (lambda: G.Hessian(NET, THETA, X, Y)(np.ones(3)), f"`vectors` must have shape \\({P},\\)"),
        (
            lambda: G.top_eigenpairs(G.Hessian(NET, THETA, X, Y), P + 1),
            f"`k` must be at most .* {P}; got {P + 1}",
        ),
        (lambda: G.top_eigenpairs(np.eye(3), 1), "`operator` must be a curvature .* got ndarray"),
        (lambda: G.top_eigenpairs(G.Hessian(NET, THETA, X, Y), 1, "biggest"), "`which` must be one of"),
        (
            lambda: G.spectral_density(G.Hessian(NET, THETA, X, Y), outliers=P + 1),
            "`outliers` must be at most",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert "\n" not in str(error.value)
