"""The main verbs on small problems: what each gives as arrays, for laws that all of them keep."""

import jax
import numpy as np

import nearkernel as nk
from nearkernel import estimators
from public_calls._good import phi, psi

K, S, G = nk.kernels, nk.statistics, nk.geometry
_RNG = np.random.default_rng(11)
X, NEW, Y = _RNG.normal(size=(8, 3)), _RNG.normal(size=(3, 3)), _RNG.normal(size=8)
IMAGES = _RNG.normal(size=(4, 5, 2))
LABELS = (Y > 0).astype(int)
NET = nk.MLP(3, (16,), activation="erf", weight_var=1.4, bias_var=0.1)
KINKED = nk.MLP(2, (5,), bias_var=0.1)
CONV = nk.Network(
    (5, 2),
    [nk.layers.Conv(4, 3), nk.layers.Activation("relu"), nk.layers.GlobalAvgPool(), nk.layers.Dense(1)],
)
WIDE = nk.MLP(3, (400,), activation="erf", bias_var=0.1)


def params():
    return NET.init(jax.random.key(3))


def bias(params):
    return params[0]["bias"]


def _forecast():
    found = nk.forecast(NET, X, Y, nk.GradientFlow(10.0), NEW)
    return found.mean, found.cov


def _simulate():
    run = nk.simulate(NET, params(), X, Y, nk.GradientDescent(0.05, 20))
    return run.history, run.params


VERBS = {
    "NTK": lambda: K.NTK(NET)(X),
    "NNGP, series": lambda: K.NNGP(nk.MLP(3, (8,), activation="tanh", bias_var=0.2))(X, NEW),
    "NTK, images": lambda: K.NTK(CONV)(IMAGES),
    "RBF": lambda: K.RBF(1.3).diag(X),
    "EmpiricalNTK": lambda: K.EmpiricalNTK(NET, params())(X),
    "mercer": lambda: nk.theory.mercer(K.RBF(1.0), X).values,
    "solve": lambda: nk.solve(K.NTK(NET), X, Y).predict(NEW).mean,
    "solve, finite time": lambda: nk.solve(K.NTK(NET), X, Y, nk.GradientDescent(0.05, 30)).predict(NEW).mean,
    "solve, cg": lambda: nk.solve(K.RBF(1.0), X, Y, nk.Ridge(0.1), solver="cg").predict(NEW).mean,
    "solve, linearized": lambda: nk.solve(nk.expand(NET, params()), X, Y, nk.Ridge(0.1)).predict(NEW).mean,
    "solve, order 1": lambda: (
        nk.solve(nk.QuadraticModel(phi, psi, 0.01), X, Y, nk.Ridge(0.1), order=1).predict(NEW).mean
    ),
    "forecast": _forecast,
    "forecast, order 1": lambda: (
        nk.forecast(WIDE, X[:3], Y[:3], nk.GradientFlow(), NEW, theory=nk.FiniteWidth()).mean
    ),
    "posterior": lambda: nk.posterior(K.RBF(1.0), X, Y, NEW, 0.1).mean,
    "simulate": _simulate,
    "measure": lambda: nk.measure(bias, KINKED, 8, jax.random.key(0)).mean,
    "propagate": lambda: nk.propagate(NET, X[:2]).layers[-1].kernel,
    "critical": lambda: nk.critical("tanh").weight_var,
    "one_step_features": lambda: nk.theory.one_step_features(X, Y, 8, jax.random.key(1)).weights,
    "phase_diagram": lambda: nk.statistics.phase_diagram("tanh", (0.5, 1.5), (0.0, 0.1)).kernel,
    "top_eigenpairs": lambda: G.top_eigenpairs(G.GaussNewton(NET, params(), X, Y), 2).values,
    "crossings": lambda: (
        nk.theory.crossings(KINKED, KINKED.init(jax.random.key(0)), (-1.0, -1.0), (1.0, 1.5)).position
    ),
    "NTKRegressor": lambda: estimators.NTKRegressor(depth=1).fit(X, Y).predict(NEW),
    "NNGPClassifier": lambda: estimators.NNGPClassifier(depth=1).fit(X, LABELS).predict_proba(NEW),
}


def same(found, expected, name: str, rtol: float = 1e-10) -> None:
    """All arrays equal, to rounding: threads may add in another order."""
    found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
    assert len(found) == len(expected), name
    for one, other in zip(found, expected, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype, name
        np.testing.assert_allclose(
            one, other, rtol=rtol, atol=rtol * np.abs(other).max(initial=0.0), err_msg=name
        )
