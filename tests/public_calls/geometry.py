"""Geometry: what the public names take."""

import numpy as np

import nearkernel as nk

from ._good import (
    CLASSIFIER,
    CLASSIFIER_PARAMS,
    LABELS,
    PARAMS_2D,
    RELU,
    RELU_2D,
    RELU_PARAMS,
    Call,
    G,
    hessian,
    kernel,
    key,
    method,
    model,
    net,
    params,
    regions,
    spectral,
    stable,
    x,
    y,
)

CALLS = [
    *[
        Call(
            kind.__name__,
            lambda kind=kind, **a: kind(**a).gradient(),
            dict(model=model, params=params, x=x, y=y, loss=("choice", "squared")),
        )
        for kind in (G.Hessian, G.GaussNewton, G.Fisher, G.EmpiricalFisher)
    ],
    Call("Hessian.__call__", lambda vectors: hessian()(vectors), dict(vectors=("vector", np.ones(21)))),
    Call(
        "top_eigenpairs",
        G.top_eigenpairs,
        dict(
            operator=("operator", hessian()),
            k=("whole", 1),
            which=("choice", "largest"),
            tol=("positive", 1e-6),
            seed=("steps", 0),
        ),
    ),
    Call(
        "sharpness",
        G.sharpness,
        dict(
            model=model,
            params=params,
            x=x,
            y=y,
            loss=("choice", "squared"),
            steps=("steps", 3),
            seed=("steps", 0),
        ),
    ),
    Call(
        "spectral_density",
        G.spectral_density,
        dict(
            operator=("operator", hessian()),
            outliers=("whole", 2),
            probes=("steps", 2),
            steps=("steps", 3),
            seed=("steps", 0),
        ),
    ),
    Call(
        "SpectralDensity.density",
        method(spectral, "density"),
        dict(grid=("array", 1.0), width=("positive", 0.1)),
    ),
    Call("SpectralDensity.count_above", method(spectral, "count_above"), dict(threshold=("number", 0.1))),
    Call("SpectralDensity.moment", method(spectral, "moment"), dict(order=("whole", 1))),
    Call(
        "gradient_share",
        nk.theory.gradient_share,
        dict(curvature=("operator", hessian()), vectors=("inputs", np.eye(21, 2))),
    ),
    Call(
        "gauss_newton_classes",
        nk.theory.gauss_newton_classes,
        dict(
            model=("model", CLASSIFIER), params=("params", CLASSIFIER_PARAMS), x=x, labels=("labels", LABELS)
        ),
    ),
    Call(
        "gradient_classes",
        nk.theory.gradient_classes,
        dict(
            model=("net", CLASSIFIER),
            params=("params", CLASSIFIER_PARAMS),
            x=x,
            labels=("labels", LABELS),
            layer=("whole", 1),
        ),
    ),
    Call("feature_classes", nk.theory.feature_classes, dict(features=x, labels=("labels", LABELS))),
    Call(
        "collapse",
        G.collapse,
        dict(features=x, labels=("labels", LABELS), classifier=("inputs", np.ones((2, 3)))),
    ),
    Call("last_layer", nk.theory.last_layer, dict(model=net, params=params, x=x)),
    Call(
        "breakpoints",
        nk.theory.breakpoints,
        dict(
            net=("net", RELU),
            params=("params", RELU_PARAMS),
            start=("vector", np.zeros(3)),
            end=("vector", np.ones(3)),
        ),
    ),
    Call(
        "crossings",
        nk.theory.crossings,
        dict(
            net=("net", RELU),
            params=("params", RELU_PARAMS),
            start=("vector", np.zeros(3)),
            end=("vector", np.ones(3)),
        ),
    ),
    Call(
        "regions",
        G.regions,
        dict(
            net=("net", RELU_2D),
            params=("params", PARAMS_2D),
            box=("inputs", np.array([[-1.0, 1.0], [-1.0, 1.0]])),
        ),
    ),
    Call("Regions.locate", method(regions, "locate"), dict(points=("inputs", np.zeros((2, 2))))),
    Call(
        "mean_crossings",
        nk.theory.mean_crossings,
        dict(net=("net", RELU), start=("vector", np.zeros(3)), end=("vector", np.ones(3))),
    ),
    Call(
        "measure_crossings",
        nk.theory.measure_crossings,
        dict(
            net=("net", RELU),
            start=("vector", np.zeros(3)),
            end=("vector", np.ones(3)),
            size=("steps", 2),
            key=key,
        ),
    ),
    Call("region_bounds", nk.theory.region_bounds, dict(net=("net", RELU))),
    Call("zaslavsky", nk.theory.zaslavsky, dict(planes=("whole", 3), dim=("whole", 2))),
    Call("sawtooth", nk.theory.sawtooth, dict(levels=("whole", 2))),
    Call(
        "ellipsoid_entropy",
        nk.theory.ellipsoid_entropy,
        dict(axes=("vector", np.array([1.0, 0.5])), bits=("whole", 3), tail=("positive", 0.1)),
    ),
    Call(
        "ellipsoid_width",
        nk.theory.ellipsoid_width,
        dict(axes=("vector", np.array([1.0, 0.5])), dims=("whole", 1)),
    ),
    Call("kernel_axes", nk.theory.kernel_axes, dict(kernel=kernel, x=x, weights=("vector", np.ones(6)))),
    Call("sobolev_axes", nk.theory.sobolev_axes, dict(count=("whole", 3), dim=("whole", 2))),
    Call("projection_dims", nk.theory.projection_dims, dict(points=("whole", 3), eps=("positive", 0.5))),
    Call(
        "random_projection",
        nk.theory.random_projection,
        dict(x=x, eps=("positive", 0.5), key=key, tries=("steps", 5)),
    ),
    Call(
        "cell",
        nk.theory.cell,
        dict(net=("net", RELU), params=("params", RELU_PARAMS), point=("vector", np.ones(3))),
    ),
    Call("mean_boundary", nk.theory.mean_boundary, dict(net=("net", RELU), radius=("positive", 1.0))),
    Call(
        "measure_boundary",
        nk.theory.measure_boundary,
        dict(net=("net", RELU), radius=("positive", 1.0), size=("steps", 2), key=key),
    ),
    Call("lipschitz_bounds", nk.theory.lipschitz_bounds, dict(net=net, params=params, x=x)),
    Call("sampling_width", nk.theory.sampling_width, dict(kernel=kernel, seen=x, x=x)),
    Call("set_packing", nk.theory.set_packing, dict(functions=x, radius=("positive", 0.1))),
    Call("set_entropy", nk.theory.set_entropy, dict(functions=x, bits=("whole", 2))),
    Call(
        "lipschitz_entropy",
        nk.theory.lipschitz_entropy,
        dict(bits=("whole", 3), length=("positive", 1.0), constant=("positive", 1.0), dim=("whole", 1)),
    ),
    Call(
        "lipschitz_code",
        nk.theory.lipschitz_code,
        dict(values=("vector", np.zeros(3)), length=("positive", 1.0), constant=("positive", 1.0)),
    ),
    Call(
        "lipschitz_decode",
        nk.theory.lipschitz_decode,
        dict(
            code=("vector", np.array([True, False])),
            x=("array", 0.5),
            length=("positive", 1.0),
            constant=("positive", 1.0),
        ),
    ),
    Call(
        "stable_pair",
        nk.theory.stable_pair,
        dict(functions=x, bits=("whole", 2), key=key, tries=("steps", 5)),
    ),
    Call("StablePair.encode", method(stable, "encode"), dict(functions=x)),
    Call("StablePair.decode", method(stable, "decode"), dict(codes=("inputs", np.zeros((2, 64))))),
]
