"""Learning curves from one kernel matrix against leave-one-out, real fits and draws."""

import numpy as np
import pytest

import nearkernel as nk
from nearkernel.dynamics.linear.factor import spectrum
from nearkernel.forecasts.curves.subset_error import Pool

RNG = np.random.default_rng(21)


def sphere(n, rng, noise=0.3):
    x = rng.normal(size=(n, 6))
    x *= 6**0.5 / np.linalg.norm(x, axis=1)[:, None]
    return x, x[:, 0] * x[:, 1] + 0.7 * x[:, 2] + noise * rng.normal(size=n)


NET = nk.MLP(6, (8, 8), activation="relu", weight_var=2.0, bias_var=0.1)
KERNEL = nk.kernels.NTK(NET)
X, Y = sphere(160, RNG)
SIZE = float(KERNEL.diag(X[:1])[0])
ALGORITHMS = [
    nk.Ridge(0.1 * SIZE),
    nk.GradientFlow(),
    nk.GradientFlow(5 / SIZE),
    nk.GradientDescent(1.5 / float(np.linalg.eigvalsh(KERNEL(X))[-1]), 40),
]


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
def test_at_all_points_it_is_leave_one_out(algorithm):
    curve = nk.learning_curve(NET, X, Y, algorithm, sizes=[40, 160])
    left = nk.solve(KERNEL, X, Y, algorithm).leave_one_out()
    assert curve.error[-1] == pytest.approx(left.error, rel=1e-8)
    assert curve.sem[-1] == pytest.approx(left.sem, rel=1e-8)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
def test_matching_finds_the_upper_root(algorithm):
    pool = Pool(spectrum(KERNEL(X)), Y[:, None])
    strengths = algorithm.ridges(pool.spectrum.lam_max).strengths
    for m in (2, 40, 120, 159):
        g = pool.matched(strengths, m)
        kappa = 1 / (1 / (pool.lam[:, None] + g)).sum(axis=0)
        np.testing.assert_allclose(g, strengths + (160 - m) * kappa, rtol=1e-9, atol=1e-12 * SIZE)
        assert np.all(g.real > strengths.real) or np.iscomplexobj(strengths)
        assert np.all(np.sign(g.imag) == np.sign(strengths.imag))


def fits(kernel, algorithm, m, count, rng, draw, test=400):
    errors = []
    for _ in range(count):
        x, y = draw(m + test, rng)
        fitted = nk.solve(kernel, x[:m], y[:m], algorithm, solver="direct").predict(x[m:]).mean
        errors.append(((fitted - y[m:]) ** 2).reshape(test, -1).sum(axis=1).mean())
    return np.mean(errors), np.std(errors, ddof=1) / count**0.5


@pytest.mark.parametrize("algorithm", ALGORITHMS[:3], ids=repr)
def test_the_curve_agrees_with_fits_on_independent_data(algorithm):
    curve = nk.learning_curve(KERNEL, X, Y, algorithm, sizes=[40, 80])
    for i, m in enumerate(curve.sizes):
        mean, sem = fits(KERNEL, algorithm, int(m), 12, np.random.default_rng(m), sphere)
        assert abs(curve.error[i] - mean) < 4 * np.hypot(sem, curve.sem[i])
        assert abs(curve.error[i] / mean - 1) < 0.4


def test_real_fits_beside_it():
    curve = nk.learning_curve(KERNEL, X, Y, nk.Ridge(0.1 * SIZE), sizes=[20, 40, 80, 160], check=6, key=3)
    assert np.isnan(curve.trained.error[-1]) and curve.trained.fits == 6
    apart = np.abs(curve.trained.error[:3] - curve.error[:3])
    assert np.all(apart < 4 * np.hypot(curve.trained.spread[:3] / 6**0.5, curve.sem[:3]))
    again = nk.learning_curve(KERNEL, X, Y, nk.Ridge(0.1 * SIZE), sizes=[20, 40, 80], check=6, key=3)
    np.testing.assert_array_equal(again.trained.error, curve.trained.error[:3])
    assert np.all(np.diff(curve.error) < 0) and np.all(curve.train_error < curve.error)


@pytest.mark.parametrize(
    "algorithm", [nk.Ridge(0.02 * SIZE), nk.GradientFlow(9.0), nk.GradientDescent(0.1, 30)]
)
def test_a_mean_loss_trains_less_with_more_examples(algorithm):
    curve = nk.learning_curve(KERNEL, X, Y, algorithm, sizes=[30, 90], average=True, check=8)
    apart = np.abs(curve.trained.error - curve.error)
    assert np.all(apart < 4 * np.hypot(curve.trained.spread / 8**0.5, curve.sem))


