"""The evidence for a noise level is the marginal likelihood, and it finds the noise that was put in."""

import numpy as np
import pytest

import nearkernel as nk
from nearkernel._predict import evidence


def rows(n, noise):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3))
    kernel = nk.kernels.RBF(2.0)
    root = np.linalg.cholesky(kernel(x) + noise * np.eye(n))
    return kernel, x, root @ rng.normal(size=(n, 2))


def test_it_is_the_log_marginal_likelihood_of_the_posterior():
    kernel, x, y = rows(40, 0.1)
    found = evidence.log_evidence(kernel, x, y)
    for i in (10, 40, 60):
        exact = nk.statistics.posterior(kernel, x, y, x[:1], noise=evidence.NOISES[i]).log_marginal_likelihood
        assert found[i] == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("noise", [0.003, 0.3])
def test_it_finds_the_noise_that_was_put_in(noise):
    assert evidence.most_likely_noise(*rows(400, noise)) == pytest.approx(noise, rel=0.3)
