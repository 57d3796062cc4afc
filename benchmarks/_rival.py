"""What neural-tangents is timed on; runs in an environment of its own (see `_common.NEURAL_TANGENTS`)."""

import functools

import jax
import jax.interpreters.ad as ad
import jax.numpy as jnp
import numpy as np
from _worker import load, serve, start_jax
from jax._src import source_info_util

jax.config.update("jax_enable_x64", True)
# Structured derivatives look for these two in that module and fail as shipped.
ad.source_info_util, ad.config = source_info_util, jax.config

import neural_tangents as nt  # noqa: E402
from _stax import network as architecture  # noqa: E402
from neural_tangents import stax  # noqa: E402

ACTIVATIONS = {
    "relu": stax.Relu,
    "erf": stax.Erf,
    "gelu": stax.Gelu,
    "tanh": functools.partial(stax.ElementwiseNumerical, jnp.tanh, deg=25),
}


def _network(activation, widths=(512, 512, 512), out_dim=1, weight_var=1.5, bias_var=0.1):
    """(init_fn, apply_fn, kernel_fn) with z = sqrt(C_W/fan_in) W x + sqrt(C_b) b."""
    dense = functools.partial(stax.Dense, W_std=weight_var**0.5, b_std=bias_var**0.5, parameterization="ntk")
    hidden = [layer for width in widths for layer in (dense(width), ACTIVATIONS[activation]())]
    return stax.serial(*hidden, dense(out_dim))


def _on_device(folder, *names):
    start_jax()
    return [jnp.array(array) for array in load(folder, *names)]


def infinite(folder, activation, batch_size=0, **variances):
    """NNGP and NTK of an infinitely wide network in one pass, or in square batches."""
    kernel_fn = _network(activation, **variances)[2]
    (x,) = _on_device(folder, "x")
    if batch_size:  # compiles by itself
        call = functools.partial(nt.batch(kernel_fn, batch_size, device_count=0), get=("nngp", "ntk"))
    else:
        call = jax.jit(lambda x: kernel_fn(x, None, ("nngp", "ntk")))
    return lambda: jax.block_until_ready(call(x))._asdict()


def empirical(folder, activation, widths, out_dim, full, **variances):
    """Tangent kernel of a finite network by structured derivatives, their fastest way."""
    init_fn, apply_fn, _ = _network(activation, widths, out_dim, **variances)
    (x,) = _on_device(folder, "x")
    shapes = jax.eval_shape(lambda: init_fn(jax.random.PRNGKey(0), x.shape)[1])
    layers = iter(range(len(widths) + 1))
    params = [_dense(entry, folder, next(layers)) if entry else entry for entry in shapes]
    kernel_fn = nt.empirical_ntk_fn(
        apply_fn,
        trace_axes=() if full else (-1,),
        vmap_axes=0,
        implementation=nt.NtkImplementation.STRUCTURED_DERIVATIVES,
    )
    call = jax.jit(lambda x, params: kernel_fn(x, None, params))
    axes = (0, 2, 1, 3) if full else (0, 1)  # a view of their (n, n, out, out) in our order
    return lambda: {"ntk": np.asarray(call(x, params)).transpose(axes)}


def _dense(shapes, folder, layer):
    """The parameters of one dense layer, in the shapes that stax gave it."""
    arrays = _on_device(folder, f"weight{layer}", f"bias{layer}")
    return tuple(array.reshape(shape.shape) for array, shape in zip(arrays, shapes, strict=True))


def layers(folder, shape, layers, float32=False):
    """NNGP and NTK of a network made of layers, in one pass."""
    kernel_fn = architecture(layers, len(shape) - 1)[2]
    (x,) = _on_device(folder, "x")
    x = x.astype(jnp.float32 if float32 else jnp.float64)
    call = jax.jit(lambda x: kernel_fn(x, None, ("nngp", "ntk")))
    return lambda: jax.block_until_ready(call(x))._asdict()


def layers_empirical(folder, shape, layers, width, full=True):
    """Tangent kernel of a finite network of layers by structured derivatives, all pairs of outputs or their mean."""
    init_fn, apply_fn, _ = architecture(layers, len(shape) - 1, width)
    (x,) = _on_device(folder, "x")
    shapes = jax.eval_shape(lambda: init_fn(jax.random.PRNGKey(0), x.shape)[1])
    count = iter(range(len(shapes)))
    params = [_dense(entry, folder, next(count)) if entry else entry for entry in shapes]
    kernel_fn = nt.empirical_ntk_fn(
        apply_fn,
        trace_axes=() if full else (-1,),
        vmap_axes=0,
        implementation=nt.NtkImplementation.STRUCTURED_DERIVATIVES,
    )
    call = jax.jit(lambda x, params: kernel_fn(x, None, params))
    if not full:
        return lambda: {"ntk": np.asarray(call(x, params))}
    return lambda: {"ntk": np.asarray(call(x, params)).transpose(0, 2, 1, 3)}


def forecast(folder, activation, times, cached, **variances):
    """Mean and covariance of trained outputs at several times; `cached`: with what an earlier call has factored."""
    kernel_fn = jax.jit(_network(activation, **variances)[2], static_argnames="get")
    x, y, x_new = _on_device(folder, "x", "y", "x_new")
    at_the_end = times == [float("inf")]
    t = None if at_the_end else jnp.asarray(times) * y.size  # their loss is a mean, ours a sum
    kept = []

    def run():
        predict = kept[0] if kept else nt.predict.gradient_descent_mse_ensemble(kernel_fn, x, y)
        if cached:
            kept[:] = [predict]
        mean, cov = jax.block_until_ready(predict(t=t, x_test=x_new, get="ntk", compute_cov=True))
        return {"mean": mean[None], "cov": cov[None]} if at_the_end else {"mean": mean, "cov": cov}

    return run


if __name__ == "__main__":
    serve(infinite, empirical, forecast, layers, layers_empirical)
