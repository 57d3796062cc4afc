"""Along a line: exact breakpoints against rational arithmetic and sampled gradients, bounds, and the average case."""

from fractions import Fraction

import jax
import numpy as np
import pytest

import nearkernel as nk

G = nk.geometry
ACTIVATIONS = {"relu": (1, 0), "leaky_relu(0.25)": (1, Fraction(1, 4)), "abs": (1, -1)}


def drawn(net, seed=0):
    """Parameters like those of `net.init`, without a compilation."""
    rng = np.random.default_rng(seed)
    shapes = zip(net.sizes[:-1], net.sizes[1:], strict=True)
    return [{"weight": rng.normal(size=shape), "bias": rng.normal(size=shape[1])} for shape in shapes]


def slopes(net, params, start, end, t):
    """dz/dt by forward differentiation at each t, (len(t), out): the definition, in plain NumPy."""
    start, end = np.atleast_1d(start), np.atleast_1d(end)
    z, dz = start + np.asarray(t)[:, None] * (end - start), np.tile(end - start, (len(t), 1))
    for layer, entry in enumerate(params):
        if layer:
            factor = np.where(z > 0, net.activation.right, net.activation.left)
            z, dz = factor * z, factor * dz
        with jax.enable_x64(True):
            weight_scale, bias_scale = (float(scale) for scale in net.scales(layer))
        z, dz = (
            weight_scale * z @ entry["weight"] + bias_scale * entry["bias"],
            weight_scale * dz @ entry["weight"],
        )
    return dz


def rational_breakpoints(params, right, left):
    """The bends on [0, 1] of a network of one input in exact arithmetic, piece by piece."""

    def activated(z):
        return right * z if z > 0 else left * z

    def outputs(t):
        a = [t]
        for layer, entry in enumerate(params):
            a = [activated(v) for v in a] if layer else a
            columns = zip(*entry["weight"], strict=True)
            a = [
                sum(w * v for w, v in zip(column, a, strict=True)) + b
                for column, b in zip(columns, entry["bias"], strict=True)
            ]
            yield a

    knots = [Fraction(0), Fraction(1)]
    for depth in range(len(params) - 1):
        values = [list(outputs(t))[depth] for t in knots]
        roots = set(knots)
        for (t0, z0), (t1, z1) in zip(
            zip(knots, values, strict=True), list(zip(knots, values, strict=True))[1:], strict=False
        ):
            roots |= {t0 + (t1 - t0) * u / (u - v) for u, v in zip(z0, z1, strict=True) if u * v < 0}
        knots = sorted(roots)
    ends = [list(outputs(t))[-1] for t in knots]
    rates = [
        [(b - a) / (t1 - t0) for a, b in zip(u, v, strict=True)]
        for t0, t1, u, v in zip(knots, knots[1:], ends, ends[1:], strict=False)
    ]
    return [
        float(t) for t, before, after in zip(knots[1:-1], rates, rates[1:], strict=False) if before != after
    ]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("widths, out", [((5,), 1), ((3, 2), 1), ((4, 3, 3), 2), ((2, 2, 2, 2), 1)])
def test_positions_equal_those_of_rational_arithmetic(activation, widths, out):
    """Weights are small whole fractions: kinks coincide, touch zero without crossing, and layers die."""
    right, left = ACTIVATIONS[activation]
    net = nk.MLP(1, widths, out, activation, parametrization="standard")
    rng = np.random.default_rng(len(widths))
    for _ in range(12):
        exact = [
            {
                "weight": [[Fraction(int(v), 2) for v in row] for row in rng.integers(-4, 5, (m, n))],
                "bias": [Fraction(int(v), 6) for v in rng.integers(-6, 7, n)],
            }
            for m, n in zip(net.sizes[:-1], net.sizes[1:], strict=True)
        ]
        params = [{name: np.array(value, float) for name, value in entry.items()} for entry in exact]
        expected = rational_breakpoints(exact, right, left)
        found = nk.theory.breakpoints(net, params, 0.0, 1.0)
        assert len(found) == len(expected)
        np.testing.assert_allclose(found, expected, atol=1e-14)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "abs"])
