"""The evidence for a noise level is the marginal likelihood, and it finds the noise that was put in."""

import numpy as np
import pytest

import nearkernel as nk
from nearkernel._commands.predict import evidence


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
        exact = nk.posterior(kernel, x, y, x[:1], noise=evidence.NOISES[i]).log_marginal_likelihood
        assert found[i] == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("candidate", [35, 55])  # 0.003 and 0.3
def test_it_finds_the_noise_that_was_put_in(candidate):
    """Candidates are 26 % apart and 800 numbers tell the noise to 5.5 %: the next one is 4 standard errors off."""
    noise = evidence.NOISES[candidate]
    found = rows(400, noise)
    assert evidence.most_likely_noise(*found) == noise
    around = evidence.log_evidence(*found)[candidate - 1 : candidate + 2]
    step = np.log(evidence.NOISES[1] / evidence.NOISES[0])
    assert step > 4 * step / np.sqrt(-np.diff(around, 2)[0])


def test_singular_values_give_the_posterior_of_the_linear_kernel():
    _, x, y = rows(30, 0.1)
    x_new = np.random.default_rng(1).normal(size=(5, 3))
    kernel = nk.kernels.Linear() * (1 / 3)
    mean, variance, noise, evidence_there = evidence.most_likely_linear(x, y, x_new)
    assert noise == evidence.most_likely_noise(kernel, x, y)  # whose matrix is singular: by its eigenvalues
    exact = nk.posterior(kernel, x, y, x_new, noise=noise)
    np.testing.assert_allclose(mean, exact.mean, atol=1e-10)
    np.testing.assert_allclose(variance, exact.std**2, rtol=1e-8)
    assert evidence_there == pytest.approx(exact.log_marginal_likelihood, rel=1e-9)
    few = evidence.most_likely_linear(x[:2], y[:2], x_new)  # fewer rows than columns
    exact = nk.posterior(kernel, x[:2], y[:2], x_new, noise=few[2])
    np.testing.assert_allclose(few[1], exact.std**2, rtol=1e-8)
