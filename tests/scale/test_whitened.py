"""The basis of centers: triangular where that is safe, eigenvectors elsewhere, and what both know of the matrix."""

import numpy as np
import pytest

import nearkernel as nk
from nearkernel.scale import whitened as _whitened
from nearkernel.scale.whitened import basis_of

rng = np.random.default_rng(3)
X = rng.normal(size=(900, 7))
Y = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], axis=1)
ROUGH = nk.kernels.RBF(1.5)


def by_eigenvectors(monkeypatch):
    monkeypatch.setattr(_whitened, "_triangular", lambda matrix: None)


def test_the_matrix_is_one_in_its_basis():
    for points, triangular in ((X[:300], True), (np.repeat(X[:150], 2, axis=0), False), (X[:40], False)):
        matrix = ROUGH(points)
        basis = basis_of(matrix.copy())
        assert basis.triangular == triangular
        found = basis.within(matrix)
        assert found == pytest.approx(np.eye(len(found)), abs=1e-6)
        assert np.linalg.matrix_rank(matrix, tol=1e-6) == len(found)
        right = rng.normal(size=(len(found), 2))
        assert matrix @ basis.leave(right) == pytest.approx(matrix.T @ basis.leave(right))
        assert basis.enter(matrix @ basis.leave(right)) == pytest.approx(right, abs=1e-6)
        lam = np.linalg.eigvalsh(matrix)
        if triangular:
            assert basis.known == pytest.approx((lam[0], lam[-2]), rel=0.1)


@pytest.mark.parametrize(
    "algorithm", [nk.Ridge(0.3), nk.GradientFlow(), nk.GradientFlow(2.0), nk.GradientDescent(1e-3, 50)]
)
def test_both_bases_train_alike(algorithm, monkeypatch):
    solver = nk.dynamics.Nystrom(centers=X[:200])
    found = nk.solve(ROUGH, X, Y, algorithm, solver=solver)
    by_eigenvectors(monkeypatch)
    expected = nk.solve(ROUGH, X, Y, algorithm, solver=solver)
    x_new = X[300:320] + 0.1
    assert found.predict(x_new).mean == pytest.approx(expected.predict(x_new).mean, abs=1e-9)
    assert found.relative_residual == pytest.approx(expected.relative_residual, rel=1e-8)
    assert found.status == expected.status


def test_a_ridge_needs_no_eigenvectors(monkeypatch):
    def refuse(matrix):
        raise AssertionError("eigenvectors were made")

    monkeypatch.setattr(_whitened, "eigh", refuse)
    monkeypatch.setattr("nearkernel.scale.centers.eigh", refuse)
    found = nk.solve(ROUGH, X, Y, nk.Ridge(0.3), solver=nk.dynamics.Nystrom(centers=X[:200]))
    assert found.at(nk.Ridge(3.0)).relative_residual > found.relative_residual
    with pytest.raises(AssertionError, match="eigenvectors"):
        found.at(nk.GradientFlow(1.0))
