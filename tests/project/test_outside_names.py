"""Names of results that programs outside rely on."""

import numpy as np
import pytest

import nearkernel as nk

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(24, 3)), RNG.normal(size=(2, 3))
Y = np.sin(X[:, 0])
KERNEL = nk.kernels.RBF(2.0)
NET = nk.MLP(3, (256,), activation="erf", bias_var=0.1)
RICH = nk.MLP(3, (16,), activation="tanh", parametrization="mean_field")


@pytest.mark.parametrize(
    "found, names",
    [
        (lambda: nk.solve(KERNEL, X, Y, nk.Ridge(0.1)).leave_one_out(), "predictions residuals"),
        (lambda: nk.learning_curve(KERNEL, X, Y, nk.Ridge(0.1)), "sizes error sem"),
        (lambda: nk.forecast(NET, X[:4], Y[:4], nk.GradientFlow(1.0), NEW), "mean cov std status ok"),
        (
            lambda: nk.forecast(NET, X[:4], Y[:4], nk.GradientFlow(1.0), NEW, theory=nk.FiniteWidth()),
            "mean cov error cumulants quantile expected_loss density cdf sample",
        ),
        (
            lambda: nk.forecast(nk.Scaled(RICH, alpha=2.0), X[:4], Y[:4], nk.GradientDescent(0.1, 2), NEW),
            "mean error cov spread train loss at kernels neurons rank status",
        ),
        (lambda: nk.simulate(NET, NET.init(0), X, Y, nk.GradientDescent(0.1, 2)), "params history status"),
        (lambda: nk.measure(lambda theta: NET(theta, NEW)[0, 0], NET, size=4, key=0), "mean sem agrees"),
        (lambda: nk.propagate(NET, NEW, order=1)[1], "kernel ntk four_point"),
        (lambda: nk.critical("gelu"), "weight_var bias_var fixed_point universality"),
    ],
)
def test_results_have_the_names_that_programs_rely_on(found, names):
    record = found()
    assert [name for name in names.split() if not hasattr(record, name)] == []