def test_a_random_start_is_an_error_of_its_own():
    algorithm, m = nk.GradientFlow(5 / SIZE), 60
    plain = nk.learning_curve(NET, X, Y, algorithm, sizes=[m])
    curve = nk.learning_curve(NET, X, Y, algorithm, sizes=[m], start="random", check=4)
    given = nk.learning_curve(KERNEL, X, Y, algorithm, sizes=[m], start=nk.kernels.NNGP(NET))
    assert given.error[0] == pytest.approx(curve.error[0], rel=1e-12)
    more = curve.error[0] - plain.error[0]
    # the start that is left, by forecasting: its variance at new points
    x, _ = sphere(m + 300, np.random.default_rng(5))
    law = nk.forecast(NET, x[:m], np.zeros(m), algorithm, x[m:])
    assert more == pytest.approx(float((law.std**2).mean()), rel=0.06)
    assert abs(curve.trained.error[0] - curve.error[0]) < 4 * np.hypot(curve.trained.spread[0], curve.sem[0])


@pytest.mark.parametrize("algorithm", [nk.GradientFlow(0.0), nk.GradientDescent(0.1, steps=0)], ids=str)
@pytest.mark.parametrize("average", [False, True])
def test_without_training_the_error_is_that_of_predicting_zero(algorithm, average):
    kernel = nk.kernels.RBF(1.0)
    found = nk.learning_curve(kernel, X, Y, algorithm, average=average, check=2, key=0)
    size = np.mean(np.sum(np.reshape(Y, (len(Y), -1)) ** 2, axis=1))
    np.testing.assert_allclose(found.error, size, rtol=1e-12)
    np.testing.assert_allclose(found.train_error, size, rtol=1e-12)
    np.testing.assert_allclose(found.with_features(20), size, rtol=1e-12)
    assert found.trained is not None and np.isfinite(found.trained.error[:-1]).all()
    signs = nk.learning_curve(kernel, X, np.where(X[:, 0] > 0, 1.0, -1.0), algorithm, start=kernel)
    np.testing.assert_allclose(signs.error, 2.0, rtol=1e-12)  # the targets, and the outputs at initialization


def test_classes_have_an_error_rate():
    labels = (Y > 0).astype(int)
    one_hot = np.eye(2)[labels] - 0.5
    curve = nk.learning_curve(KERNEL, X, one_hot, nk.Ridge(0.1 * SIZE), sizes=[40, 80], check=3)
    left = nk.solve(KERNEL, X, one_hot, nk.Ridge(0.1 * SIZE)).leave_one_out()
    assert curve.error_rate == left.error_rate()
    assert curve.trained.error_rate.shape == (2,) and np.all(curve.trained.error_rate < 0.5)
    assert nk.learning_curve(KERNEL, X, Y, nk.Ridge(1.0), sizes=[40]).error_rate is None


@pytest.mark.parametrize("algorithm", [nk.Ridge(0.1 * SIZE), nk.GradientFlow(3 / SIZE)])
def test_each_of_several_outputs_has_a_curve(algorithm):
    both = np.stack([Y, X[:, 0]], axis=1)
    together = nk.learning_curve(KERNEL, X, both, algorithm, sizes=[40, 160], start=nk.kernels.NNGP(NET))
    np.testing.assert_allclose(together.by_output.sum(axis=1), together.error, rtol=1e-12)
    for i in range(2):
        alone = nk.learning_curve(KERNEL, X, both[:, i], algorithm, [40, 160], start=nk.kernels.NNGP(NET))
        np.testing.assert_allclose(together.by_output[:, i], alone.error, rtol=1e-9)
        np.testing.assert_allclose(alone.by_output[:, 0], alone.error, rtol=1e-12)


