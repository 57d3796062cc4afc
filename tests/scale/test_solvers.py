"""Every solver against the factor: the same coefficients, or a status that says why not."""

import numpy as np
import pytest

import nearkernel as nk
from nearkernel.dynamics import ConjugateGradients, Direct, EigenPro, Nystrom, Richardson

rng = np.random.default_rng(5)
N = 430
X, X_NEW = rng.normal(size=(N, 4)), rng.normal(size=(30, 4))
Y = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2], np.zeros(N)], axis=1)  # a column of zeros too
Y[:, :2] += 0.1 * rng.normal(size=(N, 2))
RBF, NTK = nk.kernels.RBF(1.5), nk.kernels.NTK(nk.MLP(4, (8, 8), 1, "relu", weight_var=2.0))
SMALL = 2_000_000  # bytes: the matrix does not fit

SOLVERS = {
    "cg": (ConjugateGradients(tol=1e-10), 1e-8),
    "cg recomputed": (ConjugateGradients(tol=1e-10, memory=SMALL), 1e-8),
    "richardson": (Richardson(tol=1e-8), 1e-6),
    "eigenpro": (EigenPro(tol=1e-7, rank=60, sample=200, batch_size=50, epochs=400), 1e-5),
    "all centers": (Nystrom(centers=N), 1e-5),
}


@pytest.mark.parametrize("kernel", [RBF, NTK], ids=["rbf", "ntk"])
@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_finds_the_ridge_solution(kernel, name):
    solver, close = SOLVERS[name]
    expected = nk.solve(kernel, X, Y, nk.Ridge(1.0), solver="direct").predict(X_NEW).mean
    found = nk.solve(kernel, X, Y, nk.Ridge(1.0), solver=solver)
    assert found.ok, found.status
    assert np.abs(found.predict(X_NEW).mean - expected).max() < close * np.abs(expected).max()
    assert np.all(found.predict(X_NEW).mean[:, 2] == 0.0) or name == "all centers"


@pytest.mark.parametrize("momentum", [0.0, 0.6])
@pytest.mark.parametrize("solver", ["richardson", Richardson(memory=SMALL), Nystrom(centers=N)], ids=str)
def test_early_stopped_iterations_are_gradient_descent_at_finite_time(momentum, solver):
    algorithm = nk.GradientDescent(lr=2e-3, steps=37, momentum=momentum)
    expected = nk.solve(RBF, X, Y, algorithm, solver="direct").predict(X_NEW).mean
    found = nk.solve(RBF, X, Y, algorithm, solver=solver)
    close = 2e-6 if isinstance(solver, Nystrom) else 1e-10  # sums of squares know half of the digits
    assert np.abs(found.predict(X_NEW).mean - expected).max() < close
    if solver == "richardson":
        assert found.iterations == 37 and str(found.status) == "stopped at step 37"


@pytest.mark.parametrize(
    "algorithm", [nk.GradientFlow(time=2.0), nk.GradientFlow(time=3.0, friction=1.0), nk.DirectOptimization()]
)
def test_all_points_as_centers_give_any_algorithm(algorithm):
    kernel = nk.kernels.Laplace(1.0)
    expected = nk.solve(kernel, X, Y[:, 0], algorithm, solver="direct")
    found = nk.solve(kernel, X, Y[:, 0], algorithm, solver=Nystrom(centers=X))
    assert np.abs(found.predict(X_NEW).mean - expected.predict(X_NEW).mean).max() < 1e-7
    if algorithm.end() < np.inf:
        assert (
            np.abs(found.predict(X_NEW, time=0.5).mean - expected.predict(X_NEW, time=0.5).mean).max() < 1e-7
        )


def test_few_centers_are_the_features_that_they_make():
    """k(x, C) K_CC^-1 k(C, x') as a kernel of its own, solved whole."""
    centers = X[:25]
    found = nk.solve(RBF, X, Y[:, 0], nk.Ridge(0.1), solver=Nystrom(centers=centers))
    whiten = np.linalg.inv(np.linalg.cholesky(RBF(centers))).T
    phi, phi_new = RBF(X, centers) @ whiten, RBF(X_NEW, centers) @ whiten
    expected = phi_new @ np.linalg.solve(phi.T @ phi + 0.1 * np.eye(25), phi.T @ Y[:, 0])
    assert np.abs(found.predict(X_NEW).mean - expected).max() < 1e-8
    fitted = found.predict(X).mean
    assert found.relative_residual == pytest.approx(
        np.linalg.norm(Y[:, 0] - fitted) / np.linalg.norm(Y[:, 0])
    )
    other = found.at(nk.Ridge(2.0)).predict(X_NEW).mean
    again = nk.solve(RBF, X, Y[:, 0], nk.Ridge(2.0), solver=Nystrom(centers=centers)).predict(X_NEW).mean
    assert np.abs(other - again).max() < 1e-10


