"""Kernels: what the public names take."""

import numpy as np

import nearkernel as nk

from ._good import (
    NET,
    PARAMS,
    RBF,
    RELU,
    Call,
    K,
    X,
    Y,
    kernel,
    key,
    model,
    net,
    of,
    params,
    phi,
    x,
    x_new,
    y,
)

CALLS = [
    Call("RBF", of(K.RBF, X), dict(length=("positive", 1.0))),
    Call("Matern", of(K.Matern, X), dict(length=("positive", 1.0), nu=("positive", 1.5))),
    Call("Periodic", of(K.Periodic, X), dict(period=("positive", 1.0), length=("positive", 1.0))),
    Call("ARD", of(K.ARD, X), dict(kernel=("kernel object", RBF), lengths=("vector", np.ones(3)))),
    Call("Laplace", of(K.Laplace, X), dict(length=("positive", 1.0))),
    Call("Polynomial", of(K.Polynomial, X), dict(degree=("whole", 2), bias=("positive", 1.0))),
    Call("Linear.__call__", K.Linear().__call__, dict(x1=x, x2=x_new)),
    Call("RBF.__call__", RBF.__call__, dict(x1=x, x2=x_new)),
    Call("Laplace.__call__", K.Laplace(1.0).__call__, dict(x1=x, x2=x_new)),
    Call("Polynomial.features", K.Polynomial(2).features, dict(x=x)),
    Call("Polynomial.__call__", K.Polynomial(2).__call__, dict(x1=x, x2=x_new)),
    Call("RBF.diag", RBF.diag, dict(x=x)),
    Call("RBF.blocks", lambda **a: list(RBF.blocks(**a)), dict(x1=x, x2=x_new, memory=("memory", "1MiB"))),
    Call("NTK", of(K.NTK, X), dict(net=net)),
    Call("NTK.__call__", K.NTK(RELU).__call__, dict(x1=x, x2=x_new)),
    Call("NTK(tanh).__call__", K.NTK(nk.MLP(3, (4,), activation="tanh")).__call__, dict(x1=x, x2=x_new)),
    Call("NNGP", of(K.NNGP, X), dict(net=net)),
    Call("nngp_and_ntk", K.nngp_and_ntk, dict(net=net, x1=x, x2=x_new)),
    Call("layer_kernels", K.layer_kernels, dict(net=net, x=x)),
    Call(
        "Sum", of(nk.results.Sum, X), dict(left=("kernel object", RBF), right=("kernel object", K.NTK(RELU)))
    ),
    Call(
        "Product",
        of(nk.results.Product, X),
        dict(left=("kernel object", RBF), right=("kernel object", K.NTK(RELU))),
    ),
    Call(
        "Multiple", of(nk.results.Multiple, X), dict(kernel=("kernel object", RBF), factor=("positive", 2.0))
    ),
    Call(
        "Mahalanobis", of(K.Mahalanobis, X), dict(kernel=("kernel object", RBF), matrix=("inputs", np.eye(3)))
    ),
    Call("FeatureKernel", of(K.FeatureKernel, X), dict(phi=("features", phi))),
    Call("FeatureKernel.__call__", K.FeatureKernel(phi).__call__, dict(x1=x, x2=x_new)),
    Call(
        "RandomFeatures",
        of(K.RandomFeatures, X),
        dict(
            in_dim=("whole", 3),
            size=("whole", 5),
            key=key,
            activation=("activation", "relu"),
            weight_var=("positive", 1.0),
            bias_var=("positive", 0.1),
        ),
    ),
    Call(
        "EmpiricalNTK",
        of(K.EmpiricalNTK, X),
        dict(model=model, params=params, lr_factors=("factors", NET.lr_factors()), method=("choice", "auto")),
    ),
    Call(
        "EmpiricalNTK(jacobian)",
        lambda **a: K.EmpiricalNTK(NET, method="jacobian", **a)(X),
        dict(params=params, lr_factors=("factors", NET.lr_factors())),
    ),
    Call("EmpiricalNTK.full", K.EmpiricalNTK(NET, PARAMS).full, dict(x1=x, x2=x_new)),
    Call(
        "EmpiricalNTK.half_drift",
        K.EmpiricalNTK(NET, PARAMS).half_drift,
        dict(direction=params, x1=x, x2=x_new),
    ),
    Call(
        "EmpiricalDNTK",
        lambda **a: nk.theory.EmpiricalDNTK(**a)(X[:2]),
        dict(model=model, params=params, lr_factors=("factors", NET.lr_factors())),
    ),
    Call(
        "EmpiricalDNTK.__call__",
        nk.theory.EmpiricalDNTK(NET, PARAMS).__call__,
        dict(x0=x_new, x1=x_new, x2=x_new),
    ),
    Call(
        "EmpiricalDNTK.contract",
        nk.theory.EmpiricalDNTK(NET, PARAMS).contract,
        dict(x0=x_new, x1=x, p1=("targets", Y), x2=x, p2=("targets", Y)),
    ),
    Call("EmpiricalDDNTK.__call__", nk.theory.EmpiricalDDNTK(NET, PARAMS).__call__, dict(x=x_new)),
    Call(
        "EmpiricalDDNTK.contract",
        nk.theory.EmpiricalDDNTK(NET, PARAMS).contract,
        dict(x0=x_new, x1=x, p1=("targets", Y)),
    ),
    Call(
        "mercer",
        nk.theory.mercer,
        dict(kernel=kernel, x=x, weights=("vector", np.ones(6)), rank=("whole", 3)),
    ),
    Call("Mercer.functions", nk.theory.mercer(RBF, X).functions, dict(x=x)),
    Call("positivity", nk.theory.positivity, dict(kernel=kernel, x=x, tolerance=("positive", 1e-10))),
    Call("gp_samples", nk.theory.gp_samples, dict(kernel=kernel, x=x, size=("whole", 2), key=key)),
    Call("DPP", nk.theory.DPP, dict(kernel=kernel, x=x)),
    Call("DPP.sample", nk.theory.DPP(RBF, X).sample, dict(key=key, size=("whole", 2))),
    Call(
        "DPP.log_probability",
        nk.theory.DPP(RBF, X).log_probability,
        dict(points=("vector", np.array([0, 1]))),
    ),
    Call(
        "DPP.log_probability, size",
        lambda size: nk.theory.DPP(RBF, X).log_probability([0], size),
        dict(size=("whole", 1)),
    ),
    Call(
        "RKHSFunction",
        lambda **a: nk.theory.RKHSFunction(**a).norm(),
        dict(kernel=kernel, x=x, coefficients=("vector", np.ones(6))),
    ),
    Call("RKHSFunction.__call__", nk.theory.RKHSFunction(RBF, X, np.ones(6)).__call__, dict(x_new=x_new)),
    Call(
        "representer",
        nk.theory.representer,
        dict(kernel=kernel, x=x, y=y, ridge=("positive", 0.1), loss=("choice", "squared")),
    ),
    Call("norm_bounded", nk.theory.norm_bounded, dict(kernel=kernel, x=x, y=y, norm=("positive", 0.1))),
    Call("rademacher", nk.theory.rademacher, dict(kernel=kernel, x=x, norm=("positive", 1.0), key=key)),
    Call("feature_map", nk.theory.feature_map, dict(kernel=("kernel", K.Linear()), x=x)),
]
