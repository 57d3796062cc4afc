"""Tables of Gaussian averages: as accurate as dense quadrature, at any variance, with no quadrature pair by pair."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from sklearn import datasets

import nearkernel as nk
from nearkernel.activations import get
from nearkernel.activations.averages import series as _series
from nearkernel.activations.averages.breaks import breaks_of
from nearkernel.activations.averages.grid import Grid
from nearkernel.activations.averages.jumps import Jumps, averages, quadrant
from nearkernel.theory import dual
from support import helpers
from support.cases import few
from support.references import gaussian_averages as reference

rng = np.random.default_rng(3)
KNOWN = reference.SMOOTH | {name: reference.CALLABLES[name] for name in ("hard_tanh", "elu")}
FUNCTIONS = {"hard_tanh": helpers.hard_tanh}
ANY = {
    **{
        name: name
        for name in ("tanh", "sigmoid", "softplus", "silu", "mish", "elu", "selu", "gelu", "sin", "cos")
    },
    "hard tanh": helpers.hard_tanh,
    "relu6": jax.nn.relu6,
    "hard swish": jax.nn.hard_swish,
    "hard sigmoid": jax.nn.hard_sigmoid,
    "formula": "tanh(z) + 0.1*z^2",
    "shifted": lambda z: jnp.tanh(z - 1.5),
    "mixed": lambda z: jnp.where(z > 0.5, z - 0.5, jnp.tanh(z - 0.5)),
}
RAW = {
    "iris": lambda: datasets.load_iris(return_X_y=True)[0],
    "wine": lambda: datasets.load_wine(return_X_y=True)[0],
    "diabetes": lambda: datasets.load_diabetes(return_X_y=True, scaled=False)[0],
    "breast_cancer": lambda: datasets.load_breast_cancer(return_X_y=True)[0],
    "shifted": lambda: rng.normal(size=(60, 3)) + 7,
    "heavy tails": lambda: rng.standard_t(1.5, size=(60, 5)) * [1, 10, 100, 1, 1000],
}


@pytest.fixture
def no_quadrature(monkeypatch):
    """Fails where pairs are integrated one by one."""

    def refused(*_):
        raise AssertionError("pairs are integrated one by one")

    monkeypatch.setattr(_series, "pair_quadrature", refused)


@pytest.mark.parametrize("name", KNOWN)
def test_tables_equal_dense_quadrature(name, no_quadrature):
    known, rows = KNOWN[name], []
    for q1, q2 in [(30.0, 30.0), (30.0, 41.0), (2e3, 2e3), (30.0, 2e3)]:
        rows += [(q1, q2, gap) for gap in (0.0, 1e-9, 1e-4, 0.05, 1.0, 1.9, 2.0)]
    q1, q2, gap = map(np.array, zip(*rows, strict=True))
    activation = get(FUNCTIONS.get(name, name))
    assert activation.prepared(q2).by_table()
    found = np.stack(dual(activation, q1, q2, gap=gap), axis=1)
    expected = np.array([known.pair(*row) for row in rows])
    single = {q: np.array(known.moments(q))[:2] for q in (30.0, 41.0, 2e3)}
    size = np.array([np.sqrt(single[a] * single[b]) for a, b, _ in rows])
    assert np.abs((found - expected) / size).max() < (1e-7 if known.kinks else 1e-11)


@pytest.mark.parametrize("name", ["tanh", "elu", "hard tanh"])
@pytest.mark.parametrize("dtype", few(["float64", "float32"], 1))
@pytest.mark.parametrize("data", RAW)
def test_kernels_of_raw_data_need_no_quadrature(name, dtype, data, no_quadrature):
    x = RAW[data]()[:40]
    with nk.precision(dtype):
        nngp, ntk = nk.kernels.nngp_and_ntk(nk.MLP(x.shape[1], (8, 8), 1, ANY[name], 1.5, 0.1), x)
    assert np.isfinite(ntk).all()
    assert np.linalg.eigvalsh(nngp)[0] > -1e-6 * np.trace(nngp)


@pytest.mark.slow
@pytest.mark.parametrize("name", ANY)
def test_no_activation_needs_quadrature_of_raw_data(name, no_quadrature):
    x = RAW["breast_cancer"]()[:60]
    kernel = nk.kernels.NTK(nk.MLP(x.shape[1], (8,), 1, ANY[name], 1.5, 0.1))
    both = kernel(x, x[:9])
    np.testing.assert_allclose(both, kernel(x)[:, :9], rtol=1e-8)


@pytest.mark.parametrize("name", ["tanh", "hard_tanh"])
def test_kernels_of_shifted_data_equal_dense_quadrature(name):
    x = rng.normal(size=(4, 3)) + 5
    cw, cb, known = 1.5, 0.1, KNOWN[name]
    nngp, ntk = nk.kernels.nngp_and_ntk(nk.MLP(3, (8,), 1, FUNCTIONS.get(name, name), cw, cb), x)
    k = cb + cw * x @ x.T / 3
    for i, j in [(0, 0), (0, 1), (2, 3)]:
        q1, q2 = k[i, i], k[j, j]
        value, slope = known.pair(q1, q2, 1 - k[i, j] / np.sqrt(q1 * q2) if i != j else 0.0)
        expected = cb + cw * value, cb + cw * value + cw * slope * k[i, j]
        np.testing.assert_allclose((nngp[i, j], ntk[i, j]), expected, rtol=1e-7 if known.kinks else 1e-10)


def test_one_table_serves_many_calls():
    x = rng.normal(size=(30, 3)) + 4
    kernel = nk.kernels.NTK(nk.MLP(3, (8,), 1, "tanh", 1.5, 0.1))
    kernel(x)
    before = _series._table.cache_info().misses
    for _ in range(3):
        kernel(x[: rng.integers(10, 30)])
    assert _series._table.cache_info().misses <= before + 2


@pytest.mark.parametrize("angle", [1e-6, 1e-3, 0.3, np.pi / 2])
def test_averages_as_matrices(angle):
    grid = Grid.of(0.01, 2.0**0.5)
    z, c, variance = grid.nodes, np.cos(angle), np.sin(angle) ** 2
    even, odd = grid.averaging(angle)
    near = z < 8
    np.testing.assert_allclose((even @ z**2)[near], (c * c * z * z + variance)[near], atol=1e-12)
    np.testing.assert_allclose((odd @ z**3)[near], ((c * z) ** 3 + 3 * c * z * variance)[near], atol=1e-11)
    narrow = np.exp(-100 * z * z)
    expected = np.exp(-100 * (c * z) ** 2 / (1 + 200 * variance)) / np.sqrt(1 + 200 * variance)
    np.testing.assert_allclose((even @ narrow)[near], expected[near], atol=1e-13)


@pytest.mark.parametrize("c", [0.0, 0.4, -0.7, 0.95, -0.99, 1 - 1e-7, 1.0, -1.0])
def test_quadrant_probabilities(c):
    h, k = rng.normal(size=(2, 6))
    k[0] = h[0]
    found = quadrant(h, k, np.full(6, c), np.full(6, np.sqrt((1 - c) * (1 + c))))
    for a, b, value in zip(h, k, found, strict=True):
        if abs(c) == 1.0:
            expected = mp.ncdf(-max(a, b)) if c > 0 else max(mp.ncdf(-b) - mp.ncdf(a), 0)
        else:
            sine = mp.sqrt(1 - mp.mpf(c) ** 2)
            inner = lambda x, b=b, sine=sine: mp.npdf(x) * mp.ncdf((c * x - b) / sine)
            middle = mp.mpf(b) / c if c else 0.0
            ends = sorted({a, *(max(a, middle + d * sine) for d in (-20, -4, 0, 4, 20)), max(a, 0.0), 14.0})
            expected = mp.quad(inner, [end for end in ends if end <= 14])
        assert abs(value - expected) < 1e-14


def test_averages_of_jumps_equal_dense_quadrature():
    kinks = np.array([-1.0, 0.5])
    jumps = Jumps(kinks, rng.normal(size=(2, 5)))
    dense = reference.Reference(jumps, jumps, jumps, {-1.0: 0.0, 0.5: 0.0})
    for q1, q2, gap in [
        (1.3, 2.0, 0.1),
        (1.3, 1.3, 0.0),
        (50.0, 60.0, 1e-3),
        (1e-4, 1e3, 1.4),
        (9.0, 9.0, 2.0),
    ]:
        (found,) = averages([jumps], *(np.array([a]) for a in (q1, q2, gap)))
        assert abs(found[0] - dense.pair(q1, q2, gap)[0]) < 1e-11


def test_a_function_without_its_jumps_is_smooth():
    function = lambda z: np.where(z > 0.3, np.exp(-z), np.cos(z)) + np.abs(z - 2.0)
    jumps = Jumps.of(function, np.array([0.3, 2.0]))
    for kink in jumps.kinks:
        apart = np.array([-2e-3, -1e-3, 1e-3, 2e-3])
        fourth = np.polyfit(apart, (function(kink + apart) - jumps(kink + apart)), 3)
        at = 1e-3 * np.array([-1.5, 1.5])
        np.testing.assert_allclose(np.polyval(fourth, at), function(kink + at) - jumps(kink + at), atol=1e-10)


@pytest.mark.parametrize(
    "function, places", [(jax.nn.elu, [0.0]), (jax.nn.hard_swish, [-3.0, 3.0]), (jnp.tanh, [])]
)
def test_places_where_a_derivative_jumps_are_found(function, places):
    np.testing.assert_array_equal(breaks_of(function).every, places)