@pytest.mark.parametrize("parametrization", ["ntk", "standard", "mean_field"])
def test_the_slope_is_constant_between_breakpoints_and_jumps_at_each(activation, parametrization):
    net = nk.MLP(7, (30, 20, 25), 3, activation, 2.0, 0.3, parametrization)
    params, (start, end) = drawn(net), 3 * np.random.default_rng(1).normal(size=(2, 7))
    found = nk.theory.breakpoints(net, params, start, end)
    knots = np.concatenate([[0.0], found, [1.0]])
    assert len(found) > 20 and np.all(np.diff(knots) > 0)
    share = np.array([1e-6, 0.2, 0.5, 0.9, 1 - 1e-6])
    t = knots[:-1, None] + np.diff(knots)[:, None] * share
    rates = slopes(net, params, start, end, t.ravel()).reshape(len(t), len(share), 3)
    assert np.abs(rates - rates[:, :1]).max() < 1e-12 * np.abs(rates).max()
    assert np.abs(np.diff(rates[:, 0], axis=0)).max(axis=1).min() > 1e-9 * np.abs(rates).max()


def test_deep_and_wide_networks_are_cut_exactly():
    net = nk.MLP(20, (100,) * 10, 1, "relu", 2.0, 0.1)
    params, (start, end) = drawn(net), 5 * np.random.default_rng(2).normal(size=(2, 20))
    found = nk.theory.breakpoints(net, params, start, end)
    knots = np.concatenate([[0.0], found, [1.0]])
    assert len(found) == len(nk.theory.crossings(net, params, start, end).position) > 200
    near = [slopes(net, params, start, end, knots[:-1] + s * np.diff(knots)) for s in (1e-4, 1 - 1e-4)]
    np.testing.assert_allclose(near[0], near[1], rtol=1e-9)


def test_crossings_name_the_neuron():
    net = nk.MLP(3, (6, 5), 2, "relu", 1.7, 0.4)
    params, (start, end) = drawn(net), np.array([[-6.0, 2.0, 1.0], [5.0, -3.0, 0.0]])
    found = nk.theory.crossings(net, params, start, end)
    assert found.per_layer(2).sum() == len(found.position) > 4
    x = start + found.position[:, None] * (end - start)
    first = np.sqrt(1.7 / 3) * x @ params[0]["weight"] + np.sqrt(0.4) * params[0]["bias"]
    second = np.sqrt(1.7 / 6) * np.maximum(first, 0) @ params[1]["weight"] + np.sqrt(0.4) * params[1]["bias"]
    z = first, second
    values = [float(z[l - 1][i, j]) for i, (l, j) in enumerate(zip(found.layer, found.neuron, strict=True))]
    assert np.abs(values).max() < 1e-12
    assert set(nk.theory.breakpoints(net, params, start, end)) <= set(found.position)


def plain(*layers):
    """A network of one input and its parameters from (weight, bias) pairs."""
    params = [{"weight": np.array(w, float), "bias": np.array(b, float)} for w, b in layers]
    widths = [len(entry["bias"]) for entry in params]
    return nk.MLP(1, widths[:-1], widths[-1], "relu", parametrization="standard"), params


def test_kinks_that_nothing_sees_do_not_count():
    identity = plain(([[1, -1]], [0, 0]), ([[1], [-1]], [0]))  # relu(x) - relu(-x) = x
    assert (
        len(nk.theory.breakpoints(*identity, -1, 1)) == 0
        and len(nk.theory.crossings(*identity, -1, 1).position) == 2
    )
    dead = plain(
        ([[1, 1]], [0, -0.5]), ([[1], [1]], [-3]), ([[1]], [0])
    )  # the second layer is off until x = 1.75
    np.testing.assert_allclose(nk.theory.breakpoints(*dead, -1, 2), [(1.75 + 1) / 3], atol=1e-15)
    on_the_ends = plain(([[1, 1]], [0, -1]), ([[1], [1]], [0]))
    assert len(nk.theory.breakpoints(*on_the_ends, 0, 1)) == 0
    assert (
        len(nk.theory.breakpoints(nk.MLP(2, (5,), 1, "linear"), drawn(nk.MLP(2, (5,))), [0, 0], [1, 1])) == 0
    )
    assert len(nk.theory.breakpoints(nk.MLP(1, ()), drawn(nk.MLP(1, ())), 0, 1)) == 0


def test_neighbours_a_hair_apart_are_two_and_scale_does_not_matter():
    close = plain(([[1, 1]], [-0.3, -0.3 - 1e-12]), ([[1], [1]], [0]))
    found = nk.theory.breakpoints(*close, 0, 1)
    np.testing.assert_allclose(found, [0.3, 0.3 + 1e-12], atol=1e-15)
    net = nk.MLP(2, (9, 9), 1, "relu", parametrization="standard")
    params, ends = drawn(net), np.array([[-3.0, 1.0], [2.0, -4.0]])
    found = nk.theory.breakpoints(net, params, *ends)
    for scale in (1e-150, 1e-9, 1e9, 1e100):  # of all weights and biases of the first layer
        scaled = [{k: v * scale for k, v in params[0].items()}, *params[1:]]
        scaled[1] = {"weight": params[1]["weight"], "bias": params[1]["bias"] * scale}
        np.testing.assert_allclose(nk.theory.breakpoints(net, scaled, *ends), found, atol=1e-13)
    np.testing.assert_allclose(1 - nk.theory.breakpoints(net, params, *ends[::-1])[::-1], found, atol=1e-13)