def test_residual_and_iterations_are_reported_truly():
    found = nk.solve(RBF, X, Y[:, 0], nk.Ridge(0.1), solver=ConjugateGradients(tol=1e-6, rank=10))
    true = Y[:, 0] - (RBF(X) + 0.1 * np.eye(N)) @ found.coefficients[:, 0]
    assert found.relative_residual == pytest.approx(np.linalg.norm(true) / np.linalg.norm(Y[:, 0]), rel=1e-6)
    assert found.relative_residual <= 1e-6 and found.iterations == len(found.history) > 3
    assert str(found.status) == f"converged in {found.iterations} iterations" and found.seconds > 0


def test_the_preconditioner_saves_iterations():
    runs = [
        nk.solve(RBF, X, Y[:, 0], nk.Ridge(1e-3), solver=ConjugateGradients(rank=rank)) for rank in (1, 150)
    ]
    assert runs[1].iterations < 0.5 * runs[0].iterations


def test_auto_factors_small_problems_and_iterates_on_large_ones(monkeypatch):
    from nearkernel.dynamics.linear import by_products as _by_products

    assert isinstance(nk.solve(RBF, X, Y, nk.Ridge(0.1)), nk.results.Solution)
    monkeypatch.setattr(_by_products, "_DIRECT", 100)
    expected = nk.solve(RBF, X, Y, nk.Ridge(0.5), solver="direct").predict(X_NEW).mean
    found = nk.solve(RBF, X, Y, nk.Ridge(0.5))
    assert isinstance(found, nk.results.Solution)  # the kind does not depend on the number of points
    assert found.solver.name == "cg" and found.iterations == len(found.history) > 3 and found.rank == N
    np.testing.assert_allclose(found.residual(), -0.5 * found.coefficients, atol=1e-6)
    assert found.leave_one_out().error == pytest.approx(
        nk.solve(RBF, X, Y, nk.Ridge(0.5), solver="direct").leave_one_out().error, rel=1e-6
    )
    assert (
        "converged in " in found.status.message and np.abs(found.predict(X_NEW).mean - expected).max() < 1e-6
    )
    # Too badly conditioned for as many products as a factor costs: factored after all.
    slow = nk.solve(RBF, X, Y, nk.Ridge(1e-7))
    expected = nk.solve(RBF, X, Y, nk.Ridge(1e-7), solver="direct").predict(X_NEW).mean
    assert "by factoring K" in slow.status.message and slow.relative_residual < 1e-8
    assert np.abs(slow.predict(X_NEW).mean - expected).max() < 1e-6
    # A factor of a matrix that is nearly singular may leave a residual too.
    for tol, ok in ((1e-6, True), (1e-9, False)):
        monkeypatch.setattr(_by_products, "_FACTORED", tol)
        hard = nk.solve(RBF, X, Y, nk.Ridge(1e-9))
        assert (
            1e-9 < hard.relative_residual < 1e-6 and hard.ok == ok and "by factoring K" in hard.status.message
        )
    assert hard.status == nk.StatusKind.not_converged
    # Without a ridge, or at a finite time, the factor is the choice.
    assert isinstance(nk.solve(RBF, X, Y), nk.results.Solution)
    assert isinstance(nk.solve(RBF, X, Y, nk.GradientFlow(time=1.0)), nk.results.Solution)
    monkeypatch.setattr(_by_products, "held_fits", lambda n, memory: False)
    with pytest.raises(MemoryError, match="use solver='richardson'"):
        nk.solve(RBF, X, Y, nk.GradientFlow(time=1.0))
    assert nk.solve(RBF, X, Y, nk.Ridge(0.5)).ok


