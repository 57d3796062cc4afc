"""Dynamics: what the public names take."""

import functools

import jax
import numpy as np
import optax

import nearkernel as nk

from ._good import (
    CLASSIFIER,
    CLASSIFIER_PARAMS,
    FLOW,
    GD,
    LABELS,
    NET,
    ONE_HOT,
    PARAMS,
    RBF,
    RELU,
    X_NEW,
    Call,
    D,
    K,
    X,
    Y,
    key,
    method,
    model,
    nearly,
    one_step,
    params,
    solution,
    x,
    x_new,
    y,
)

CALLS = [
    Call(
        "solve",
        nk.solve,
        dict(
            problem=("kernel object", RBF),
            x=x,
            y=y,
            algorithm=("algorithm", FLOW),
            order=("whole", 0),
            loss=("choice", "squared"),
            solver=("choice", "direct"),
        ),
    ),
    Call(
        "solve, cg",
        functools.partial(nk.solve, solver="cg"),
        dict(problem=("kernel object", RBF), x=x, y=y, algorithm=("algorithm", nk.Ridge(0.1))),
    ),
    Call(
        "solve, eigenpro",
        functools.partial(nk.solve, solver="eigenpro"),
        dict(problem=("kernel object", RBF), x=x, y=y, algorithm=("algorithm", nk.Ridge(0.1))),
    ),
    Call(
        "solve, richardson",
        functools.partial(nk.solve, solver="richardson"),
        dict(problem=("kernel object", RBF), x=x, y=y, algorithm=("algorithm", nk.Ridge(0.1))),
    ),
    Call(
        "solve, nystrom",
        functools.partial(nk.solve, solver="nystrom"),
        dict(problem=("kernel object", RBF), x=x, y=y, algorithm=("algorithm", nk.Ridge(0.1))),
    ),
    Call("solve, NTK", nk.solve, dict(problem=("kernel object", K.NTK(RELU)), x=x, y=y)),
    Call(
        "solve, expanded",
        lambda **a: nk.solve(nk.expand(NET, PARAMS, 2), order=1, **a).predict(X_NEW),
        dict(x=x, y=y, algorithm=("algorithm", FLOW)),
    ),
    Call(
        "solve, cross_entropy",
        functools.partial(nk.solve, RBF, algorithm=nk.GradientFlow(1.0), loss="cross_entropy"),
        dict(x=x, y=("probabilities", ONE_HOT)),
    ),
    Call(
        "inspect",
        lambda **a: nk.inspect(NET, PARAMS, **a).fitted,
        dict(
            x=x,
            y=y,
            x_new=x,
            algorithm=("algorithm", nk.GradientFlow(1.0)),
            pieces=("steps", 1),
            lr_factors=("factors", NET.lr_factors()),
        ),
    ),
    Call(
        "GradientDescent",
        nk.GradientDescent,
        dict(lr=("positive", 0.1), steps=("steps", 3), momentum=("positive", 0.5)),
    ),
    Call("GradientFlow", nk.GradientFlow, dict(time=("positive", 1.0), friction=("positive", 1.0))),
    Call("Huber", D.Huber, dict(delta=("positive", 0.5))),
    Call(
        "tune, evidence",
        lambda **a: nk.dynamics.tune(kind="evidence", **a).noise,
        dict(problem=("kernel object", RBF), x=x, y=y, noise=("positive", 0.1)),
    ),
    Call("SGD.at", nk.SGD(0.1, 2, 3).at, dict(time=("steps", 2))),
    Call(
        "Optax",
        functools.partial(nk.Optax, optax.sgd(0.1)),
        dict(steps=("steps", 3), batch_size=("whole", 2)),
    ),
    Call(
        "solve, SGD",
        lambda **a: nk.solve(RBF, algorithm=nk.SGD(0.05, 2, 3), **a).predict(X_NEW).cov,
        dict(x=x, y=y),
    ),
    Call("Ridge", nk.Ridge, dict(strength=("positive", 0.1))),
    Call("SGD", nk.SGD, dict(lr=("positive", 0.1), batch_size=("whole", 2), steps=("steps", 3))),
    Call(
        "Adam",
        nk.Adam,
        dict(
            lr=("positive", 0.1),
            steps=("steps", 3),
            beta1=("positive", 0.5),
            beta2=("positive", 0.9),
            eps=("positive", 1e-8),
        ),
    ),
    Call(
        "SGD, decay",
        functools.partial(nk.SGD, 0.1, 2, 3),
        dict(
            momentum=("positive", 0.5),
            weight_decay=("positive", 0.1),
            schedule=("function", np.sin),
            decay_to=("choice", "start"),
            batches=("choice", "bernoulli"),
            noise=("positive", 0.1),
        ),
    ),
    Call(
        "ConjugateGradients",
        D.ConjugateGradients,
        dict(
            tol=("positive", 1e-6),
            rank=("whole", 3),
            iterations=("steps", 10),
            memory=("memory", "1MiB"),
            seed=("steps", 0),
        ),
    ),
    Call(
        "Richardson",
        D.Richardson,
        dict(tol=("positive", 1e-6), iterations=("steps", 10), memory=("memory", "1MiB")),
    ),
    Call(
        "EigenPro",
        D.EigenPro,
        dict(
            tol=("positive", 1e-6),
            epochs=("steps", 3),
            rank=("whole", 3),
            sample=("whole", 3),
            batch_size=("whole", 3),
            seed=("steps", 0),
        ),
    ),
    Call(
        "Nystrom",
        lambda **a: nk.solve(RBF, X, Y, nk.Ridge(0.1), solver=D.Nystrom(**a)),
        dict(centers=("inputs", X[:3]), memory=("memory", "1MiB"), seed=("steps", 0)),
    ),
    Call("Solution.predict", method(solution, "predict"), dict(x_new=x_new, time=("positive", 1.0))),
    Call(
        "Solution.predict_each",
        lambda **a: solution().predict_each(algorithms=[nk.Ridge(0.1), GD], **a),
        dict(x_new=x_new),
    ),
    Call("Solution.leave_one_out", method(solution, "leave_one_out"), dict(time=("positive", 1.0))),
    Call(
        "tune",
        nk.dynamics.tune,
        dict(
            problem=("kernel object", RBF), x=x, y=y, kind=("choice", "ridge"), values=("vector", [0.1, 1.0])
        ),
    ),
    Call("Solution.response", method(solution, "response"), dict(x_new=x_new)),
    Call("NearlyKernelSolution.predict", method(nearly, "predict"), dict(x_new=x_new)),
    Call("NearlyKernelSolution.effective_kernel", method(nearly, "effective_kernel"), dict(x1=x, x2=x_new)),
    Call("NearlyKernelSolution.quadratic_form", method(nearly, "quadratic_form"), dict(x_new=x_new)),
    Call(
        "NearlyKernelSolution.feature_learning", method(nearly, "feature_learning"), dict(x_test=x, y_test=y)
    ),
    Call(
        "simulate",
        nk.simulate,
        dict(
            model=model,
            params=params,
            x=x,
            y=y,
            algorithm=("algorithm", GD),
            record=("record", nk.Record()),
            loss=("choice", "squared"),
            lr_factors=("factors", NET.lr_factors()),
            tol=("positive", 1e-6),
            max_steps=("steps", 10),
        ),
    ),
    Call(
        "simulate, SGD", functools.partial(nk.simulate, NET, PARAMS, X, Y, nk.SGD(0.05, 2, 3)), dict(key=key)
    ),
    Call(
        "simulate, cross_entropy",
        functools.partial(nk.simulate, CLASSIFIER, CLASSIFIER_PARAMS, X, algorithm=GD, loss="cross_entropy"),
        dict(y=("probabilities", ONE_HOT)),
    ),
    Call(
        "Record",
        nk.Record,
        dict(observables=("dictionary", {"b": lambda p: p[0]["bias"]}), every=("positive", 2)),
    ),
    Call("regime", nk.regime, dict(model=("model", NET), y=y, correction=("positive", 0.05))),
    Call(
        "learning_rate_phase",
        nk.theory.learning_rate_phase,
        dict(
            model=model,
            params=params,
            x=x,
            y=y,
            lr=("positive", 0.01),
            steps=("steps", 2),
            lr_factors=("factors", NET.lr_factors()),
        ),
    ),
    Call("phase_of", nk.theory.phase_of, dict(losses=("vector", np.array([2.0, 1.0, 0.5])))),
    Call(
        "phase_boundaries",
        nk.theory.phase_boundaries,
        dict(
            losses=("function", lambda lr: [1.0, min(abs(1 - lr), 2.0)]),
            ntk=("positive", 1.0),
            rtol=("positive", 0.1),
        ),
    ),
    Call(
        "movement",
        nk.theory.movement,
        dict(
            model=model,
            start=params,
            end=("params", NET.init(jax.random.key(1))),
            x=x,
            lr_factors=("factors", NET.lr_factors()),
        ),
    ),
    Call(
        "catapult",
        nk.theory.catapult,
        dict(
            z=("array", 1.0),
            ntk=("array", 1.0),
            y=("array", 0.0),
            curvature=("array", 0.1),
            lr=("array", 0.1),
            steps=("steps", 3),
        ),
    ),
    Call(
        "first_gradient",
        nk.theory.first_gradient,
        dict(
            target=("target", nk.theory.MultiIndexPolynomial(np.eye(2, 3), {(2, 0): 1.0})),
            weights=("inputs", X),
            head=("vector", np.ones(6)),
            bias=("vector", np.zeros(6)),
            order=("whole", 1),
        ),
    ),
    Call(
        "gradient_moment",
        nk.theory.gradient_moment,
        dict(model=model, params=params, x=x, y=y, batch_size=("whole", 2), loss=("choice", "squared")),
    ),
    Call(
        "fluctuation_observables",
        nk.theory.fluctuation_observables,
        dict(
            model=model,
            origin=params,
            x=x,
            y=y,
            sgd=("algorithm", nk.SGD(0.1, 2, 3)),
            loss=("choice", "squared"),
            lr_factors=("factors", NET.lr_factors()),
        ),
    ),
    Call(
        "sgd_stationary",
        nk.theory.sgd_stationary,
        dict(features=("inputs", X[:, :2]), y=y, sgd=("algorithm", nk.SGD(0.01, 2, 3))),
    ),
    Call(
        "sgd_until_stationary",
        functools.partial(nk.theory.sgd_until_stationary, sgd=nk.SGD(0.001, 2, 400)),
        dict(
            model=model,
            params=params,
            x=x,
            y=y,
            key=key,
            tol=("positive", 0.5),
            lr_factors=("factors", NET.lr_factors()),
        ),
    ),
    Call(
        "implicit_minimizer",
        nk.theory.implicit_minimizer,
        dict(
            x=("inputs", X[:2]), y=("targets", Y[:2]), alpha=("positive", 0.5), theta0=("vector", np.ones(3))
        ),
    ),
    Call(
        "implicit_potential",
        nk.theory.implicit_potential,
        dict(beta=("vector", np.ones(3)), alpha=("positive", 0.5), theta0=("vector", np.ones(3))),
    ),
    Call("max_margin", nk.theory.max_margin, dict(x=("inputs", X[:2]), labels=("labels", LABELS[:2]))),
    Call(
        "kernel_margin", nk.theory.kernel_margin, dict(kernel=("kernel", RBF), x=x, labels=("labels", LABELS))
    ),
    Call(
        "KernelMargin.__call__",
        lambda x_new: nk.theory.kernel_margin(RBF, X, LABELS)(x_new),
        dict(x_new=x_new),
    ),
    Call(
        "normalized_margin",
        nk.theory.normalized_margin,
        dict(net=("net", RELU), params=("params", RELU.init(0)), x=x, labels=("labels", LABELS)),
    ),
    Call(
        "margin_flow",
        nk.theory.margin_flow,
        dict(
            x=("inputs", X[:2]),
            labels=("labels", LABELS[:2]),
            log_time=("vector", np.array([0.0, 1.0])),
            loss=("choice", "exponential"),
        ),
    ),
    Call(
        "one_step_features",
        nk.theory.one_step_features,
        dict(
            x=x,
            y=y,
            width=("whole", 4),
            key=key,
            lr=("positive", 0.5),
            subspace=("inputs", np.eye(2, 3)),
            head=("positive", 0.1),
        ),
    ),
    Call(
        "one_step_bound",
        nk.theory.one_step_bound,
        dict(
            target=("model", nk.theory.MultiIndexPolynomial(np.eye(1, 3), {(2,): 1.0})),
            points=("whole", 3),
            width=("whole", 3),
        ),
    ),
    Call(
        "query_bound",
        nk.theory.query_bound,
        dict(dim=("whole", 3), degree=("steps", 4), queries=("number", 2.0)),
    ),
    Call(
        "output_modes",
        nk.theory.output_modes,
        dict(model=model, params=params, x=("inputs", X[:1]), lr_factors=("factors", NET.lr_factors())),
    ),
    Call(
        "mode_catapult",
        nk.theory.mode_catapult,
        dict(
            modes=("record", nk.results.ModesResult(1.0, np.ones(2), np.ones(2))),
            y=("number", 0.0),
            lr=("array", 0.1),
            steps=("steps", 3),
        ),
    ),
    Call(
        "step_change",
        nk.theory.step_change,
        dict(
            observable=("function", lambda params: 1.0),
            model=model,
            params=params,
            x=x,
            y=y,
            sgd=("algorithm", nk.SGD(0.1, 2, 3)),
            loss=("choice", "squared"),
            lr_factors=("factors", NET.lr_factors()),
        ),
    ),
    Call("OneStepFeatures.__call__", lambda x: one_step()(x), dict(x=x)),
    Call("OneStepFeatures.directions", method(one_step, "directions"), dict(count=("whole", 2))),
    Call(
        "OneStepFeatures.overlap_with",
        method(one_step, "overlap_with"),
        dict(subspace=("inputs", np.eye(2, 3))),
    ),
    Call("OneStepFeatures.share_in", method(one_step, "share_in"), dict(subspace=("inputs", np.eye(2, 3)))),
    Call("OneStepFeatures.fit", method(one_step, "fit"), dict(x=x, y=y, ridge=("positive", 0.1))),
    Call(
        "recursive_features",
        nk.theory.recursive_features,
        dict(
            kernel=("kernel object", K.Laplace(2.0)),
            x=x,
            y=y,
            algorithm=("algorithm", nk.Ridge(0.1)),
            rounds=("steps", 1),
            subspace=("inputs", np.eye(2, 3)),
        ),
    ),
    Call(
        "sample_space_descent",
        nk.theory.sample_space_descent,
        dict(
            model=model,
            params=params,
            x=x,
            y=y,
            lr=("positive", 0.01),
            steps=("steps", 2),
            x_new=x_new,
            order=("whole", 1),
        ),
    ),
    Call(
        "subspace_overlap",
        nk.theory.subspace_overlap,
        dict(found=("inputs", np.eye(2, 3)), true=("inputs", np.eye(2, 3)[::-1])),
    ),
    Call(
        "average_gradient_outer_product",
        nk.theory.average_gradient_outer_product,
        dict(function=("observable", lambda x: x[:, 0] ** 2), x=x),
    ),
    Call("walk_density", nk.theory.walk_density, dict(steps=("vector", np.array([1, 1, 1])))),
    Call("has_kinks", nk.theory.has_kinks, dict(model=model)),
    Call(
        "has_kinks, measured",
        functools.partial(nk.theory.has_kinks, nk.from_function(NET), PARAMS),
        dict(x=x),
    ),
]
