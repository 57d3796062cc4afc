"""float64 inside, nothing changed outside: this library and a float32 JAX program side by side."""

import subprocess
import sys
import textwrap
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk

RNG = np.random.default_rng(9)
X, Y, NEW = RNG.normal(size=(6, 3)), RNG.normal(size=6), RNG.normal(size=(2, 3))
NET = nk.MLP(3, (7,), 1, "tanh", weight_var=1.5, bias_var=0.1)


def test_a_float32_program_beside_it_does_not_notice():
    program = textwrap.dedent(
        """
        import jax, jax.numpy as jnp, numpy as np

        def host():
            x = jnp.linspace(0.0, 1.0, 64)
            w = jax.random.normal(jax.random.key(0), (64,))
            grad = jax.jit(jax.grad(lambda w: jnp.sum(jnp.tanh(w * x) ** 2)))(w)
            assert x.dtype == w.dtype == grad.dtype == jnp.float32, (x.dtype, grad.dtype)
            return np.asarray(grad)

        before = host()
        import nearkernel as nk
        after_import = host()
        x, y = np.random.default_rng(0).normal(size=(6, 3)), np.arange(6.0)
        net = nk.MLP(3, (8,), 1, "erf")
        theta = net.init(jax.random.key(1))
        forecast = nk.forecast(net, x, y, nk.GradientFlow(1.0), x)
        run = nk.simulate(net, theta, x, y, nk.GradientDescent(0.01, 5))
        assert forecast.mean.dtype == forecast.cov.dtype == np.float64
        assert nk.kernels.NTK(net)(x).dtype == np.float64 and run.params[0]["weight"].dtype == np.float64
        after_use = host()
        assert before.tobytes() == after_import.tobytes() == after_use.tobytes()
        assert not jax.config.jax_enable_x64
        print("side by side")
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "side by side", done.stderr


def test_verbs_return_numpy_float64_whatever_comes_in():
    for kind in (np.float32, np.float64, jnp.float32):
        x = kind(X) if kind is jnp.float32 else X.astype(kind)
        kernel = nk.kernels.NTK(NET)(x)
        assert isinstance(kernel, np.ndarray) and kernel.dtype == np.float64
        found = nk.solve(nk.kernels.NTK(NET), x, Y).predict(NEW).mean
        assert isinstance(found, np.ndarray) and found.dtype == np.float64


def test_threads_of_a_float32_program_stay_float32():
    dtypes = []

    def work():
        nk.kernels.NNGP(NET)(X)
        dtypes.append(jnp.ones(2).dtype)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert dtypes == [jnp.float32] * 4


def test_float32_inputs_traced_by_the_caller_stay_float32():
    x = jnp.asarray(X, jnp.float32)
    theta = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), NET.init(jax.random.key(0)))
    z = jax.jit(NET)(theta, x)
    assert z.dtype == jnp.float32
    np.testing.assert_allclose(z, NET(theta, x), rtol=1e-5)
    kernel = jax.jit(nk.kernels.NTK(nk.MLP(3, (4,), 1, "relu")))(x)
    assert kernel.dtype == jnp.float32


def test_precision_is_a_choice_within_a_with():
    with nk.precision("float32"):
        assert nk.kernels.NTK(NET)(X).dtype == np.float32
        assert NET.init(jax.random.key(0))[0]["weight"].dtype == jnp.float32
    assert nk.kernels.NTK(NET)(X).dtype == np.float64
    with (
        pytest.raises(ValueError, match='`dtype` must be "float64" or "float32"; got \'half\''),
        nk.precision("half"),
    ):
        pass