@pytest.mark.parametrize("levels", [1, 2, 3, 7, 12])
def test_the_sawtooth_has_exponentially_many_pieces(levels):
    net, params = nk.theory.sawtooth(levels)
    found = nk.theory.breakpoints(net, params, 0, 1)
    np.testing.assert_array_equal(found, np.arange(1, 2**levels) / 2**levels)
    middles = (np.arange(2**levels) + 0.5) / 2**levels
    expected = 2**levels * np.where(np.arange(2**levels) % 2, -1.0, 1.0)
    np.testing.assert_array_equal(slopes(net, params, 0, 1, middles)[:, 0], expected)
    bounds = nk.theory.region_bounds(net)
    assert len(found) + 1 <= bounds.layers == 3**levels <= bounds.signs == 9**levels


def test_no_network_exceeds_the_bounds():
    for seed in range(20):
        net = nk.MLP(1, (3, 2, 2), 1, "abs", 2.0, 1.0)
        assert (
            len(nk.theory.breakpoints(net, drawn(net, seed), -50, 50))
            < nk.theory.region_bounds(net).layers
            == 4 * 3 * 3
        )


@pytest.mark.parametrize("activation", ["relu", "leaky_relu(0.5)", "abs"])
def test_the_first_layer_follows_its_law_exactly(activation):
    """No correction of 1/width there: 400 networks of width 5, 4 standard errors."""
    net = nk.MLP(3, (5,), 1, activation, 1.4, 0.7)
    ends = [-1.0, 0.5, 0.2], [2.0, 0.1, -1.0]
    assert nk.theory.measure_crossings(net, *ends, 400, jax.random.key(0)).agrees(
        nk.theory.mean_crossings(net, *ends)
    )


def test_lines_through_the_origin_without_biases_switch_each_neuron_once():
    net = nk.MLP(2, (8, 8), 1, "relu", 2.0)
    assert nk.theory.mean_crossings(net, [-1, -2], [2, 4]) == pytest.approx(np.ones(2))
    assert nk.theory.mean_crossings(net, [1, 2], [2, 4]) == pytest.approx(np.zeros(2), abs=1e-7)


def test_measured_crossings_are_those_of_networks_drawn_by_init():
    net = nk.MLP(2, (6, 6), 1, "relu", 2.0, 0.5)
    ends = [-1.0, 0.0], [1.0, 1.0]
    draw = jax.jit(net.init)
    with jax.enable_x64(True):
        params = [draw(jax.random.key(seed)) for seed in range(150)]
    counts = np.array([nk.theory.crossings(net, p, *ends).per_layer(2) for p in params]) / 6
    other = nk.theory.measure_crossings(net, *ends, 600, jax.random.key(1))
    error = np.hypot(other.sem, counts.std(axis=0, ddof=1) / np.sqrt(len(counts)))
    assert np.all(np.abs(counts.mean(axis=0) - other.mean) < 4 * error)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_second_layer_on_the_whole_line(n):
    """A neuron of layer 2 switches 1 - 2^-n times on the line on average."""
    net = nk.MLP(1, (n, n), 1, "relu", 2.0, 1.0)
    found = nk.theory.measure_crossings(net, -1e6, 1e6, 15_000, jax.random.key(n))
    assert abs(found.mean[1] - (1 - 2.0**-n)) < 4 * found.sem[1] + 1e-5


@pytest.mark.slow
def test_wide_networks_tend_to_the_law_as_one_over_width():
    """Layer 3: the distance at width 16 and 64, and their extrapolation to 1/n = 0 within 4 standard errors."""
    found = {}
    for n, size in ((16, 6000), (64, 2500)):
        net = nk.MLP(2, (n,) * 3, 1, "relu", 2.0, 0.5)
        found[n] = nk.theory.measure_crossings(net, [-1.0, 0.3], [1.5, 0.5], size, jax.random.key(n))
    theory = nk.theory.mean_crossings(net, [-1.0, 0.3], [1.5, 0.5])
    limit = (64 * found[64].mean - 16 * found[16].mean) / 48
    error = np.hypot(64 * found[64].sem, 16 * found[16].sem) / 48
    assert np.all(np.abs(limit - theory) < 4 * error + 0.002)
    assert np.all(np.abs(found[64].mean - theory) < 0.03)


