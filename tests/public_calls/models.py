"""Activations and models: what the public names take."""

import jax
import jax.numpy as jnp
import numpy as np

import nearkernel as nk

from ._good import (
    KEY,
    NET,
    PARAMS,
    X_NEW,
    A,
    Call,
    K,
    M,
    X,
    Y,
    cubic,
    key,
    method,
    model,
    params,
    phi,
    polynomial,
    psi,
    target,
    x,
)

CALLS = [
    Call("richness", M.richness, dict(model=("model", NET))),
    Call("activations.get", A.get, dict(activation=("activation", "relu"))),
    Call(
        "activations.moments",
        nk.theory.moments,
        dict(activation=("activation object", A.get("erf")), q=("array", 1.0)),
    ),
    Call(
        "activations.dual",
        nk.theory.dual,
        dict(
            activation=("activation object", A.get("erf")),
            q1=("array", 1.0),
            q2=("array", 1.0),
            correlation=("array", 0.5),
        ),
    ),
    Call(
        "activations.PiecewiseLinear",
        nk.results.PiecewiseLinear,
        dict(right=("number", 1.0), left=("number", 0.0)),
    ),
    Call("activations.Monomial", nk.results.Monomial, dict(degree=("whole", 2))),
    Call(
        "nk.MLP",
        lambda **a: K.NTK(nk.MLP(**a))(np.ones((2, 3)) + np.eye(2, 3)),
        dict(
            in_dim=("whole", 3),
            widths=("widths", (4,)),
            out_dim=("whole", 1),
            activation=("activation", "relu"),
            weight_var=("positive", 1.0),
            bias_var=("positive", 0.1),
            parametrization=("choice", "ntk"),
        ),
    ),
    Call("MLP.init", NET.init, dict(key=key)),
    Call("symmetric_init", M.symmetric_init, dict(net=("net", NET), key=key, kurtosis=("positive", 2.0))),
    Call("MLP.__call__", NET.__call__, dict(params=("call params", PARAMS), x=x)),
    Call(
        "FeatureModel",
        lambda **a: nk.solve(nk.FeatureModel(**a), X, Y).predict(X_NEW),
        dict(phi=("features", phi), out_dim=("whole", 1), in_dim=("whole", 3), weight_var=("positive", 0.1)),
    ),
    Call(
        "FeatureModel.__call__",
        nk.FeatureModel(phi).__call__,
        dict(params=("feature params", np.ones((1, 6))), x=x),
    ),
    Call(
        "QuadraticModel",
        lambda **a: nk.solve(nk.QuadraticModel(**a), X, Y, nk.Ridge(0.1), order=1).predict(X_NEW),
        dict(
            phi=("features", phi),
            psi=("features", psi),
            eps=("number", 0.01),
            out_dim=("whole", 1),
            in_dim=("whole", 3),
        ),
    ),
    Call(
        "QuadraticModel.__call__",
        nk.QuadraticModel(phi, psi, 0.1).__call__,
        dict(params=("feature params", np.ones((1, 6))), x=x),
    ),
    Call(
        "CubicModel",
        lambda **a: nk.solve(nk.models.CubicModel(**a), X, Y, nk.Ridge(0.1), order=1).predict(X_NEW),
        dict(
            phi=("features", phi),
            psi=("features", psi),
            Psi=("features", cubic),
            eps=("number", 0.01),
            out_dim=("whole", 1),
        ),
    ),
    Call(
        "DiagonalNetwork",
        lambda **a: (lambda n: n(n.init(), X))(nk.theory.DiagonalNetwork(**a)),
        dict(in_dim=("whole", 3), alpha=("positive", 1.0), theta0=("vector", np.ones(3))),
    ),
    Call(
        "DiagonalNetwork.__call__",
        nk.theory.DiagonalNetwork(3).__call__,
        dict(params=("diagonal params", nk.theory.DiagonalNetwork(3).init()), x=x),
    ),
    Call("Named", nk.scale.Named, dict(name=("name", "f"), function=("function", phi))),
    Call("Scaled", nk.Scaled, dict(model=model, alpha=("positive", 2.0))),
    Call("MaximalUpdate", nk.MaximalUpdate, dict(net=("net", NET), base_width=("whole", 2))),
    Call("MaximalUpdate.init", nk.MaximalUpdate(NET).init, dict(key=key)),
    Call("MaximalUpdate.__call__", nk.MaximalUpdate(NET).__call__, dict(params=("call params", PARAMS), x=x)),
    Call("MaximalUpdate.lr_factors", nk.MaximalUpdate(NET).lr_factors, dict(optimizer=("choice", "adam"))),
    Call("Scaled.init", nk.Scaled(NET).init, dict(key=key)),
    Call(
        "Scaled.__call__",
        nk.Scaled(NET).__call__,
        dict(params=("call params", nk.Scaled(NET).init(KEY)), x=x),
    ),
    Call(
        "LoRA",
        nk.LoRA,
        dict(rank=("whole", 2), alpha=("positive", 2.0), seed=("steps", 0)),
    ),
    Call(
        "expand",
        nk.expand,
        dict(model=model, params=params, degree=("whole", 1), lr_factors=("factors", NET.lr_factors())),
    ),
    Call("Taylor.__call__", nk.expand(NET, PARAMS).__call__, dict(params=("call params", PARAMS), x=x)),
    Call(
        "from_function",
        nk.from_function,
        dict(f=("function", lambda p, x: x @ p), init=("function", lambda key: jnp.ones(3))),
    ),
    Call(
        "FunctionModel.init",
        nk.from_function(lambda p, x: x @ p, lambda key: jax.random.normal(key, (3,))).init,
        dict(key=key),
    ),
    Call("effective_features", nk.theory.effective_features, dict(model=model, params=params, x=x)),
    Call(
        "MultiIndexPolynomial",
        nk.theory.MultiIndexPolynomial,
        dict(directions=("inputs", np.eye(2, 3)), coefficients=("dictionary", {(2, 0): 0.5})),
    ),
    Call(
        "MultiIndexPolynomial.of",
        nk.theory.MultiIndexPolynomial.of,
        dict(g=("function", target), directions=("inputs", np.eye(2, 3)), degree=("whole", 2)),
    ),
    Call("MultiIndexPolynomial.__call__", lambda x: polynomial()(x), dict(x=x)),
    Call("MultiIndexPolynomial.tensor", method(polynomial, "tensor"), dict(k=("whole", 2))),
]
