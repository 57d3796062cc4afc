"""Bounds on kernels of finite width: they hold, and how loose they are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.statistics.bounds.concentration import supremum
from support.helpers import points
from support.references.drawn import Drawn, controlled

X = points(6, 4)


def test_chernoff_and_bernstein_solve_their_own_inequalities():
    level = nk.theory.matrix_chernoff(3.0, 0.2, 7, 0.01)
    e = level / 3.0 - 1
    assert 7 * (np.exp(e) / (1 + e) ** (1 + e)) ** (3.0 / 0.2) == pytest.approx(0.01)
    level = nk.theory.matrix_chernoff_below(3.0, 0.2, 7, 0.01)
    e = 1 - level / 3.0
    assert 0 < e < 1 and 7 * (np.exp(-e) / (1 - e) ** (1 - e)) ** (3.0 / 0.2) == pytest.approx(0.01)
    assert nk.theory.matrix_chernoff_below(3.0, 5.0, 7, 0.01) == 0.0
    t = nk.theory.matrix_bernstein(0.4, 0.1, 7, 0.01)
    assert 2 * 7 * np.exp(-(t**2) / (2 * 0.4 + 2 * 0.1 * t / 3)) == pytest.approx(0.01)


def test_bounds_on_the_largest_eigenvalue_hold_and_their_order_is_known():
    net = nk.MLP(4, (30, 30), 1, "relu", weight_var=2.0)
    bounds = nk.theory.largest_eigenvalue(net, X, probability=0.1)
    found = np.linalg.eigvalsh(Drawn(net, X, 1000).kernel[:, :, 0, :, 0])[:, -1]
    assert bounds.mean == pytest.approx(np.linalg.eigvalsh(nk.theory.relu_ntk(net, X).mean)[-1])
    assert bounds.mean < bounds.frobenius < bounds.row < bounds.trace < bounds.cantelli
    for level in (bounds.markov, bounds.cantelli, bounds.chernoff):
        assert np.mean(found > level) < 0.1
    # Loose: the 10 % quantile itself lies far below. With a single summand Chernoff adds nothing.
    quantile = np.quantile(found, 0.9)
    assert quantile < bounds.cantelli < min(bounds.markov, bounds.chernoff) and bounds.chernoff > 5 * quantile


@pytest.mark.parametrize("widths", [(3, 3, 3), (4, 4, 4, 4)])
def test_bounds_on_the_mean_kernel_hold_where_layers_are_narrow(widths):
    """The kernel of infinite width has a smaller largest eigenvalue, and bounds made of it fail."""
    net = nk.MLP(4, widths, 1, "relu", weight_var=2.0)
    x = X[:2] / np.linalg.norm(X[:2], axis=1)[:, None] * 2
    bounds = nk.theory.largest_eigenvalue(net, x)
    wide = np.asarray(nk.kernels.NTK(net)(x))
    between, sem = controlled(Drawn(net, x, 60_000).kernel[:, :, 0, :, 0], np.diagonal(wide), 0, 1)
    largest = wide[0, 0] + between  # of two inputs of equal length
    assert abs(largest - bounds.mean) < 4 * sem
    assert largest - 4 * sem < min(bounds.row, bounds.frobenius, bounds.trace)
    assert largest > np.abs(wide).sum(axis=1).max() + 8 * sem


def test_the_largest_eigenvalue_for_equal_inputs_is_the_row_sum():
    net = nk.MLP(4, (30,), 1, "relu", weight_var=2.0)
    bounds = nk.theory.largest_eigenvalue(net, np.repeat(X[:1], 3, axis=0))
    assert bounds.mean == pytest.approx(bounds.row) == pytest.approx(bounds.frobenius)


def test_the_readout_kernel_concentrates_within_its_bounds():
    expected, bounded = [], []
    for n in (64, 1024):
        net = nk.MLP(4, (n,), 1, "tanh", weight_var=1.5, bias_var=0.1)
        law = nk.theory.concentration(net, X, probability=0.1)
        s = np.tanh(Drawn(net, X, 300).z[0])
        kernel = 1.5 * s @ s.swapaxes(1, 2) / n
        norm = np.abs(np.linalg.eigvalsh(kernel - law.mean)).max(axis=1)
        lam = np.linalg.eigvalsh(kernel)
        least, most = lam[:, 0], lam[:, -1]
        assert np.mean(norm > law.deviation) < 0.1 and np.mean(most > law.largest) < 0.1
        assert np.mean(least < law.smallest) < 0.1 and norm.mean() < law.expected
        expected.append(norm.mean())
        bounded.append(law.expected)
    # Both fall like the root of the width, 4 here; the bound is some 3 times too large.
    assert 3.5 < expected[0] / expected[1] < 4.5 and 3.5 < bounded[0] / bounded[1] < 5
    assert 2 < bounded[1] / expected[1] < 5


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_hermite_bounds_lie_below_the_smallest_eigenvalues(activation):
    net = nk.MLP(4, (8, 8), 1, activation, weight_var=1.5, bias_var=0.1)
    found = nk.theory.smallest_eigenvalue(net, X)
    assert found.nngp == pytest.approx(np.linalg.eigvalsh(nk.kernels.NNGP(net)(X))[0])
    assert found.ntk == pytest.approx(np.linalg.eigvalsh(nk.kernels.NTK(net)(X))[0])
    assert 0.1 * found.nngp < found.nngp_bound < found.nngp
    assert 0.1 * found.ntk < found.ntk_bound < found.ntk


def test_hermite_bounds_of_other_networks():
    """Variances of their own in each layer; residual blocks; and images, of which no bound is known."""
    L = nk.layers
    own = nk.MLP(4, (8, 8), 1, ("tanh", "relu"), (1.2, 1.5, 0.8), (0.1, 0.0, 0.3))
    block = L.Residual([L.Activation("relu"), L.Dense(8)])
    residual = nk.Network(4, [L.Dense(8), block, L.Activation("relu"), L.Dense(1)])
    for net in (own, residual):
        found = nk.theory.smallest_eigenvalue(net, X)
        assert found.nngp == pytest.approx(np.linalg.eigvalsh(nk.kernels.NNGP(net)(X))[0])
        assert found.ntk == pytest.approx(np.linalg.eigvalsh(nk.kernels.NTK(net)(X))[0])
        assert (
            0.1 * found.nngp < found.nngp_bound < found.nngp
            and found.nngp_bound <= found.ntk_bound < found.ntk
        )
    groups = nk.Network(4, [L.Concat([[L.Dense(4)], [L.Dense(4, 3.0)]]), L.Activation("relu"), L.Dense(1)])
    for net, x in ((groups, X), (nk.CNN((4, 1), (8,), head="flatten"), X[..., None])):
        found = nk.theory.smallest_eigenvalue(net, x)
        assert found.ntk > 0.0 and found.nngp_bound == found.ntk_bound == 0.0


def test_the_readout_kernel_of_layers_with_variances_of_their_own():
    net = nk.MLP(4, (256,), 1, ("tanh",), (0.7, 1.5), (0.2, 0.3))
    law = nk.theory.concentration(net, X, probability=0.1)
    np.testing.assert_allclose(law.mean, np.asarray(nk.kernels.NNGP(net)(X)) - 0.3, rtol=1e-12)
    same = nk.theory.concentration(nk.MLP(4, (256,), 1, "tanh", 1.5, 0.1), X, probability=0.1)
    alike = nk.theory.concentration(
        nk.MLP(4, (256,), 1, ("tanh",), (1.5, 1.5), (0.1, 0.1)), X, probability=0.1
    )
    assert same.deviation == pytest.approx(alike.deviation)


def test_the_hermite_bound_is_exact_for_orthogonal_inputs_without_a_mean():
    """All entrywise powers beyond 0 are then the identity: lambda_min = C_W (E[s^2] - E[s]^2)."""
    net = nk.MLP(5, (3,), 1, "relu", weight_var=2.0)
    found = nk.theory.smallest_eigenvalue(net, np.sqrt(5) * np.eye(5))
    assert found.nngp == pytest.approx(2.0 * (1 - 1 / np.pi), rel=1e-9)
    assert found.nngp_bound == pytest.approx(found.nngp, rel=1e-3)


def test_equal_inputs_have_no_positive_bound():
    found = nk.theory.smallest_eigenvalue(nk.MLP(4, (8,), 1, "relu"), X[[0, 0, 1]])
    assert found.nngp_bound < 1e-12 and found.ntk_bound < 1e-12


def test_suprema_are_found():
    assert supremum(jnp.tanh) == pytest.approx(1.0)
    assert supremum(lambda z: jnp.exp(-(z**2))) == pytest.approx(1.0)
    assert supremum(jax.nn.relu) == supremum(lambda z: jnp.log1p(z * z)) == np.inf


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nk.theory.matrix_chernoff(0.0, 1.0, 2), "`mean` must be greater than 0"),
        (lambda: nk.theory.matrix_bernstein(1.0, 1.0, 2, 1.0), "`probability` must be below 1; got 1.0"),
        (lambda: nk.theory.matrix_bernstein(1.0, 1.0, 0), "`dim` must be at least 1; got 0"),
        (
            lambda: nk.theory.concentration(nk.MLP(4, (3,), 1, "relu"), X),
            "`net` needs a bounded activation",
        ),
        (
            lambda: nk.theory.concentration(nk.MLP(4, (3, 3), 1, "tanh"), X),
            "`net` must have one hidden layer: neurons of deeper layers",
        ),
        (
            lambda: nk.theory.smallest_eigenvalue(nk.MLP(4, (), 1), X),
            "`net` must have a hidden layer",
        ),
        (
            lambda: nk.theory.largest_eigenvalue(nk.MLP(4, (3,), 1, "relu"), X, 0.0),
            "`probability` must be greater than 0",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
