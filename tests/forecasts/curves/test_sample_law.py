"""Learning curves of known spectra against draws."""

import numpy as np
import pytest

import nearkernel as nk
from nearkernel.dynamics.linear.factor import Spectrum
from nearkernel.forecasts import KernelTask, power_law_task, sphere_task
from nearkernel.theory import sample_law


def drawn(task, m, algorithm, count, features=None, seed=0):
    """Gaussian eigenfunctions; the error at new points is a sum over modes."""
    rng, lam, v = np.random.default_rng(seed), task.eigenvalues, np.sqrt(task.power)
    errors = []
    for _ in range(count):
        phi = rng.normal(size=(m, len(lam)))
        y = phi @ v + task.noise**0.5 * rng.normal(size=m)
        root = np.sqrt(lam)
        mix = np.eye(len(lam)) if features is None else rng.normal(size=(len(lam), features)) / features**0.5
        seen = phi * root @ mix
        left, values, _ = np.linalg.svd(seen, full_matrices=False)
        factor = Spectrum(values**2, left)
        w = mix @ (seen.T @ factor.apply(algorithm, y[:, None]))[:, 0] * root
        errors.append(((v - w) ** 2).sum() + task.noise)
    return np.mean(errors), np.std(errors, ddof=1) / count**0.5


ISOTROPIC = KernelTask(np.ones(50), np.full(50, 1 / 50), noise=0.2)
INDEX = np.arange(1, 301.0)
POWER = KernelTask(INDEX**-1.4, INDEX**-1.8, noise=0.05)


@pytest.mark.parametrize(
    "algorithm",
    [
        nk.Ridge(0.0),
        nk.Ridge(8.0),
        nk.GradientFlow(0.03),
        nk.GradientFlow(0.4),
        nk.GradientDescent(0.004, 12),
        nk.GradientDescent(0.008, 60),
    ],
    ids=repr,
)
@pytest.mark.parametrize("m", [30, 64, 150])
def test_double_descent_of_samples(algorithm, m):
    mean, sem = drawn(ISOTROPIC, m, algorithm, 30, seed=m)
    assert abs(sample_law(ISOTROPIC, [m], algorithm)[0] - mean) < 4 * sem + 0.01 * mean


@pytest.mark.parametrize(
    "algorithm", [nk.Ridge(0.02), nk.Ridge(1e-8), nk.GradientFlow(0.5), nk.GradientFlow(60.0)], ids=repr
)
@pytest.mark.parametrize("features", [25, 120])
def test_samples_and_features(algorithm, features):
    mean, sem = drawn(POWER, 50, algorithm, 30, features)
    assert abs(sample_law(POWER, [50], algorithm, features)[0] - mean) < 4 * sem + 0.02 * mean


def test_many_features_are_the_kernel():
    for algorithm in (nk.Ridge(0.02), nk.GradientFlow(5.0)):
        few = sample_law(POWER, [20, 60], algorithm, features=1e9)
        np.testing.assert_allclose(few, sample_law(POWER, [20, 60], algorithm), rtol=1e-6)


def test_the_peak_is_unbounded():
    assert sample_law(ISOTROPIC, [50])[0] == np.inf
    assert sample_law(ISOTROPIC, [100])[0] == pytest.approx(0.2 / (1 - 50 / 100))
    assert sample_law(POWER, [60], nk.Ridge(0.0), features=60)[0] == np.inf


def test_modes_that_are_cut_off_act_as_a_ridge():
    whole = power_law_task(1.5, 2.0)
    cut = KernelTask(whole.eigenvalues[:300], whole.power[:300], whole.power[300:].sum() + whole.noise)
    rest = float(whole.multiplicity[300:] @ whole.eigenvalues[300:]) + whole.rest
    with_rest = KernelTask(cut.eigenvalues, cut.power, cut.noise, rest=rest)
    truth, wrong, right = (sample_law(task, [100])[0] for task in (whole, cut, with_rest))
    assert abs(right / truth - 1) < 0.05 < abs(wrong / truth - 1)


