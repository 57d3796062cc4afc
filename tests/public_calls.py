"""Every public function, class and method that takes arguments, with good ones and the kind of each argument.

`tests/test_bad_inputs.py` puts bad values in the place of good ones. A new public name belongs here.
"""

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
def forecast():
    return nk.forecast(NET, X, Y, nk.GradientFlow(10.0), X_NEW)


@functools.cache
def posterior():
    return S.posterior(RBF, X, Y, X_NEW, 0.1)


@functools.cache
def one_step():
    return nk.one_step_features(X, Y, 4, KEY)


@functools.cache
def deep_linear():
    return S.deep_linear_posterior(X[:2], Y[:2], (5,))


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
    return G.stable_pair(X, 2, KEY)


@functools.cache
def polynomial():
    return M.MultiIndexPolynomial.of(target, np.eye(2, 3), 2)


def _method(make: Callable, name: str) -> Callable:
    return lambda **arguments: getattr(make(), name)(**arguments)


def _of(kind: Callable, *good: Any) -> Callable:
    """A class as a function of its arguments, called on good inputs at once: what a kernel's settings do is its matrix."""
    return lambda **arguments: kind(**arguments)(*good)


x, x_new, y = ("inputs", X), ("inputs", X_NEW), ("targets", Y)
net, params, key = ("net", NET), ("params", PARAMS), ("key", KEY)
model, kernel = ("model", NET), ("kernel", RBF)

