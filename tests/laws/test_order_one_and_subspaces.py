"""What order 1 can know of a target's directions: nothing on average over initializations."""

import jax
import numpy as np
import pytest

import nearkernel as nk


@pytest.mark.slow
def test_the_first_order_drift_of_a_kernel_flips_with_the_sign_of_the_last_layer():
    """theta and theta with its last layer negated are equally likely, and their k^E - k cancel."""
    rng = np.random.default_rng(0)
    x, y, new = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=(4, 3))
    net = nk.MLP(3, (5,), 1, "gelu", weight_var=2.0, bias_var=0.2)
    model = nk.Scaled(net, 4.0)
    theta = net.init(jax.random.key(0))
    flipped = [*theta[:-1], jax.tree.map(np.negative, theta[-1])]
    drifts, starts = [], []
    for start in (theta, flipped):
        solution = nk.solve(nk.expand(model, model.at(start), degree=2), x, y, nk.Ridge(0.1), order=1)
        drifts.append(2 * (solution.effective_kernel(new) - solution.trained_kernel(new)))
        starts.append(solution.effective_kernel(new) - drifts[-1])
    np.testing.assert_allclose(starts[0], starts[1], rtol=1e-10)
    assert np.abs(drifts[0]).max() > 1e-3 * np.abs(starts[0]).max()
    np.testing.assert_allclose(drifts[0], -drifts[1], atol=1e-10 * np.abs(starts[0]).max())