def test_a_tolerance_that_cannot_be_reached_is_a_status():
    found = nk.solve(RBF, X, Y, nk.Ridge(1e-6), solver=ConjugateGradients(tol=1e-15, rank=50, iterations=60))
    assert (
        found.status == nk.StatusKind.not_converged
        and not found.ok
        and "not converged: relative residual" in found.status.message
        and "tol = 1e-15" in found.status.message
    )
    assert np.isfinite(found.predict(X_NEW).mean).all()
    few = nk.solve(RBF, X, Y, nk.Ridge(1e-6), solver=Richardson(iterations=5))
    assert not few.ok and "after 5 iterations" in few.status.message


def test_a_learning_rate_beyond_the_limit_is_a_status():
    found = nk.solve(RBF, X, Y, nk.GradientDescent(lr=1.0), solver="richardson")
    assert not found.ok and found.status == nk.StatusKind.diverged
    top = nk.solve(RBF, X, Y).lambda_max
    slow = nk.solve(RBF, X, Y, nk.GradientDescent(2.2 / top, 20), solver="richardson")
    assert slow.status == nk.StatusKind.diverged and slow.relative_residual < 10
    with np.errstate(over="ignore", invalid="ignore"):
        lost = nk.solve(RBF, X, Y, nk.GradientDescent(1e149, 50), solver="richardson")
    assert not lost.ok and not lost.relative_residual < 1e100
    centered = nk.solve(RBF, X, Y, nk.GradientDescent(lr=1.0), solver=Nystrom(30))
    assert not centered.ok and "exceeds 2/lambda_max" in centered.status.message


class Indefinite(nk.kernels.AbstractKernel):
    """sin(x.y) + 0.1: symmetric, not positive."""

    def matrix(self, x1, x2):
        return np.sin(x1 @ (x1 if x2 is None else x2).T) + 0.1

    def traced(self, x1, x2):
        raise NotImplementedError

    def diagonal(self, x):
        return np.sin((x * x).sum(axis=1)) + 0.1


def test_a_kernel_that_is_not_positive_is_named():
    with pytest.raises(ValueError, match=r"not positive: k\(x, x\) = -"):
        nk.solve(Indefinite(), X, Y, nk.Ridge(0.1), solver="cg")
    small = 0.4 * X  # the diagonal is positive here, the matrix is not
    with pytest.raises(ValueError, match="not positive: v"):
        nk.solve(Indefinite(), small, Y, nk.Ridge(1e-3), solver=ConjugateGradients(rank=3))


@pytest.mark.parametrize(
    "call, error, match",
    [
        (lambda: nk.solve(RBF, X, Y, solver="lu"), ValueError, "`solver` must be one of 'auto', 'direct', 'cg'"),
        (lambda: nk.solve(RBF, X, Y, solver="nystroem"), ValueError, "Did you mean 'nystrom'"),
        (lambda: nk.solve(RBF, X, Y, nk.GradientFlow(time=1.0), solver="cg"), ValueError, "use 'nystrom' or 'direct'"),
        (lambda: nk.solve(nk.FeatureModel(lambda x: x), X, Y, solver="cg"), ValueError, "needs a kernel"),
        (lambda: nk.solve(RBF, X, Y, solver="cg").predict(X_NEW, time=3.0), ValueError, "`time` is available with"),
        (lambda: ConjugateGradients(tol=0.0), ValueError, "`tol` must be greater than 0"),
        (lambda: ConjugateGradients(memory="lots"), ValueError, "`memory` must be a size"),
        (lambda: Nystrom(centers=0), ValueError, "`centers` must be at least 1"),
        (lambda: nk.solve(RBF, X, Y, solver=Nystrom(np.ones((3, 9)))), ValueError, "`centers` has 9 features"),
        (lambda: nk.solve(RBF, X, Y, solver=Nystrom(400, memory="1MB")), MemoryError, "use at most 144 centers"),
        (lambda: EigenPro(batch_size=0), ValueError, "`batch_size` must be at least 1"),
        (
            lambda: nk.solve(RBF, X, Y, nk.GradientDescent(0.1, steps=10), solver=Richardson(iterations=3)),
            ValueError,
            "fewer than the 10 steps",
        ),
    ],
)  # fmt: skip
def test_bad_input(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_direct_can_be_asked_for_by_name_and_object():
    for solver in ("direct", Direct()):
        assert isinstance(nk.solve(RBF, X, Y, solver=solver), nk.results.Solution)
