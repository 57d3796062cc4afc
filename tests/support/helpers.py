"""What several test files share: data, errors, and names of things to run a law over."""

import jax
import jax.numpy as jnp
import numpy as np

import nearkernel as nk


def points(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Gaussian inputs (n, d)."""
    return np.random.default_rng(seed).normal(size=(n, d))


def relative_error(found, expected) -> float:
    """Largest entry of the difference over the largest expected entry."""
    found, expected = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    assert found.shape == expected.shape, f"{found.shape} is not {expected.shape}"
    return float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))


def to_float64(tree):
    """A tree of float64 JAX arrays."""
    with jax.enable_x64(True):
        return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, dtype=np.float64)), tree)


def compiled(function):
    """`function` of NumPy arrays in one float64 compilation, its result in NumPy: eager calls compile op by op."""
    run = jax.jit(lambda *args: function(*args))

    def call(*args):
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, run(*args))

    return call


def hard_tanh(z):
    return jnp.clip(z, -1.0, 1.0)


def wavy(z):
    """Neither odd nor even, neither monotone nor bounded."""
    return jnp.sin(3.0 * z) + 0.1 * z**2


def kernels(d: int) -> dict[str, nk.kernels.AbstractKernel]:
    """One kernel of every kind, for inputs of `d` features."""

    def net(activation, **options):
        return nk.MLP(d, (8, 8), activation=activation, **({"weight_var": 1.4, "bias_var": 0.2} | options))

    tanh = net("tanh")
    return {
        "linear": nk.kernels.Linear(),
        "polynomial": nk.kernels.Polynomial(3, 0.5),
        "rbf": nk.kernels.RBF(1.3),
        "laplace": nk.kernels.Laplace(0.8),
        "matern": nk.kernels.Matern(0.8, nu=2.5),
        "periodic": nk.kernels.Periodic(2.3, 0.9),
        "ard": nk.kernels.ARD(nk.kernels.Laplace(), np.linspace(0.5, 2.0, d)),
        "mahalanobis": nk.kernels.Mahalanobis(nk.kernels.RBF(1.1), np.diag(np.linspace(0.2, 2.0, d))),
        "relu nngp": nk.kernels.NNGP(net("relu")),
        "relu ntk": nk.kernels.NTK(net("relu", bias_var=0.0)),
        "gelu ntk": nk.kernels.NTK(net("gelu")),
        "tanh ntk": nk.kernels.NTK(tanh),
        "hard tanh ntk": nk.kernels.NTK(net(hard_tanh)),
        "mean-field ntk": nk.kernels.NTK(net("erf", parametrization="mean_field")),
        "deep abs ntk": nk.kernels.NTK(nk.MLP(d, (8,) * 9, activation="abs")),
        "random features": nk.kernels.RandomFeatures(d, 20, jax.random.key(1), "gelu"),
        "given features": nk.kernels.FeatureKernel(lambda x: x**2),
        "empirical": nk.kernels.EmpiricalNTK(tanh, tanh.init(jax.random.key(2))),
        "sum": nk.kernels.Linear() + nk.kernels.RBF(),
        "product": nk.kernels.Polynomial() * nk.kernels.NNGP(net("sin")),
        "scaled": 0.3 * nk.kernels.Laplace(),
    }
