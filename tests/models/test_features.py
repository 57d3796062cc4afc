"""Linear models of given features."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from support import helpers


def phi(x):
    return jnp.concatenate([jnp.ones_like(x[:, :1]), x, x**2], axis=1)


def by_hand(x):
    return np.concatenate([np.ones_like(x[:, :1]), x, x**2], axis=1)


@pytest.mark.parametrize("out_dim", [1, 3])
def test_outputs_are_weighted_features(out_dim):
    model, x = nk.FeatureModel(phi, out_dim), helpers.points(5, 2)
    weights = helpers.points(out_dim, 5, 1)
    np.testing.assert_allclose(model(weights, x), by_hand(x) @ weights.T, rtol=1e-13)


def test_one_output_may_have_a_vector_of_weights():
    model, x, weights = nk.FeatureModel(phi), helpers.points(5, 2), helpers.points(1, 5, 1)[0]
    np.testing.assert_allclose(model(weights, x), (by_hand(x) @ weights)[:, None], rtol=1e-13)


def test_weights_start_at_zero():
    params = nk.FeatureModel(phi, 3, in_dim=2).init(jax.random.key(0))
    assert params.shape == (3, 5)
    assert params.dtype == np.float64
    assert not params.any()


def test_the_tangent_kernel_is_the_dot_product_of_features():
    model, x = nk.FeatureModel(phi, in_dim=2), helpers.points(5, 2)
    kernel = nk.kernels.EmpiricalNTK(model, model.init())
    np.testing.assert_allclose(kernel(x), by_hand(x) @ by_hand(x).T, rtol=1e-13)
    np.testing.assert_allclose(kernel(x), nk.kernels.FeatureKernel(phi)(x), rtol=1e-13)


def test_bad_arguments_are_named():
    x = helpers.points(4, 2)
    with pytest.raises(TypeError, match=r"`phi` must be a function \(n, d\) -> \(n, f\); got float"):
        nk.FeatureModel(0.5)
    with pytest.raises(ValueError, match="`out_dim` must be at least 1; got 0"):
        nk.FeatureModel(phi, 0)
    with pytest.raises(
        ValueError, match=r"`FeatureModel.init` needs `in_dim`: FeatureModel\(phi, in_dim=d\)"
    ):
        nk.FeatureModel(phi).init()
    with pytest.raises(ValueError, match=r"`phi` must map \(n, d\) to \(n, f\); it maps \(4, 2\) to \(4,\)"):
        nk.FeatureModel(lambda x: x[:, 0])(np.zeros((1, 1)), x)
    with pytest.raises(
        ValueError, match=r"`phi` must map \(n, d\) to \(n, f\); it maps \(4, 2\) to \(2, 4\)"
    ):
        nk.kernels.FeatureKernel(jnp.transpose)(x)
