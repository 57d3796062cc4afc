"""The deep linear experiment against integrals done by quadrature, and its drawn networks against its theory."""

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from nearkernel.lab import Watch, find
from nearkernel.lab.experiment import Stopped
from nearkernel.lab.experiments.deep_linear import line_from
from support.answers import number, part

DeepLinear = find("deep-linear")


def test_evidence_and_band_are_integrals_over_the_scale():
    """With one hidden layer S = v^2 chi^2_N / (n_0 N), and given S the outputs are Gaussian."""
    chosen = DeepLinear(depth=1, width=7, points=4, prior_var=0.8, signal=0.7, seed=3)
    x, y, _ = chosen._data()
    answer, inputs = chosen.theory(), x.shape[1]

    def moment(power, var=0.8):
        def integrand(q):
            s = var**2 * q / (inputs * 7)
            density = scipy.stats.multivariate_normal.pdf(y, cov=s * x @ x.T)
            return s**power * density * scipy.stats.chi2.pdf(q, 7)

        return scipy.integrate.quad(integrand, 0, 60, epsabs=0, epsrel=1e-9, limit=200)[0]

    np.testing.assert_allclose(number(answer, "ln Z"), np.log(moment(0)), atol=1e-7)
    np.testing.assert_allclose(number(answer, "scale"), inputs * moment(1) / moment(0), rtol=1e-6)
    best = number(answer, "best prior variance")
    assert moment(0, best) > max(moment(0, 1.02 * best), moment(0, best / 1.02))
    lower, upper = part(answer, 2, "this network").band
    new = line_from(x[0], chosen.seed)[-1]
    away = new - x.T @ np.linalg.solve(x @ x.T, x @ new)
    np.testing.assert_allclose(
        (upper - lower)[-1] / 2, np.sqrt(moment(1) / moment(0)) * np.linalg.norm(away), rtol=1e-6
    )
    np.testing.assert_allclose(part(answer, 2, "truth").y[20], y[0])  # the line begins at a data point
    np.testing.assert_allclose([lower[20], upper[20]], y[0])


def test_drawn_networks_agree():
    chosen = DeepLinear(depth=2, width=6, points=3, signal=0.8, seed=1)
    seen = []
    answer = chosen.check(Watch(lambda *event: seen.append(event)))
    for picture, names in ((0, "your prior variance"), (1, "your depth")):
        drawn, theory = part(answer, picture, "drawn networks"), part(answer, picture, names)
        expected = np.interp(drawn.x, theory.x, theory.y)  # exact: the grid has these places
        near = np.asarray(drawn.sem) < 0.1
        assert near.sum() >= 2
        assert np.all(np.abs(drawn.y - expected)[near] < 4 * drawn.sem[near])
    drawn, upper = part(answer, 2, "drawn networks, upper edge"), part(answer, 2, "this network").band[1]
    assert np.all(np.abs(drawn.y - upper[::3]) < 4 * drawn.sem + 1e-9)
    shares = [share for share, _, _ in seen]
    assert shares == sorted(shares) and sum(event[2] is not None for event in seen) > 3


def test_a_check_can_be_stopped():
    watch = Watch()
    watch.stop()
    with pytest.raises(Stopped):
        DeepLinear(depth=2).check(watch)


@pytest.mark.parametrize(
    "settings",
    [
        {"depth": 30, "width": 1, "points": 30, "prior_var": 0.1, "signal": 3.0},
        {"depth": 30, "width": 200, "points": 1, "prior_var": 4.0, "signal": 0.1},
        {"depth": 0, "width": 1, "points": 30, "prior_var": 4.0, "signal": 0.1},
    ],
)
def test_the_ends_of_all_settings(settings):
    answer = DeepLinear(**settings).theory()
    assert all(np.isfinite(part.y).all() for picture in answer.pictures for part in picture.parts)
    assert all(np.isfinite(each.value) for each in answer.numbers)