def test_extrapolation_follows_a_power_law_and_says_when_not():
    algorithm = nk.Ridge(0.02 * SIZE)
    curve = nk.learning_curve(KERNEL, X, Y, algorithm)
    ahead = curve.extrapolate([160, 320, 640])
    assert ahead.trusted and ahead.reason == "" and 0.5 < curve.slope[1] < curve.slope[0] < 1
    assert ahead.error[0] == pytest.approx(curve.error[-1], rel=1e-12)
    assert np.all(np.diff(ahead.high / ahead.low) > 0)
    mean, sem = fits(KERNEL, algorithm, 320, 6, np.random.default_rng(0), sphere)
    assert ahead.low[1] - 4 * sem < mean < ahead.high[1] + 4 * sem
    with pytest.raises(
        ValueError, match="`sizes` must be at most 8 times the number of rows, 1280; got 2000"
    ):
        curve.extrapolate([2000])
    with pytest.raises(ValueError, match="`sizes` must be at least the number of rows, 160"):
        curve.extrapolate([100])
    clean = nk.learning_curve(KERNEL, X, X[:, 0] * X[:, 1], nk.Ridge(0.02)).extrapolate([320])
    assert not clean.trusted and "the curve is steep, with a slope of" in clean.reason
    many = np.random.default_rng(1).normal(size=(160, 80))
    peaked = nk.learning_curve(nk.kernels.Linear(), many, Y, nk.Ridge(1e-6)).extrapolate([320])
    assert not peaked.trusted and "the error increases somewhere" in peaked.reason


def test_what_the_record_says_of_the_rows():
    x, y = np.concatenate([X[:60], X[:20]]), np.concatenate([Y[:60], Y[:20] + 0.5])
    curve = nk.learning_curve(KERNEL, x, y, nk.Ridge(0.1))
    assert curve.noise_floor == pytest.approx(0.125) and "20 rows of x are repeated" in curve.notes[0]
    linear = nk.learning_curve(nk.kernels.Linear(), X, Y, nk.Ridge(0.0))
    assert any("rank 6: near this number of examples" in note for note in linear.notes)
    assert any("3 to 10 % too low below 40 examples" in note for note in linear.notes)
    few = [m for m in linear.sizes if m > 30]
    mean, sem = fits(nk.kernels.Linear(), nk.Ridge(0.0), int(few[0]), 20, np.random.default_rng(1), sphere)
    i = list(linear.sizes).index(few[0])
    assert abs(linear.error[i] - mean) < 4 * np.hypot(sem, linear.sem[i])


@pytest.mark.parametrize(
    ("algorithm", "count"), [(nk.Ridge(0.3), 20), (nk.Ridge(0.3), 300), (nk.GradientFlow(2.0), 60)]
)
def test_random_features_in_place_of_the_kernel(algorithm, count):
    rng, m = np.random.default_rng(4), 80
    net = nk.MLP(6, (count,), activation="relu", weight_var=2.0)
    kernel = nk.kernels.NNGP(net)
    curve = nk.learning_curve(kernel, X, Y, algorithm, sizes=[m])
    np.testing.assert_allclose(curve.with_features(np.inf), curve.error, rtol=1e-9)
    errors = []
    for _ in range(24):
        weights = rng.normal(size=(6, count)) * (2 / 6) ** 0.5
        x, y = sphere(m + 400, rng)
        phi = np.maximum(x @ weights, 0) * (2 / count) ** 0.5
        coefficients = phi[:m].T @ spectrum(phi[:m] @ phi[:m].T).apply(algorithm, y[:m, None])
        errors.append(((phi[m:] @ coefficients)[:, 0] - y[m:]).var())
    sem = np.std(errors, ddof=1) / len(errors) ** 0.5
    found = curve.with_features(count)[0]
    assert abs(found - np.mean(errors)) < 4 * np.hypot(sem, curve.sem[0])


def test_it_can_be_drawn():
    import matplotlib

    matplotlib.use("agg")
    axes = nk.learning_curve(KERNEL, X, Y, nk.Ridge(1.0), check=2).plot()
    labels = axes.get_legend_handles_labels()[1]
    assert labels == ["predicted", "extrapolated", "real fits (2 each)"]


def test_bad_arguments_cost_one_line():
    for arguments, kind, text in [
        (dict(problem=3), TypeError, "`problem` must be a kernel or a network"),
        (dict(start="zero"), TypeError, "`start` must be None .initial outputs 0."),
        (dict(sizes=[0]), ValueError, "`sizes` must be at least 1; got 0"),
        (
            dict(sizes=[400]),
            ValueError,
            "at most the number of rows, 160; got 400: use .extrapolate",
        ),
        (dict(algorithm=nk.SGD(0.1, 2, 3)), TypeError, "`algorithm` must be one that can be solved"),
        (dict(algorithm=nk.GradientDescent(9.0, 5)), ValueError, "`algorithm` diverges: lr = 9 .* stable"),
        (
            dict(algorithm=nk.GradientFlow(1.0, friction=1.0)),
            ValueError,
            "`algorithm`: a learning curve needs",
        ),
        (dict(x=X[:5], y=Y[:5]), ValueError, "`x` must have at least 8 rows for a learning curve; got 5"),
        (dict(problem=nk.kernels.Linear(), x=0 * X), ValueError, "the kernel is zero on all of `x`"),
    ]:
        with pytest.raises(kind, match=text):
            nk.learning_curve(**{"problem": KERNEL, "x": X, "y": Y, **arguments})
    with pytest.raises(ValueError, match="`sizes` must be integers from 1 to the number of rows, 160"):
        nk.learning_curve(KERNEL, X, Y, nk.Ridge(1.0), sizes=[40]).with_features(10, [200])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["digits", "diabetes", "breast_cancer", "sphere"])