CALLS = [
    Call("activations.get", A.get, dict(activation=("activation", "relu"))),
    Call("activations.moments", A.moments, dict(activation=("activation object", A.get("erf")), q=("array", 1.0))),
    Call(
        "activations.dual",
        A.dual,
        dict(activation=("activation object", A.get("erf")), q1=("array", 1.0), q2=("array", 1.0), correlation=("array", 0.5)),
    ),
    Call("activations.PiecewiseLinear", A.PiecewiseLinear, dict(right=("number", 1.0), left=("number", 0.0))),
    Call("activations.Monomial", A.Monomial, dict(degree=("whole", 2))),
    Call(
        "nk.MLP",
        lambda **a: K.NTK(nk.MLP(**a))(np.ones((2, 3)) + np.eye(2, 3)),
        dict(in_dim=("whole", 3), widths=("widths", (4,)), out_dim=("whole", 1), activation=("activation", "relu"),
             weight_var=("positive", 1.0), bias_var=("positive", 0.1), parametrization=("choice", "ntk")),
    ),
    Call("MLP.init", NET.init, dict(key=key)),
    Call("MLP.__call__", NET.__call__, dict(params=("call params", PARAMS), x=x)),
    Call("FeatureModel", lambda phi, out_dim, in_dim: nk.solve(nk.FeatureModel(phi, out_dim, in_dim), X, Y).predict(X_NEW),
         dict(phi=("features", phi), out_dim=("whole", 1), in_dim=("whole", 3))),
    Call("FeatureModel.__call__", nk.FeatureModel(phi).__call__, dict(params=("feature params", np.ones((1, 6))), x=x)),
    Call("QuadraticModel", lambda **a: nk.solve(nk.QuadraticModel(**a), X, Y, nk.Ridge(0.1), order=1).predict(X_NEW),
         dict(phi=("features", phi), psi=("features", psi), eps=("number", 0.01), out_dim=("whole", 1), in_dim=("whole", 3))),
    Call("QuadraticModel.__call__", nk.QuadraticModel(phi, psi, 0.1).__call__, dict(params=("feature params", np.ones((1, 6))), x=x)),
    Call("CubicModel", lambda **a: nk.solve(nk.CubicModel(**a), X, Y, nk.Ridge(0.1), order=1).predict(X_NEW),
         dict(phi=("features", phi), psi=("features", psi), Psi=("features", cubic), eps=("number", 0.01), out_dim=("whole", 1))),
    Call("DiagonalNetwork", lambda **a: (lambda n: n(n.init(), X))(M.DiagonalNetwork(**a)),
         dict(in_dim=("whole", 3), alpha=("positive", 1.0), theta0=("vector", np.ones(3)))),
    Call("DiagonalNetwork.__call__", M.DiagonalNetwork(3).__call__,
         dict(params=("diagonal params", M.DiagonalNetwork(3).init()), x=x)),
    Call("Scaled", nk.Scaled, dict(model=model, alpha=("positive", 2.0))),
    Call("Scaled.init", nk.Scaled(NET).init, dict(key=key)),
    Call("Scaled.__call__", nk.Scaled(NET).__call__, dict(params=("call params", nk.Scaled(NET).init(KEY)), x=x)),
    Call("expand", nk.expand, dict(model=model, params=params, degree=("whole", 1))),
    Call("Taylor.__call__", nk.expand(NET, PARAMS).__call__, dict(params=("call params", PARAMS), x=x)),
    Call("from_function", nk.from_function, dict(f=("function", lambda p, x: x @ p), init=("function", lambda key: jnp.ones(3)))),
    Call("FunctionModel.init", nk.from_function(lambda p, x: x @ p, lambda key: jax.random.normal(key, (3,))).init, dict(key=key)),
    Call("effective_features", M.effective_features, dict(model=model, params=params, x=x)),
    Call("MultiIndexPolynomial", M.MultiIndexPolynomial, dict(directions=("inputs", np.eye(2, 3)), coefficients=("dictionary", {(2, 0): 0.5}))),
    Call("MultiIndexPolynomial.of", M.MultiIndexPolynomial.of, dict(g=("function", target), directions=("inputs", np.eye(2, 3)), degree=("whole", 2))),
    Call("MultiIndexPolynomial.__call__", lambda x: polynomial()(x), dict(x=x)),
    Call("MultiIndexPolynomial.tensor", _method(polynomial, "tensor"), dict(k=("whole", 2))),
    # kernels
    Call("RBF", _of(K.RBF, X), dict(length=("positive", 1.0))),
    Call("Laplace", _of(K.Laplace, X), dict(length=("positive", 1.0))),
    Call("Polynomial", _of(K.Polynomial, X), dict(degree=("whole", 2), bias=("positive", 1.0))),
    Call("Linear.__call__", K.Linear().__call__, dict(x1=x, x2=x_new)),
    Call("RBF.__call__", RBF.__call__, dict(x1=x, x2=x_new)),
    Call("Laplace.__call__", K.Laplace(1.0).__call__, dict(x1=x, x2=x_new)),
    Call("Polynomial.features", K.Polynomial(2).features, dict(x=x)),
    Call("Polynomial.__call__", K.Polynomial(2).__call__, dict(x1=x, x2=x_new)),
    Call("RBF.diag", RBF.diag, dict(x=x)),
    Call("RBF.blocks", lambda **a: list(RBF.blocks(**a)), dict(x1=x, x2=x_new, memory=("memory", "1MiB"))),
    Call("NTK", _of(K.NTK, X), dict(net=net)),
    Call("NTK.__call__", K.NTK(RELU).__call__, dict(x1=x, x2=x_new)),
    Call("NTK(tanh).__call__", K.NTK(nk.MLP(3, (4,), activation="tanh")).__call__, dict(x1=x, x2=x_new)),
    Call("NNGP", _of(K.NNGP, X), dict(net=net)),
    Call("nngp_and_ntk", K.nngp_and_ntk, dict(net=net, x1=x, x2=x_new)),
    Call("layer_kernels", K.layer_kernels, dict(net=net, x=x)),
    Call("Sum", _of(K.Sum, X), dict(left=("kernel object", RBF), right=("kernel object", K.NTK(RELU)))),
    Call("Product", _of(K.Product, X), dict(left=("kernel object", RBF), right=("kernel object", K.NTK(RELU)))),
    Call("Scaled kernel", _of(K.Scaled, X), dict(kernel=("kernel object", RBF), factor=("positive", 2.0))),
    Call("Mahalanobis", _of(K.Mahalanobis, X), dict(kernel=("kernel object", RBF), matrix=("inputs", np.eye(3)))),
    Call("FeatureKernel", _of(K.FeatureKernel, X), dict(phi=("features", phi))),
    Call("FeatureKernel.__call__", K.FeatureKernel(phi).__call__, dict(x1=x, x2=x_new)),
    Call("RandomFeatures", _of(K.RandomFeatures, X),
         dict(in_dim=("whole", 3), size=("whole", 5), key=key, activation=("activation", "relu"), weight_var=("positive", 1.0), bias_var=("positive", 0.1))),
    Call("EmpiricalNTK", _of(K.EmpiricalNTK, X),
         dict(model=model, params=params, lr_factors=("factors", NET.lr_factors()), method=("choice", "auto"))),
    Call("EmpiricalNTK(jacobian)", lambda **a: K.EmpiricalNTK(NET, method="jacobian", **a)(X),
         dict(params=params, lr_factors=("factors", NET.lr_factors()))),
    Call("EmpiricalNTK.full", K.EmpiricalNTK(NET, PARAMS).full, dict(x1=x, x2=x_new)),
    Call("EmpiricalNTK.half_drift", K.EmpiricalNTK(NET, PARAMS).half_drift, dict(direction=params, x1=x, x2=x_new)),
    Call("EmpiricalDNTK", lambda **a: K.EmpiricalDNTK(**a)(X[:2]), dict(model=model, params=params)),
    Call("EmpiricalDNTK.__call__", K.EmpiricalDNTK(NET, PARAMS).__call__, dict(x0=x_new, x1=x_new, x2=x_new)),
    Call("EmpiricalDNTK.contract", K.EmpiricalDNTK(NET, PARAMS).contract,
         dict(x0=x_new, x1=x, p1=("targets", Y), x2=x, p2=("targets", Y))),
    Call("EmpiricalDDNTK.__call__", K.EmpiricalDDNTK(NET, PARAMS).__call__, dict(x=x_new)),
    Call("EmpiricalDDNTK.contract", K.EmpiricalDDNTK(NET, PARAMS).contract, dict(x0=x_new, x1=x, p1=("targets", Y))),
    Call("mercer", K.mercer, dict(kernel=kernel, x=x, weights=("vector", np.ones(6)), rank=("whole", 3))),
    Call("Mercer.functions", K.mercer(RBF, X).functions, dict(x=x)),
    Call("positivity", K.positivity, dict(kernel=kernel, x=x, tolerance=("positive", 1e-10))),
    Call("gp_samples", K.gp_samples, dict(kernel=kernel, x=x, size=("whole", 2), key=key)),
    Call("DPP", K.DPP, dict(kernel=kernel, x=x)),
    Call("DPP.sample", K.DPP(RBF, X).sample, dict(key=key, size=("whole", 2))),
    Call("DPP.log_probability", K.DPP(RBF, X).log_probability, dict(points=("vector", np.array([0, 1])), size=("whole", 2))),
    Call("RKHSFunction", lambda **a: K.RKHSFunction(**a).norm(), dict(kernel=kernel, x=x, coefficients=("vector", np.ones(6)))),
    Call("RKHSFunction.__call__", K.RKHSFunction(RBF, X, np.ones(6)).__call__, dict(x_new=x_new)),
    Call("representer", K.representer, dict(kernel=kernel, x=x, y=y, ridge=("positive", 0.1))),
    Call("feature_map", K.feature_map, dict(kernel=("kernel", K.Linear()), x=x)),
    # dynamics
    Call("solve", nk.solve, dict(problem=("kernel object", RBF), x=x, y=y, algorithm=("algorithm", FLOW), order=("whole", 0),
                                 loss=("choice", "squared"), solver=("choice", "direct"))),
    Call("solve, cg", functools.partial(nk.solve, solver="cg"), dict(problem=("kernel object", RBF), x=x, y=y, algorithm=("algorithm", nk.Ridge(0.1)))),
    Call("solve, eigenpro", functools.partial(nk.solve, solver="eigenpro"), dict(problem=("kernel object", RBF), x=x, y=y, algorithm=("algorithm", nk.Ridge(0.1)))),
    Call("solve, richardson", functools.partial(nk.solve, solver="richardson"), dict(problem=("kernel object", RBF), x=x, y=y, algorithm=("algorithm", nk.Ridge(0.1)))),
    Call("solve, nystrom", functools.partial(nk.solve, solver="nystrom"), dict(problem=("kernel object", RBF), x=x, y=y, algorithm=("algorithm", nk.Ridge(0.1)))),
    Call("solve, NTK", nk.solve, dict(problem=("kernel object", K.NTK(RELU)), x=x, y=y)),
    Call("solve, expanded", lambda **a: nk.solve(nk.expand(NET, PARAMS, 2), order=1, **a).predict(X_NEW), dict(x=x, y=y, algorithm=("algorithm", FLOW))),
    Call("solve, cross_entropy", functools.partial(nk.solve, RBF, algorithm=nk.GradientFlow(1.0), loss="cross_entropy"),
         dict(x=x, y=("probabilities", ONE_HOT))),
    Call("GradientDescent", nk.GradientDescent, dict(lr=("positive", 0.1), steps=("steps", 3), momentum=("positive", 0.5))),
    Call("GradientFlow", nk.GradientFlow, dict(time=("positive", 1.0), friction=("positive", 1.0))),
    Call("Ridge", nk.Ridge, dict(strength=("positive", 0.1))),
    Call("SGD", nk.SGD, dict(lr=("positive", 0.1), batch_size=("whole", 2), steps=("steps", 3))),
    Call("ConjugateGradients", D.ConjugateGradients,
         dict(tol=("positive", 1e-6), rank=("whole", 3), iterations=("steps", 10), memory=("memory", "1MiB"), seed=("steps", 0))),
    Call("Richardson", D.Richardson, dict(tol=("positive", 1e-6), iterations=("steps", 10), memory=("memory", "1MiB"))),
    Call("EigenPro", D.EigenPro, dict(tol=("positive", 1e-6), epochs=("steps", 3), rank=("whole", 3), sample=("whole", 3), batch_size=("whole", 3), seed=("steps", 0))),
    Call("Nystrom", lambda **a: nk.solve(RBF, X, Y, nk.Ridge(0.1), solver=D.Nystrom(**a)), dict(centres=("inputs", X[:3]), memory=("memory", "1MiB"), seed=("steps", 0))),
    Call("Solution.predict", _method(solution, "predict"), dict(x_new=x_new, time=("positive", 1.0))),
    Call("Solution.response", _method(solution, "response"), dict(x_new=x_new)),
    Call("NearlyKernelSolution.predict", _method(nearly, "predict"), dict(x_new=x_new)),
    Call("NearlyKernelSolution.effective_kernel", _method(nearly, "effective_kernel"), dict(x1=x, x2=x_new)),
    Call("NearlyKernelSolution.feature_learning", _method(nearly, "feature_learning"), dict(x_test=x, y_test=y)),
    Call("simulate", nk.simulate,
         dict(model=model, params=params, x=x, y=y, algorithm=("algorithm", GD), record=("record", nk.Record()), loss=("choice", "squared"),
              lr_factors=("factors", NET.lr_factors()), tol=("positive", 1e-6), max_steps=("steps", 10))),
    Call("simulate, SGD", functools.partial(nk.simulate, NET, PARAMS, X, Y, nk.SGD(0.05, 2, 3)), dict(key=key)),
    Call("simulate, cross_entropy", functools.partial(nk.simulate, CLASSIFIER, CLASSIFIER_PARAMS, X, algorithm=GD, loss="cross_entropy"),
         dict(y=("probabilities", ONE_HOT))),
    Call("Record", nk.Record, dict(observables=("dictionary", {"b": lambda p: p[0]["bias"]}), every=("positive", 2))),
    Call("phase", nk.phase, dict(model=model, params=params, x=x, y=y, lr=("positive", 0.01), steps=("steps", 2), lr_factors=("factors", NET.lr_factors()))),
    Call("phase_of", D.phase_of, dict(losses=("vector", np.array([2.0, 1.0, 0.5])))),
    Call("phase_boundaries", D.phase_boundaries,
         dict(losses=("function", lambda lr: [1.0, min(abs(1 - lr), 2.0)]), ntk=("positive", 1.0), rtol=("positive", 0.1))),
    Call("movement", D.movement, dict(model=model, start=params, end=("params", NET.init(jax.random.key(1))), x=x, lr_factors=("factors", NET.lr_factors()))),
    Call("catapult", D.catapult, dict(z=("array", 1.0), ntk=("array", 1.0), y=("array", 0.0), curvature=("array", 0.1), lr=("array", 0.1), steps=("steps", 3))),
    Call("first_gradient", D.first_gradient, dict(target=("target", M.MultiIndexPolynomial(np.eye(2, 3), {(2, 0): 1.0})), weights=("inputs", X), head=("vector", np.ones(6)), bias=("vector", np.zeros(6)), order=("whole", 1))),
    Call("gradient_moment", D.gradient_moment, dict(model=model, params=params, x=x, y=y, batch_size=("whole", 2), loss=("choice", "squared"))),
    Call("fluctuation_observables", D.fluctuation_observables, dict(model=model, origin=params, x=x, y=y, sgd=("algorithm", nk.SGD(0.1, 2, 3)), loss=("choice", "squared"))),
    Call("sgd_stationary", D.sgd_stationary, dict(features=("inputs", X[:, :2]), y=y, sgd=("algorithm", nk.SGD(0.01, 2, 3)))),
    Call("sgd_until_stationary", functools.partial(D.sgd_until_stationary, sgd=nk.SGD(0.001, 2, 400)),
         dict(model=model, params=params, x=x, y=y, key=key, tol=("positive", 0.5))),
    Call("implicit_minimizer", D.implicit_minimizer, dict(X=("inputs", X[:2]), y=("targets", Y[:2]), alpha=("positive", 0.5), theta0=("vector", np.ones(3)))),
    Call("implicit_potential", D.implicit_potential, dict(beta=("vector", np.ones(3)), alpha=("positive", 0.5), theta0=("vector", np.ones(3)))),
    Call("max_margin", D.max_margin, dict(X=("inputs", X[:2]), labels=("labels", LABELS[:2]))),
    Call("margin_flow", D.margin_flow, dict(X=("inputs", X[:2]), labels=("labels", LABELS[:2]), log_time=("vector", np.array([0.0, 1.0])), loss=("choice", "exponential"))),
    Call("one_step_features", nk.one_step_features, dict(x=x, y=y, width=("whole", 4), key=key, lr=("positive", 0.5), subspace=("inputs", np.eye(2, 3)))),
    Call("OneStepFeatures.__call__", lambda x: one_step()(x), dict(x=x)),
    Call("OneStepFeatures.directions", _method(one_step, "directions"), dict(count=("whole", 2))),
    Call("OneStepFeatures.overlap_with", _method(one_step, "overlap_with"), dict(subspace=("inputs", np.eye(2, 3)))),
    Call("OneStepFeatures.share_in", _method(one_step, "share_in"), dict(subspace=("inputs", np.eye(2, 3)))),
    Call("OneStepFeatures.fit", _method(one_step, "fit"), dict(x=x, y=y, ridge=("positive", 0.1))),
    Call("recursive_features", D.recursive_features, dict(kernel=("kernel object", K.Laplace(2.0)), x=x, y=y, algorithm=("algorithm", nk.Ridge(0.1)), rounds=("steps", 1), subspace=("inputs", np.eye(2, 3)))),
    Call("sample_space_descent", D.sample_space_descent, dict(model=model, params=params, x=x, y=y, lr=("positive", 0.01), steps=("steps", 2), x_new=x_new, order=("whole", 1))),
    Call("subspace_overlap", D.subspace_overlap, dict(found=("inputs", np.eye(2, 3)), true=("inputs", np.eye(2, 3)[::-1]))),
    Call("average_gradient_outer_product", D.average_gradient_outer_product, dict(function=("function", lambda x: x[:, 0] ** 2), x=x)),
    Call("walk_density", D.walk_density, dict(steps=("vector", np.array([1, 1, 1])))),
    Call("has_kinks", D.has_kinks, dict(model=model)),
    # statistics
    Call("forecast", nk.forecast, dict(net=net, x=x, y=y, algorithm=("algorithm", FLOW), x_new=x_new, order=("whole", 0), trained=("choice", "all"))),
    Call("forecast, relu", functools.partial(nk.forecast, RELU), dict(x=x, y=y, x_new=x_new)),
    Call("forecast, order 1", functools.partial(nk.forecast, NET, order=1), dict(x=("inputs", X[:2]), y=("targets", Y[:2]), x_new=("inputs", X_NEW[:1]))),
    Call("Forecast.predict", _method(forecast, "predict"), dict(x_new=x_new)),
    Call("Forecast.at", _method(forecast, "at"), dict(time=("positive", 1.0))),
    Call("Forecast.sample", _method(forecast, "sample"), dict(size=("whole", 2), key=key)),
    Call("posterior", S.posterior, dict(kernel=("kernel object", RBF), x=x, y=y, x_new=x_new, noise=("positive", 0.1))),
    Call("Posterior.predict", _method(posterior, "predict"), dict(x_new=x_new)),
    Call("Posterior.sample", _method(posterior, "sample"), dict(size=("whole", 2), key=key)),
    Call("propagate", nk.propagate, dict(net=net, x=x, order=("whole", 0))),
    Call("propagate, order 1", functools.partial(nk.propagate, RELU, order=1), dict(x=("inputs", X[:2]))),
    Call("measure", functools.partial(nk.measure, lambda p: p[0]["bias"]), dict(net=model, size=("steps", 4), key=key, memory=("memory", "1MiB"))),
    Call("measure, observable", nk.measure, dict(observable=("function", lambda p: p[0]["bias"]), net=model, size=("steps", 4), key=key)),
    Call("Estimate.agrees", _method(estimate, "agrees"), dict(theory=("vector", np.zeros(4)), sigmas=("positive", 4.0))),
    Call("extrapolated", S.extrapolated, dict(estimates=("estimates", [estimate(), estimate()]), widths=("widths", (4, 8)))),
    Call("observables", S.observables, dict(net=net, x=x, fields=("choice", "four_point"))),
    Call("trained_observables", functools.partial(S.trained_observables, algorithm=nk.GradientDescent(0.1)), dict(net=net, x=("inputs", X[:2]), y=("targets", Y[:2]), x_new=("inputs", X_NEW[:1]))),
    Call("critical", nk.critical, dict(activation=("activation", "relu"))),
    Call("Critical.chi_perp", nk.critical("relu").chi_perp, dict(kernel=("array", 1.0), weight_var=("positive", 1.0))),
    Call("Critical.correlation_length", nk.critical("erf").correlation_length, dict(weight_var=("positive", 1.0), bias_var=("positive", 0.1))),
    Call("Critical.kernel_law", nk.critical("erf").kernel_law, dict(depth=("array", 10.0))),
    Call("phase_diagram", nk.phase_diagram, dict(activation=("activation", "erf"), weight_vars=("vector", np.array([1.0, 2.0])), bias_vars=("vector", np.array([0.0, 0.1])))),
    Call("gaussianity", S.gaussianity, dict(net=net, x=x, size=("steps", 4), key=key)),
    Call("gradient_spread", S.gradient_spread, dict(net=net, x=x)),
    Call("GradientSpread.bad_draw", S.gradient_spread(RELU, X).bad_draw, dict(factor=("positive", 2.0))),
    Call("input_gradient", S.input_gradient, dict(net=("net", RELU), coordinates=("whole", 2))),
    Call("InputGradient.cdf", S.input_gradient(RELU).cdf, dict(log_value=("array", 0.0))),
    Call("InputGradient.sample", S.input_gradient(RELU).sample, dict(size=("whole", 2), key=key)),
    Call("relu_ntk", S.relu_ntk, dict(net=("net", RELU), x=x)),
    Call("path_sum", S.path_sum, dict(net=("net", RELU), params=("params", RELU_PARAMS), x=x)),
    Call("learning_rates", S.learning_rates, dict(net=net, x=x)),
    Call("largest_eigenvalue", S.largest_eigenvalue, dict(net=("net", RELU), x=x, probability=("positive", 0.05))),
    Call("smallest_eigenvalue", S.smallest_eigenvalue, dict(net=net, x=x)),
    Call("concentration", S.concentration, dict(net=net, x=x, probability=("positive", 0.05))),
    Call("convergence_guarantee", S.convergence_guarantee, dict(net=net, params=params, x=x, y=y)),
    Call("Guarantee.bound", S.convergence_guarantee(NET, PARAMS, X, Y).bound, dict(time=("array", 1.0))),
    Call("matrix_chernoff", S.matrix_chernoff, dict(mean=("positive", 1.0), largest=("positive", 1.0), dim=("whole", 3), probability=("positive", 0.1))),
    Call("matrix_chernoff_below", S.matrix_chernoff_below, dict(mean=("positive", 10.0), largest=("positive", 1.0), dim=("whole", 3), probability=("positive", 0.1))),
    Call("matrix_bernstein", S.matrix_bernstein, dict(variance=("positive", 1.0), largest=("positive", 1.0), dim=("whole", 3), probability=("positive", 0.1))),
    Call("marchenko_pastur", S.marchenko_pastur, dict(ratio=("positive", 0.5), variance=("positive", 1.0), shift=("number", 0.0))),
    Call("MarchenkoPastur.density", S.marchenko_pastur(0.5).density, dict(x=("array", 1.0))),
    Call("MarchenkoPastur.stieltjes", S.marchenko_pastur(0.5).stieltjes, dict(z=("complex array", 1.0 + 1.0j))),
    Call("MarchenkoPastur.moment", S.marchenko_pastur(0.5).moment, dict(k=("whole", 2))),
    Call("MarchenkoPastur.sample", S.marchenko_pastur(0.5).sample, dict(rows=("whole", 4), key=key)),
    Call("MarchenkoPastur.compare", S.marchenko_pastur(0.5).compare, dict(eigenvalues=("vector", np.ones(4)))),
    Call("gram_spectrum", S.gram_spectrum, dict(x=x, variance=("positive", 1.0))),
    Call("kernel_bulk", S.kernel_bulk, dict(kernel=kernel, points=("whole", 10), dim=("whole", 10))),
    Call("sampled_spectrum", S.sampled_spectrum, dict(population=("vector", np.ones(3)), ratio=("positive", 0.5))),
    Call("SampledSpectrum.density", S.sampled_spectrum(np.ones(3), 0.5).density, dict(x=("array", 1.0), blur=("positive", 0.1))),
    Call("gaussian_product", lambda **a: S.gaussian_product(**a).log_mean, dict(sizes=("widths", (3, 4)), weight_var=("positive", 1.0))),
    Call("GaussianProduct.moment", S.gaussian_product((3, 4)).moment, dict(k=("number", 1.0))),
    Call("GaussianProduct.pdf", S.gaussian_product((3, 4)).pdf, dict(log_value=("array", 0.0))),
    Call("GaussianProduct.sample", S.gaussian_product((3, 4)).sample, dict(size=("whole", 2), key=key)),
    Call("deep_linear_log_evidence", S.deep_linear_log_evidence, dict(X=("inputs", X[:2]), y=("targets", Y[:2]), widths=("widths", (5,)), prior_var=("positive", 1.0))),
    Call("deep_linear_posterior", S.deep_linear_posterior, dict(X=("inputs", X[:2]), y=("targets", Y[:2]), widths=("widths", (5,)), prior_var=("positive", 1.0))),
    Call("DeepLinearPosterior.quantile", _method(deep_linear, "quantile"), dict(x=x_new, q=("array", 0.5))),
    Call("DeepLinearPosterior.log_density", _method(deep_linear, "log_density"), dict(x=x_new, values=("vector", np.zeros(2)))),
    Call("DeepLinearPosterior.sample", _method(deep_linear, "sample"), dict(size=("whole", 2), key=key)),
    Call("best_prior_var", S.best_prior_var, dict(X=("inputs", X[:2]), y=("targets", Y[:2]), widths=("widths", (5,)))),
    Call("deep_linear_table", S.deep_linear_table, dict(X=("inputs", X[:2]), y=("targets", Y[:2]), depths=("widths", (1,)), widths=("widths", (5,)), prior_vars=("vector", (1.0,)))),
    Call("effective_depth", S.effective_depth, dict(points=("whole", 2), widths=("widths", (5,)))),
    Call("limiting_scale", S.limiting_scale, dict(nu0=("positive", 1.5), points=("whole", 2), widths=("widths", (5,)), prior_var=("positive", 1.0))),
    # geometry
    *[
        Call(kind.__name__, lambda kind=kind, **a: kind(**a).gradient(), dict(model=model, params=params, x=x, y=y, loss=("choice", "squared")))
        for kind in (G.Hessian, G.GaussNewton, G.Fisher, G.EmpiricalFisher)
    ],
    Call("Hessian.__call__", lambda vectors: hessian()(vectors), dict(vectors=("vector", np.ones(21)))),
    Call("top_eigenpairs", G.top_eigenpairs, dict(operator=("operator", hessian()), k=("whole", 1), which=("choice", "largest"), tol=("positive", 1e-6), seed=("steps", 0))),
    Call("sharpness", G.sharpness, dict(model=model, params=params, x=x, y=y, loss=("choice", "squared"), steps=("steps", 3), seed=("steps", 0))),
    Call("spectral_density", G.spectral_density, dict(operator=("operator", hessian()), outliers=("whole", 2), probes=("steps", 2), steps=("steps", 3), seed=("steps", 0))),
    Call("SpectralDensity.density", _method(spectral, "density"), dict(grid=("array", 1.0), width=("positive", 0.1))),
    Call("SpectralDensity.count_above", _method(spectral, "count_above"), dict(threshold=("number", 0.1))),
    Call("SpectralDensity.moment", _method(spectral, "moment"), dict(order=("whole", 1))),
    Call("overlap", G.overlap, dict(first=("inputs", np.eye(4, 2)), second=("inputs", np.eye(4, 2)[::-1]))),
    Call("gradient_share", G.gradient_share, dict(curvature=("operator", hessian()), vectors=("inputs", np.eye(21, 2)))),
    Call("gauss_newton_classes", G.gauss_newton_classes, dict(model=("model", CLASSIFIER), params=("params", CLASSIFIER_PARAMS), x=x, labels=("labels", LABELS))),
    Call("gradient_classes", G.gradient_classes, dict(model=("net", CLASSIFIER), params=("params", CLASSIFIER_PARAMS), x=x, labels=("labels", LABELS), layer=("whole", 1))),
    Call("feature_classes", G.feature_classes, dict(features=x, labels=("labels", LABELS))),
    Call("collapse", G.collapse, dict(features=x, labels=("labels", LABELS), classifier=("inputs", np.ones((2, 3))))),
    Call("last_layer", G.last_layer, dict(model=net, params=params, x=x)),
    Call("breakpoints", G.breakpoints, dict(net=("net", RELU), params=("params", RELU_PARAMS), start=("vector", np.zeros(3)), end=("vector", np.ones(3)))),
    Call("crossings", G.crossings, dict(net=("net", RELU), params=("params", RELU_PARAMS), start=("vector", np.zeros(3)), end=("vector", np.ones(3)))),
    Call("regions", G.regions, dict(net=("net", RELU_2D), params=("params", PARAMS_2D), box=("inputs", np.array([[-1.0, 1.0], [-1.0, 1.0]])))),
    Call("Regions.locate", _method(regions, "locate"), dict(points=("inputs", np.zeros((2, 2))))),
    Call("mean_crossings", G.mean_crossings, dict(net=("net", RELU), start=("vector", np.zeros(3)), end=("vector", np.ones(3)))),
    Call("measure_crossings", G.measure_crossings, dict(net=("net", RELU), start=("vector", np.zeros(3)), end=("vector", np.ones(3)), size=("steps", 2), key=key)),
    Call("region_bounds", G.region_bounds, dict(net=("net", RELU))),
    Call("zaslavsky", G.zaslavsky, dict(planes=("whole", 3), dim=("whole", 2))),
    Call("sawtooth", G.sawtooth, dict(levels=("whole", 2))),
    Call("ellipsoid_entropy", G.ellipsoid_entropy, dict(axes=("vector", np.array([1.0, 0.5])), bits=("whole", 3), tail=("positive", 0.1))),
    Call("ellipsoid_width", G.ellipsoid_width, dict(axes=("vector", np.array([1.0, 0.5])), dims=("whole", 1))),
    Call("kernel_axes", G.kernel_axes, dict(kernel=kernel, x=x, weights=("vector", np.ones(6)))),
    Call("set_entropy", G.set_entropy, dict(functions=x, bits=("whole", 2))),
    Call("lipschitz_entropy", G.lipschitz_entropy, dict(bits=("whole", 3), length=("positive", 1.0), constant=("positive", 1.0))),
    Call("lipschitz_code", G.lipschitz_code, dict(values=("vector", np.zeros(3)), length=("positive", 1.0), constant=("positive", 1.0))),
    Call("lipschitz_decode", G.lipschitz_decode, dict(code=("vector", np.array([True, False])), x=("array", 0.5), length=("positive", 1.0), constant=("positive", 1.0))),
    Call("stable_pair", G.stable_pair, dict(functions=x, bits=("whole", 2), key=key, tries=("steps", 5))),
    Call("StablePair.encode", _method(stable, "encode"), dict(functions=x)),
    Call("StablePair.decode", _method(stable, "decode"), dict(codes=("inputs", np.zeros((2, 64))))),
]  # fmt: skip