LINE = nk.MLP(2, (4,), 1, "relu")


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: nk.theory.breakpoints(nk.MLP(2, (4,), 1, "tanh"), None, [0, 0], [1, 1]),
            '"relu", "leaky_relu',
        ),
        (
            lambda: nk.theory.breakpoints(nk.FeatureModel(lambda x: x), None, [0, 0], [1, 1]),
            "`net` must be an nk.MLP or nk.Network; got FeatureModel",
        ),
        (
            lambda: nk.theory.breakpoints(LINE, None, [0, 0], [1, 1]),
            "`params` must be a tree of arrays, e.g. .* got None",
        ),
        (
            lambda: nk.theory.breakpoints(LINE, [np.eye(2)] * 2, [0, 0], [1, 1]),
            r"`params` must have the structure of .*; MLP needs `params\[0\]",
        ),
        (
            lambda: nk.theory.breakpoints(LINE, drawn(nk.MLP(3, (4,))), [0, 0], [1, 1]),
            r"`params\[0\]\['weight'\]` must have shape \(2, 4\) for this MLP; got \(3, 4\)",
        ),
        (
            lambda: nk.theory.breakpoints(LINE, drawn(LINE), 0, 1),
            r"`start` must be a point of shape \(2,\); got \(1,\)",
        ),
        (lambda: nk.theory.breakpoints(LINE, drawn(LINE), [0, np.nan], [1, 1]), "`start` holds 1 NaN"),
        (lambda: nk.theory.crossings(LINE, drawn(LINE), [0, 1], [0, 1]), "two different points"),
        (lambda: nk.theory.region_bounds(nk.MLP(2, (4,), 1, "gelu")), "no linear regions"),
        (
            lambda: nk.theory.mean_crossings(nk.MLP(2, (4,), 1, "erf"), [0, 0], [1, 1]),
            "piecewise linear activation",
        ),
        (
            lambda: nk.theory.measure_crossings(LINE, [0, 0], [1, 1], 1, jax.random.key(0)),
            "`size` must be at least 2",
        ),
        (lambda: nk.theory.sawtooth(0), "`levels` must be at least 1"),
        (lambda: nk.theory.zaslavsky(3, 0), "`dim` must be at least 1"),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert "\n" not in str(error.value)


@pytest.mark.merge
def test_convolutional_networks_are_cut_where_their_slope_jumps():
    L = nk.layers
    conv = L.Conv(3, (2, 2), bias_var=0.2)
    layers = [
        conv,
        L.Activation("relu"),
        L.AvgPool((2, 2), (1, 1)),
        conv,
        L.Activation("relu"),
        L.Flatten(),
        L.Dense(2),
    ]
    net = nk.Network((3, 4, 2), layers)
    params = net.init(1)
    start, end = np.random.default_rng(0).normal(size=(2, 24))
    cut = nk.theory.breakpoints(net, params, start, end)
    assert len(cut) > 5
    ends = np.concatenate([[0.0], cut, [1.0]])
    inside = ends[:-1, None] + np.diff(ends)[:, None] * [0.1, 0.5, 0.9]
    x = start + inside.reshape(-1, 1) * (end - start)
    z = np.asarray(net(params, x.reshape(-1, 3, 4, 2))).reshape(len(inside), 3, 2)
    np.testing.assert_allclose(z[:, 1], 0.5 * (z[:, 0] + z[:, 2]), atol=1e-12)
    slopes = (z[:, 2] - z[:, 0]) / (inside[:, 2] - inside[:, 0])[:, None]
    assert (np.abs(np.diff(slopes, axis=0)).max(axis=1) > 1e-9).all()
    for bad, message in (
        (
            [L.Dense(3), L.LayerNorm(), L.Dense(1)],
            r"`layers\[1\]`, LayerNorm.*has no linear regions",
        ),
        (
            [L.Product([[L.Dense(3)], [L.Dense(3)]]), L.Dense(1)],
            r"`layers\[0\]`, Product of 2 branches, .* no linear",
        ),
        (
            [L.Dense(3), L.Activation("tanh"), L.Dense(1)],
            r"`layers\[1\]` must have a piecewise linear activation, \"relu\"",
        ),
        (
            [L.Dense(3), L.Residual([L.Activation("relu"), L.Dense(3)]), L.Dense(1)],
            r"contains an activation",
        ),
        (
            [L.Dense(3), L.Activation("relu"), L.Dense(2), L.Activation("abs"), L.Dense(1)],
            "the same activation in all layers",
        ),
    ):
        bent = nk.Network(4, bad)
        with pytest.raises(TypeError, match=message):
            nk.theory.breakpoints(bent, bent.init(0), np.zeros(4), np.ones(4))