@pytest.mark.parametrize(("decay", "source", "slope"), [(1.5, 2.0, 1.0), (1.3, 3.5, 2.5), (2.0, 1.6, 0.6)])
def test_power_laws_have_their_exponents(decay, source, slope):
    errors = sample_law(power_law_task(decay, source), [1000, 4000])
    assert np.log(errors[0] / errors[1]) / np.log(4) == pytest.approx(slope, rel=0.05)
    noisy = sample_law(power_law_task(decay, source, noise=1.0), [4000])[0]
    assert noisy == pytest.approx(decay, rel=0.05)  # not 1: without a ridge noise is learned, too


def test_blocks_of_a_power_law_add_up():
    task = power_law_task(1.5, 2.0, modes=50_000)
    index = np.arange(1, 50_001.0)
    plain = KernelTask(index**-1.5, index**-2.0, task.noise, rest=task.rest)
    assert task.multiplicity.sum() == 50_000
    np.testing.assert_allclose(sample_law(task, [30, 300]), sample_law(plain, [30, 300]), rtol=1e-4)


def test_a_network_on_the_sphere():
    rng, d = np.random.default_rng(2), 8
    kernel = nk.kernels.NTK(nk.MLP(d, (8, 8), activation="relu", weight_var=2.0, bias_var=0.1))

    def draw(n):
        x = rng.normal(size=(n, d))
        x *= d**0.5 / np.linalg.norm(x, axis=1)[:, None]
        return x, x[:, 0] * x[:, 1] + 0.7 * x[:, 2]

    x, _ = draw(1000)
    power = [0.0, 0.49, d**2 / (d * (d + 2))]  # mean squares of x2 and of x0 x1
    task = sphere_task(kernel, d, power, noise=0.04)
    assert list(task.multiplicity[:3]) == [1, 8, 35]
    values = np.linalg.eigvalsh(kernel(x) / 1000)[::-1]
    np.testing.assert_allclose(values[:9], np.repeat(task.eigenvalues[:2], [1, 8]), rtol=0.3)
    size = float(kernel.diag(x[:1])[0])
    assert float(task.multiplicity @ task.eigenvalues) + task.rest == pytest.approx(size)
    for algorithm in (nk.Ridge(0.3 * size), nk.GradientFlow(), nk.GradientFlow(3 / size)):
        errors = []
        for _ in range(20):
            x, y = draw(100 + 500)
            noisy = y + 0.2 * rng.normal(size=600)
            fitted = nk.solve(kernel, x[:100], noisy[:100], algorithm).predict(x[100:]).mean
            errors.append(((fitted - noisy[100:]) ** 2).mean())
        sem = np.std(errors, ddof=1) / 20**0.5
        assert abs(sample_law(task, [100], algorithm)[0] - np.mean(errors)) < 4 * sem + 0.02


def test_bad_tasks_cost_one_line():
    with pytest.raises(ValueError, match="`decay` must be greater than 1"):
        power_law_task(1.0, 2.0)
    with pytest.raises(ValueError, match="`power` must be a vector with one value per eigenvalue; got shape"):
        KernelTask(np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match="`eigenvalues` must be greater than 0"):
        KernelTask(np.zeros(3), np.ones(3))
    with pytest.raises(ValueError, match="`power` must be a vector of at most 41 nonnegative values"):
        sphere_task(nk.kernels.RBF(1.0), 5, [-1.0])
    with pytest.raises(TypeError, match="`kernel` must be a kernel"):
        sphere_task(3, 5, [1.0])
    with pytest.raises(TypeError, match=r"`task` must be an nk\.forecasts\.KernelTask"):
        sample_law(3, [1])
    with pytest.raises(ValueError, match="`sizes` must be a vector of numbers greater than 0"):
        sample_law(POWER, [0])
    with pytest.raises(TypeError, match="`algorithm` must be one that can be solved"):
        sample_law(POWER, [3], nk.SGD(0.1, 2, 3))
