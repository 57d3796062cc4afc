"""Good arguments, and objects whose methods take some."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import nearkernel as nk

A, M, K, D, S, G = nk.activations, nk.models, nk.kernels, nk.dynamics, nk.statistics, nk.geometry
_RNG = np.random.default_rng(0)
X, X_NEW = _RNG.normal(size=(6, 3)), _RNG.normal(size=(2, 3))
Y, LABELS = _RNG.normal(size=6), np.array([0, 1, 0, 1, 0, 1])
ONE_HOT = np.eye(2)[LABELS]
KEY = jax.random.key(0)
NET = nk.MLP(3, (4,), activation="erf", bias_var=0.1)
RELU, RELU_2D = nk.MLP(3, (4,)), nk.MLP(2, (3,), bias_var=0.1)
RICH = nk.MLP(3, (4,), activation="erf", parametrization="mean_field")
CLASSIFIER = nk.MLP(3, (4,), 2, activation="erf")
PARAMS, RELU_PARAMS, CLASSIFIER_PARAMS = NET.init(KEY), RELU.init(KEY), CLASSIFIER.init(KEY)
PARAMS_2D = RELU_2D.init(KEY)
GD, FLOW = nk.GradientDescent(0.05, 3), nk.GradientFlow()
RBF = K.RBF(1.0)


class Call(NamedTuple):
    """A callable, and for each argument its kind and a good value."""

    name: str
    function: Callable
    arguments: dict[str, tuple[str, Any]]

    def good(self) -> dict[str, Any]:
        return {name: value for name, (_, value) in self.arguments.items()}


def phi(x):
    return jnp.concatenate([x, x**2], axis=1)


def psi(x, u):
    return phi(x) * u


def cubic(x, u, v):
    return phi(x) * u * v


def target(z):
    return z[:, 0] ** 2 + z[:, 1]


# Objects whose methods take arguments; made when first needed.


@functools.cache
def solution():
    return nk.solve(RBF, X, Y)


@functools.cache
def nearly():
    return nk.solve(nk.QuadraticModel(phi, psi, 0.1), X, Y, nk.Ridge(0.1), order=1)


@functools.cache
def rich_forecast():
    return nk.forecast(
        RICH, X, Y, nk.GradientDescent(0.01, 2), X_NEW, theory=nk.MeanField(neurons=64, scrambles=2)
    )


@functools.cache
def forecast():
    return nk.forecast(NET, X, Y, nk.GradientFlow(10.0), X_NEW)


@functools.cache
def finite_forecast():
    wide = nk.MLP(3, (4096,), activation="erf", bias_var=0.1)
    return nk.forecast(wide, X[:2], Y[:2], nk.GradientFlow(1.0), X_NEW, theory=nk.FiniteWidth())


@functools.cache
def kink_forecast():
    few = nk.Kinks(most=64, scrambles=2)
    return nk.forecast(RELU, X[:2], Y[:2], nk.GradientFlow(1.0), X_NEW, theory=few)


@functools.cache
def sampled_forecast():
    return nk.forecast(
        NET, X, ONE_HOT, GD, X_NEW, loss="cross_entropy", key=0, theory=nk.InfiniteWidth(samples=4)
    )


@functools.cache
def posterior():
    return nk.posterior(RBF, X, Y, X_NEW, 0.1)


@functools.cache
def one_step():
    return nk.theory.one_step_features(X, Y, 4, KEY)


@functools.cache
def deep_linear():
    return nk.theory.deep_linear_posterior(X[:2], Y[:2], (5,))


@functools.cache
def hessian():
    return G.Hessian(NET, PARAMS, X, Y)


@functools.cache
def spectral():
    return G.spectral_density(hessian(), outliers=2, probes=2, steps=4)


@functools.cache
def regions():
    return G.regions(RELU_2D, PARAMS_2D, ((-1, 1), (-1, 1)))


@functools.cache
def estimate():
    return nk.measure(lambda p: p[0]["bias"], RELU, 8, KEY)


@functools.cache
def stable():
    return nk.theory.stable_pair(X, 2, KEY)


@functools.cache
def polynomial():
    return nk.theory.MultiIndexPolynomial.of(target, np.eye(2, 3), 2)


def method(make: Callable, name: str) -> Callable:
    return lambda **arguments: getattr(make(), name)(**arguments)


def of(kind: Callable, *good: Any) -> Callable:
    """A kernel of its settings, called on good inputs at once: what settings do is seen in the matrix."""
    return lambda **arguments: kind(**arguments)(*good)


x, x_new, y = ("inputs", X), ("inputs", X_NEW), ("targets", Y)
net, params, key = ("net", NET), ("params", PARAMS), ("key", KEY)
model, kernel = ("model", NET), ("kernel", RBF)
