"""Statistics: what the public names take."""

import functools

import numpy as np

import nearkernel as nk

from ._good import (
    FLOW,
    GD,
    NET,
    ONE_HOT,
    PARAMS,
    RBF,
    RELU,
    RELU_PARAMS,
    RICH,
    X_NEW,
    Call,
    S,
    X,
    Y,
    deep_linear,
    estimate,
    finite_forecast,
    forecast,
    kernel,
    key,
    kink_forecast,
    method,
    model,
    net,
    params,
    posterior,
    rich_forecast,
    sampled_forecast,
    x,
    x_new,
    y,
)

CURVE_X = np.random.default_rng(3).normal(size=(10, 3))

CALLS = [
    Call("relu_ntk_change", nk.theory.relu_ntk_change, dict(net=("net", RELU), x=x)),
    Call(
        "average_variance",
        nk.theory.average_variance,
        dict(net=("net", NET), x=("inputs", X[:1]), function=("function", np.cos), layer=("whole", 1)),
    ),
    Call(
        "forecast",
        nk.forecast,
        dict(
            problem=net,
            x=x,
            y=y,
            algorithm=("algorithm", FLOW),
            x_new=x_new,
            loss=("choice", "squared"),
        ),
    ),
    Call(
        "forecast, kernels",
        functools.partial(nk.forecast, (RBF, RBF)),
        dict(x=x, y=y, algorithm=("algorithm", FLOW), x_new=x_new),
    ),
    Call(
        "forecast, cross_entropy",
        functools.partial(nk.forecast, NET, algorithm=GD, loss="cross_entropy", theory=nk.InfiniteWidth(4)),
        dict(x=x, y=("probabilities", ONE_HOT), x_new=x_new, key=key),
    ),
    Call("SampledForecast.quantile", method(sampled_forecast, "quantile"), dict(q=("positive", 0.5))),
    Call("SampledForecast.sample", method(sampled_forecast, "sample"), dict(size=("whole", 2), key=key)),
    Call("SampledForecast.at", method(sampled_forecast, "at"), dict(time=("steps", 2))),
    Call("SampledForecast.predict", method(sampled_forecast, "predict"), dict(x_new=x_new)),
    Call(
        "forecast, SGD",
        lambda **a: nk.forecast((RBF, RBF), algorithm=nk.SGD(0.05, 2, 3), **a).cov,
        dict(x=x, y=y, x_new=x_new),
    ),
    Call("forecast, relu", functools.partial(nk.forecast, RELU), dict(x=x, y=y, x_new=x_new)),
    Call(
        "forecast, finite width",
        functools.partial(nk.forecast, NET, theory=nk.FiniteWidth()),
        dict(x=("inputs", X[:2]), y=("targets", Y[:2]), x_new=("inputs", X_NEW[:1])),
    ),
    Call(
        "forecast, kinks",
        functools.partial(nk.forecast, RELU, theory=nk.Kinks(most=64, scrambles=2)),
        dict(x=("inputs", X[:2]), y=("targets", Y[:2]), x_new=("inputs", X_NEW[:1])),
    ),
    Call(
        "FiniteWidth",
        nk.FiniteWidth,
        dict(
            exact=("whole", 4),
            tolerance=("positive", 0.1),
            most=("whole", 64),
            scrambles=("whole", 2),
            seed=("whole", 1),
            dtype=("choice", "float32"),
        ),
    ),
    Call(
        "Kinks",
        nk.Kinks,
        dict(
            tolerance=("positive", 0.1),
            most=("whole", 64),
            scrambles=("whole", 2),
            seed=("whole", 1),
            dtype=("choice", "float32"),
        ),
    ),
    Call("InfiniteWidth", nk.InfiniteWidth, dict(samples=("whole", 4))),
    Call("KinkForecast.at", method(kink_forecast, "at"), dict(time=("positive", 1.0))),
    Call("KinkForecast.predict", method(kink_forecast, "predict"), dict(x_new=x_new)),
    Call("KinkForecast.sample", method(kink_forecast, "sample"), dict(size=("whole", 2), key=key)),
    Call(
        "KinkForecast.cumulants",
        functools.partial(method(kink_forecast, "cumulants"), diagonal=True),
        dict(order=("whole", 3)),
    ),
    Call("KinkForecast.density", method(kink_forecast, "density"), dict(f=("vector", Y[:2]))),
    Call("KinkForecast.cdf", method(kink_forecast, "cdf"), dict(f=("vector", Y[:2]))),
    Call("KinkForecast.quantile", method(kink_forecast, "quantile"), dict(q=("vector", [0.1, 0.9]))),
    Call(
        "KinkForecast.width_within", method(kink_forecast, "width_within"), dict(tolerance=("positive", 0.1))
    ),
    Call(
        "KinkForecast.expected_loss", method(kink_forecast, "expected_loss"), dict(y_new=("targets", Y[:2]))
    ),
    Call(
        "forecast, rich",
        functools.partial(nk.forecast, RICH, theory=nk.MeanField(neurons=64, scrambles=2)),
        dict(
            x=x,
            y=y,
            algorithm=("algorithm", nk.GradientDescent(0.01, 2)),
            x_new=x_new,
            loss=("choice", "squared"),
        ),
    ),
    Call(
        "MeanField",
        nk.MeanField,
        dict(
            neurons=("whole", 64),
            scrambles=("whole", 2),
            tol=("positive", 0.1),
            look=("whole", 2),
            every=("whole", 2),
            dtype=("choice", "float32"),
            seed=("whole", 1),
        ),
    ),
    Call(
        "coordinate_check",
        functools.partial(S.coordinate_check, NET, widths=(2, 4)),
        dict(x=x, y=y, algorithm=("algorithm", nk.GradientDescent(0.01, 1)), key=key, draws=("whole", 2)),
    ),
    Call("first_move", S.first_move, dict(net=("net", NET), x=x, y=y, lr=("positive", 0.01))),
    Call("RichForecast.at", method(rich_forecast, "at"), dict(time=("positive", 1.0))),
    Call("RichForecast.predict", method(rich_forecast, "predict"), dict(x_new=x_new)),
    Call("RichForecast.kernels", method(rich_forecast, "kernels"), dict(time=("positive", 1.0))),
    Call(
        "RichForecast.neurons",
        method(rich_forecast, "neurons"),
        dict(layer=("whole", 1), time=("positive", 1.0)),
    ),
    Call(
        "RichForecast.spread", method(rich_forecast, "spread"), dict(width=("whole", 64), draws=("whole", 2))
    ),
    Call("Forecast.predict", method(forecast, "predict"), dict(x_new=x_new)),
    Call("Forecast.at", method(forecast, "at"), dict(time=("positive", 1.0))),
    Call("Forecast.sample", method(forecast, "sample"), dict(size=("whole", 2), key=key)),
    Call(
        "depth_losses",
        functools.partial(nk.theory.depth_losses, algorithm=nk.GradientFlow(1.0)),
        dict(net=net, x=("inputs", X[:3]), y=("targets", Y[:3])),
    ),
    Call(
        "FiniteForecast.cumulants",
        method(finite_forecast, "cumulants"),
        dict(order=("whole", 3), diagonal=("truth", True)),
    ),
    Call(
        "FiniteForecast.density",
        method(finite_forecast, "density"),
        dict(f=("vector", Y[:2]), joint=("truth", True)),
    ),
    Call("FiniteForecast.cdf", method(finite_forecast, "cdf"), dict(f=("vector", Y[:2]))),
    Call("FiniteForecast.quantile", method(finite_forecast, "quantile"), dict(q=("vector", [0.1, 0.9]))),
    Call("FiniteForecast.sample", method(finite_forecast, "sample"), dict(size=("whole", 2), key=key)),
    Call(
        "FiniteForecast.expected_loss",
        method(finite_forecast, "expected_loss"),
        dict(y_new=("targets", Y[:2])),
    ),
    Call(
        "posterior",
        nk.forecasts.posterior,
        dict(kernel=("kernel object", RBF), x=x, y=y, x_new=x_new, noise=("positive", 0.1)),
    ),
    Call("Posterior.predict", method(posterior, "predict"), dict(x_new=x_new)),
    Call("Posterior.sample", method(posterior, "sample"), dict(size=("whole", 2), key=key)),
    Call("propagate", nk.propagate, dict(net=net, x=x, order=("whole", 0))),
    Call("propagate, order 1", functools.partial(nk.propagate, RELU, order=1), dict(x=("inputs", X[:2]))),
    Call(
        "measure",
        functools.partial(nk.measure, lambda p: p[0]["bias"]),
        dict(net=model, size=("steps", 4), key=key, memory=("memory", "1MiB")),
    ),
    Call(
        "measure, observable",
        nk.measure,
        dict(observable=("observable", lambda p: p[0]["bias"]), net=model, size=("steps", 4), key=key),
    ),
    Call(
        "Estimate.agrees",
        method(estimate, "agrees"),
        dict(theory=("vector", np.zeros(4)), sigmas=("positive", 4.0)),
    ),
    Call(
        "extrapolated",
        nk.theory.extrapolated,
        dict(estimates=("estimates", [estimate(), estimate()]), widths=("widths", (4, 8))),
    ),
    Call("observables", nk.theory.observables, dict(net=net, x=x, fields=("choice", "four_point"))),
    Call(
        "trained_observables",
        functools.partial(nk.theory.trained_observables, algorithm=nk.GradientDescent(0.1)),
        dict(
            net=net,
            x=("inputs", X[:2]),
            y=("targets", Y[:2]),
            x_new=("inputs", X_NEW[:1]),
            cumulants=("whole", 4),
        ),
    ),
    Call("critical", nk.critical, dict(activation=("activation", "relu"))),
    Call(
        "Critical.chi_perp",
        nk.critical("relu").chi_perp,
        dict(kernel=("array", 1.0), weight_var=("positive", 1.0)),
    ),
    Call(
        "Critical.correlation_length",
        nk.critical("erf").correlation_length,
        dict(weight_var=("positive", 1.0), bias_var=("positive", 0.1)),
    ),
    Call("Critical.kernel_law", nk.critical("erf").kernel_law, dict(depth=("array", 10.0))),
    Call(
        "phase_diagram",
        nk.statistics.phase_diagram,
        dict(
            activation=("activation", "erf"),
            weight_vars=("vector", np.array([1.0, 2.0])),
            bias_vars=("vector", np.array([0.0, 0.1])),
        ),
    ),
    Call(
        "learning_curve",
        lambda **a: nk.learning_curve(**a).error,
        dict(
            problem=("kernel object", RBF),
            x=("inputs", CURVE_X),
            y=("targets", CURVE_X[:, 0]),
            algorithm=("algorithm", nk.Ridge(0.1)),
            sizes=("vector", np.array([4, 8])),
            check=("whole", 2),
            key=key,
        ),
    ),
    Call(
        "LearningCurve.with_features",
        nk.learning_curve(RBF, CURVE_X, CURVE_X[:, 0], nk.Ridge(0.1)).with_features,
        dict(count=("positive", 5), sizes=("vector", np.array([4, 8]))),
    ),
    Call(
        "sample_law",
        nk.theory.sample_law,
        dict(
            task=("target", nk.forecasts.power_law_task(2.0, 2.0, modes=9)),
            sizes=("vector", [3.0, 4.0]),
            algorithm=("algorithm", nk.Ridge(0.1)),
            features=("positive", 5.0),
        ),
    ),
    Call(
        "KernelTask",
        nk.forecasts.KernelTask,
        dict(
            eigenvalues=("vector", np.ones(3)),
            power=("vector", np.ones(3)),
            noise=("positive", 0.1),
            multiplicity=("vector", np.ones(3)),
            rest=("positive", 0.1),
        ),
    ),
    Call(
        "power_law_task",
        nk.forecasts.power_law_task,
        dict(decay=("number", 2.0), source=("number", 2.0), noise=("positive", 0.1), modes=("whole", 9)),
    ),
    Call(
        "sphere_task",
        nk.forecasts.sphere_task,
        dict(
            kernel=("kernel object", RBF),
            dim=("whole", 4),
            power=("vector", np.ones(3)),
            noise=("positive", 0.1),
            radius=("positive", 1.0),
            degrees=("whole", 9),
        ),
    ),
    Call(
        "posterior, finite width",
        functools.partial(nk.posterior, NET, theory=nk.FiniteWidth()),
        dict(x=x, y=y, x_new=x_new, noise=("positive", 0.1)),
    ),
    Call(
        "FinitePosterior.quantile",
        nk.posterior(nk.MLP(3, (7,), activation="erf"), X, Y, X, 0.1, theory=nk.FiniteWidth()).quantile,
        dict(q=("positive", 0.1)),
    ),
    Call(
        "width_evidence",
        nk.theory.width_evidence,
        dict(net=net, x=x, y=y, noise=("positive", 0.1), widths=("widths", (5,)), depths=("widths", (1,))),
    ),
    Call(
        "adapted_mean",
        functools.partial(nk.theory.adapted_mean, neurons=10, sweeps=80),
        dict(net=net, x=x, y=y, x_new=x_new, noise=("positive", 0.1), key=key),
    ),
    Call(
        "measure_posterior",
        functools.partial(nk.theory.measure_posterior, chains=2, samples=2, burn=2),
        dict(net=net, x=x, y=y, x_new=x_new, noise=("positive", 0.1), key=key),
    ),
    Call(
        "scaling_exponents", nk.theory.scaling_exponents, dict(decay=("number", 2.0), source=("number", 2.0))
    ),
    Call(
        "population_law",
        nk.theory.population_law,
        dict(
            task=("target", nk.forecasts.power_law_task(2.0, 2.0, modes=9)),
            times=("vector", [3.0, 4.0]),
            features=("positive", 5.0),
        ),
    ),
    Call(
        "compute_optimal",
        nk.theory.compute_optimal,
        dict(
            task=("target", nk.forecasts.power_law_task(2.0, 2.0, modes=9)), budgets=("vector", [30.0, 40.0])
        ),
    ),
    Call("gaussianity", nk.theory.gaussianity, dict(net=net, x=x, size=("steps", 4), key=key)),
    Call("gradient_spread", nk.theory.gradient_spread, dict(net=net, x=x)),
    Call(
        "GradientSpread.bad_draw", nk.theory.gradient_spread(RELU, X).bad_draw, dict(factor=("positive", 2.0))
    ),
    Call("input_gradient", nk.theory.input_gradient, dict(net=("net", RELU), coordinates=("whole", 2))),
    Call("InputGradient.cdf", nk.theory.input_gradient(RELU).cdf, dict(log_value=("array", 0.0))),
    Call("InputGradient.sample", nk.theory.input_gradient(RELU).sample, dict(size=("whole", 2), key=key)),
    Call("relu_moments", nk.theory.relu_moments, dict(net=("net", RELU), x=x, kurtosis=("positive", 2.0))),
    Call("relu_ntk", nk.theory.relu_ntk, dict(net=("net", RELU), x=x)),
    Call("path_sum", nk.theory.path_sum, dict(net=("net", RELU), params=("params", RELU_PARAMS), x=x)),
    Call("learning_rates", S.learning_rates, dict(net=net, x=x)),
    Call(
        "largest_eigenvalue",
        nk.theory.largest_eigenvalue,
        dict(net=("net", RELU), x=x, probability=("positive", 0.05)),
    ),
    Call("smallest_eigenvalue", nk.theory.smallest_eigenvalue, dict(net=net, x=x)),
    Call("concentration", nk.theory.concentration, dict(net=net, x=x, probability=("positive", 0.05))),
    Call("convergence_guarantee", nk.theory.convergence_guarantee, dict(net=net, params=params, x=x, y=y)),
    Call(
        "Guarantee.bound", nk.theory.convergence_guarantee(NET, PARAMS, X, Y).bound, dict(time=("array", 1.0))
    ),
    Call(
        "matrix_chernoff",
        nk.theory.matrix_chernoff,
        dict(
            mean=("positive", 1.0), largest=("positive", 1.0), dim=("whole", 3), probability=("positive", 0.1)
        ),
    ),
    Call(
        "matrix_chernoff_below",
        nk.theory.matrix_chernoff_below,
        dict(
            mean=("positive", 10.0),
            largest=("positive", 1.0),
            dim=("whole", 3),
            probability=("positive", 0.1),
        ),
    ),
    Call(
        "matrix_bernstein",
        nk.theory.matrix_bernstein,
        dict(
            variance=("positive", 1.0),
            largest=("positive", 1.0),
            dim=("whole", 3),
            probability=("positive", 0.1),
        ),
    ),
    Call(
        "marchenko_pastur",
        nk.theory.marchenko_pastur,
        dict(ratio=("positive", 0.5), variance=("positive", 1.0), shift=("number", 0.0)),
    ),
    Call("MarchenkoPastur.density", nk.theory.marchenko_pastur(0.5).density, dict(x=("array", 1.0))),
    Call(
        "MarchenkoPastur.stieltjes",
        nk.theory.marchenko_pastur(0.5).stieltjes,
        dict(z=("complex array", 1.0 + 1.0j)),
    ),
    Call("MarchenkoPastur.moment", nk.theory.marchenko_pastur(0.5).moment, dict(k=("whole", 2))),
    Call("MarchenkoPastur.sample", nk.theory.marchenko_pastur(0.5).sample, dict(rows=("whole", 4), key=key)),
    Call(
        "MarchenkoPastur.compare",
        nk.theory.marchenko_pastur(0.5).compare,
        dict(eigenvalues=("vector", np.ones(4))),
    ),
    Call("gram_spectrum", nk.theory.gram_spectrum, dict(x=x, variance=("positive", 1.0))),
    Call("kernel_bulk", nk.theory.kernel_bulk, dict(kernel=kernel, points=("whole", 10), dim=("whole", 10))),
    Call(
        "sampled_spectrum",
        nk.theory.sampled_spectrum,
        dict(population=("vector", np.ones(3)), ratio=("positive", 0.5)),
    ),
    Call(
        "SampledSpectrum.density",
        nk.theory.sampled_spectrum(np.ones(3), 0.5).density,
        dict(x=("array", 1.0), blur=("positive", 0.1)),
    ),
    Call(
        "gaussian_product",
        lambda **a: nk.theory.gaussian_product(**a).log_mean,
        dict(sizes=("widths", (3, 4)), weight_var=("positive", 1.0)),
    ),
    Call("GaussianProduct.moment", nk.theory.gaussian_product((3, 4)).moment, dict(k=("number", 1.0))),
    Call("GaussianProduct.pdf", nk.theory.gaussian_product((3, 4)).pdf, dict(log_value=("array", 0.0))),
    Call(
        "GaussianProduct.sample", nk.theory.gaussian_product((3, 4)).sample, dict(size=("whole", 2), key=key)
    ),
    Call(
        "deep_linear_log_evidence",
        nk.theory.deep_linear_log_evidence,
        dict(x=("inputs", X[:2]), y=("targets", Y[:2]), widths=("widths", (5,)), prior_var=("positive", 1.0)),
    ),
    Call(
        "deep_linear_posterior",
        nk.theory.deep_linear_posterior,
        dict(x=("inputs", X[:2]), y=("targets", Y[:2]), widths=("widths", (5,)), prior_var=("positive", 1.0)),
    ),
    Call("DeepLinearPosterior.quantile", method(deep_linear, "quantile"), dict(x=x_new, q=("array", 0.5))),
    Call(
        "DeepLinearPosterior.log_density",
        method(deep_linear, "log_density"),
        dict(x=x_new, values=("vector", np.zeros(2))),
    ),
    Call("DeepLinearPosterior.sample", method(deep_linear, "sample"), dict(size=("whole", 2), key=key)),
    Call(
        "best_prior_var",
        nk.theory.best_prior_var,
        dict(x=("inputs", X[:2]), y=("targets", Y[:2]), widths=("widths", (5,))),
    ),
    Call(
        "deep_linear_table",
        nk.theory.deep_linear_table,
        dict(
            x=("inputs", X[:2]),
            y=("targets", Y[:2]),
            depths=("widths", (1,)),
            widths=("widths", (5,)),
            prior_vars=("vector", (1.0,)),
        ),
    ),
    Call("effective_depth", nk.theory.effective_depth, dict(points=("whole", 2), widths=("widths", (5,)))),
    Call(
        "limiting_scale",
        nk.theory.limiting_scale,
        dict(
            nu0=("positive", 1.5), points=("whole", 2), widths=("widths", (5,)), prior_var=("positive", 1.0)
        ),
    ),
]
