"""What nearkernel is timed on; runs in the environment of the benchmark itself."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from _worker import load, serve, start_jax

import nearkernel as nk

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.networks import network


def _net(activation, widths=(512, 512, 512), in_dim=784, out_dim=1, weight_var=1.5, bias_var=0.1):
    return nk.MLP(in_dim, tuple(widths), out_dim, activation, weight_var, bias_var)


def infinite(folder, activation, **variances):
    """NNGP and NTK of an infinitely wide network, in one pass."""
    start_jax()
    net, (x,) = _net(activation, **variances), load(folder, "x")
    return lambda: dict(zip(("nngp", "ntk"), nk.kernels.nngp_and_ntk(net, x), strict=True))


def empirical(folder, activation, widths, out_dim, full, **variances):
    """Tangent kernel of a finite network at given parameters."""
    start_jax()
    net, (x,) = _net(activation, widths, out_dim=out_dim, **variances), load(folder, "x")
    with jax.enable_x64(True):  # JAX arrays, as `net.init` gives them
        params = [
            {name: jnp.array(*load(folder, f"{name}{layer}")) for name in ("weight", "bias")}
            for layer in range(len(widths) + 1)
        ]
    kernel = nk.kernels.EmpiricalNTK(net, params)
    return lambda: {"ntk": kernel.full(x) if full else kernel(x)}


def forecast(folder, activation, times, cached, **variances):
    """Mean and covariance of trained outputs at several times; `cached`: with what an earlier call has factored."""
    start_jax()
    net, (x, y, x_new) = _net(activation, **variances), load(folder, "x", "y", "x_new")
    kept = []

    def run():
        start = kept[0] if kept else nk.forecast(net, x, y, nk.GradientFlow(times[0]), x_new)
        mean, cov = np.empty((len(times), len(x_new), 1)), np.empty((len(times), len(x_new), len(x_new)))
        for i, t in enumerate(times):
            now = start.at(t) if kept or i else start
            mean[i], cov[i] = now.mean, now.cov
        if cached:
            kept[:] = [start]
        return {"mean": mean, "cov": cov}

    return run


def layers(folder, shape, layers, float32=False):
    """NNGP and NTK of a network made of layers (see tests/support/architectures.py), in one pass."""
    start_jax()
    net, (x,) = network(tuple(shape), layers), load(folder, "x")

    def run():
        with nk.precision("float32" if float32 else "float64"):
            return dict(zip(("nngp", "ntk"), nk.kernels.nngp_and_ntk(net, x), strict=True))

    return run


def layers_empirical(folder, shape, layers, width, full=True):
    """Tangent kernel of a finite network made of layers, all pairs of outputs or their mean."""
    start_jax()
    net, (x,) = network(tuple(shape), layers, width), load(folder, "x")
    with jax.enable_x64(True):
        params = [
            {name: jnp.array(*load(folder, f"{name}{layer}")) for name in ("weight", "bias")}
            for layer in range(len(net.parameter_shapes()))
        ]
    kernel = nk.kernels.EmpiricalNTK(net, params)
    return lambda: {"ntk": kernel.full(x) if full else kernel(x)}


def ridge(folder, gamma, alpha):
    """Kernel ridge regression with k(x, y) = exp(-gamma |x - y|^2): fit and predict."""
    start_jax()
    x, y, x_new = load(folder, "x", "y", "x_new")
    kernel = nk.kernels.RBF((2.0 * gamma) ** -0.5)
    return lambda: {"mean": nk.solve(kernel, x, y, nk.Ridge(alpha)).predict(x_new).mean}


def machine(folder, length, ridge):
    """Kernel ridge regression on all points, by conjugate gradients to 1e-3 in float32."""
    return _solved(folder, length, ridge, nk.dynamics.ConjugateGradients(tol=1e-3), "float32")


def centers(folder, length, ridge, m, dtype="float32"):
    """The same on m centers."""
    return _solved(folder, length, ridge, nk.dynamics.Nystrom(centers=load(folder, "centers")[0][:m]), dtype)


def _solved(folder, length, ridge, solver, dtype):
    start_jax()
    x, y, x_new = load(folder, "x", "y", "x_new")

    def run():
        with nk.precision(dtype):
            found = nk.solve(nk.kernels.RBF(length), x, y, nk.Ridge(ridge), solver=solver)
            return {"mean": found.predict(x_new).mean}

    return run


def limit(folder, passes):
    """What no implementation can avoid: one Gram product, and one pass over the matrix a layer."""
    (x,) = load(folder, "x")
    gram = np.empty((len(x), len(x)))
    copy = np.empty_like(gram)

    def run():
        np.matmul(x, x.T, out=gram)
        for _ in range(passes):
            np.copyto(copy, gram)
        return {}

    return run


def empirical_limit(folder, activation, widths, out_dim, full):
    """The products of matrices that a tangent kernel of a dense network cannot avoid, by BLAS.

    Two a layer for what enters and for the signals, one forward and one backward.
    """
    x, *weights = load(folder, "x", *(f"weight{layer}" for layer in range(len(widths) + 1)))

    def run():
        enters = [x]
        for weight in weights[:-1]:
            enters.append(enters[-1] @ weight)
        signal = np.broadcast_to(weights[-1].T, (len(x), *weights[-1].T.shape)).reshape(-1, len(weights[-1]))
        signals = [signal]
        for weight in weights[-2:0:-1]:
            signals.append(signals[-1] @ weight.T)
        for each in enters + [s if full else s.reshape(len(x), -1) for s in signals]:
            each @ each.T
        return {}

    return run


def peak_flops(folder, flops):
    """As many operations as a recursion needs, at the rate of a matrix product."""
    side = max(64, round((flops / 2) ** (1 / 3)))
    side, repeats = min(side, 1500), max(1, round(flops / 2 / min(side, 1500) ** 3))
    a = np.ones((side, side))

    def run():
        for _ in range(repeats):
            a @ a
        return {}

    return run


if __name__ == "__main__":
    serve(
        infinite,
        empirical,
        empirical_limit,
        forecast,
        ridge,
        machine,
        centers,
        limit,
        layers,
        layers_empirical,
        peak_flops,
    )