@pytest.mark.parametrize("kind", ["ridge", "flow"])
def test_error_bars_are_calibrated(name, kind):
    """40 pools: bias at most 3 % and its statistical error, 88 to 100 % of pools within two standard errors."""
    from sklearn import datasets

    rng = np.random.default_rng(6)
    if name == "sphere":
        x, y = sphere(1800, rng)
        y, n = y[:, None], 240
    else:
        x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        n = 240 if name == "digits" else 140
        x = (x - x.mean(axis=0)) / (x.std() if name == "digits" else x.std(axis=0))
        y = np.eye(10)[y] - 0.1 if name == "digits" else ((y - y.mean()) / y.std())[:, None]
    matrix = nk.kernels.NTK(nk.MLP(x.shape[1], (8, 8), weight_var=2.0, bias_var=0.1))(x)
    size = matrix.diagonal().mean()
    algorithm = nk.Ridge(0.1 * size) if kind == "ridge" else nk.GradientFlow(5 / size)
    for m in (n // 6, n // 2, n):
        truth = []
        for _ in range(160):
            order = rng.permutation(len(x))
            rows, rest = order[:m], order[m : m + 1000]
            fitted = spectrum(matrix[np.ix_(rows, rows)]).apply(algorithm, y[rows])
            truth.append(((matrix[np.ix_(rest, rows)] @ fitted - y[rest]) ** 2).sum(axis=1).mean())
        found = []
        for _ in range(40):
            rows = rng.permutation(len(x))[:n]
            pool = Pool(spectrum(matrix[np.ix_(rows, rows)]), y[rows])
            summands = pool.errors(algorithm.ridges(pool.spectrum.lam_max), m)[0].sum(axis=1)
            found.append((summands.mean(), summands.std(ddof=1) / n**0.5))
        error, sem = np.array(found).T
        share = np.mean(np.abs(error - np.mean(truth)) < 2 * sem)
        statistical = np.hypot(error.std() / 40**0.5, np.std(truth) / 160**0.5) / np.mean(truth)
        bias = error.mean() / np.mean(truth) - 1
        assert abs(bias) < 0.03 + 3 * statistical and share >= 0.85, (name, kind, m, statistical)


@pytest.mark.slow
def test_real_networks_are_above_the_curve_and_approach_it():
    """Centered networks on digits, trained by gradient descent: what finite width adds to the curve."""
    import jax
    from sklearn.datasets import load_digits

    x, labels = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(x))
    x, y = ((x - x.mean(axis=0)) / x.std())[order], np.eye(10)[labels[order]] - 0.1
    m = 100
    make = lambda width: nk.MLP(64, (width, width), 10, weight_var=2.0, bias_var=0.1)
    rate = 1 / float(np.linalg.eigvalsh(nk.kernels.NTK(make(1))(x[:300]))[-1])
    algorithm = nk.GradientDescent(rate, 300)
    curve = nk.learning_curve(make(1), x[:300], y[:300], algorithm, sizes=[m])
    above = {}
    for width in (64, 512):
        net, errors = make(width), []
        for seed in range(3):
            rows, rest = np.split(rng.permutation(len(x))[:1100], [m])
            theta = net.init(jax.random.key(seed))
            start, end = np.asarray(net(theta, x[rows])), np.asarray(net(theta, x[rest]))
            run = nk.simulate(net, theta, x[rows], y[rows] + start, algorithm)
            found = np.asarray(net(run.params, x[rest])) - end
            errors.append(((found - y[rest]) ** 2).sum(axis=1).mean())
        above[width] = np.mean(errors) / curve.error[0] - 1
    assert -0.1 < above[512] < 0.3 and above[512] < above[64], above
