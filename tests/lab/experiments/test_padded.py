"""Networks and points that are padded to one shape compute and learn the same."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.lab.experiments.parts.padded import (
    Switched,
    more_layers,
    more_neurons,
    more_rows,
    switched,
)
from support.cases import few

X, Y, NEW = np.array([[-1.0], [0.2], [1.3]]), np.array([0.5, -0.3, 0.4]), np.linspace(-2, 2, 7)[:, None]


def network(activation="erf", depth=2):
    net = nk.MLP(1, (5,) * depth, 1, activation, weight_var=1.7, bias_var=0.4)
    return net, net.init(jax.random.key(3))


@pytest.mark.parametrize("activation", few(["erf", "gelu", "sin"], 1))
def test_added_neurons_change_neither_outputs_nor_gradients(activation):
    net, theta = network(activation)
    widened, padded = more_neurons(net, theta, 9)
    np.testing.assert_allclose(widened(padded, NEW), net(theta, NEW), rtol=1e-12)
    small, large = nk.kernels.EmpiricalNTK(net, theta), nk.kernels.EmpiricalNTK(widened, padded)
    np.testing.assert_allclose(large(X, NEW), small(X, NEW), rtol=1e-12)


@pytest.mark.parametrize("depth", few([1, 2, 3], 1))
def test_added_layers_change_neither_outputs_nor_gradients(depth):
    net, theta = network(depth=depth)
    deepened, padded = more_layers(*more_neurons(net, theta, 9), 3)
    np.testing.assert_allclose(deepened(padded, NEW), net(theta, NEW), rtol=1e-12)
    small, large = nk.kernels.EmpiricalNTK(net, theta), nk.kernels.EmpiricalNTK(deepened, padded)
    np.testing.assert_allclose(large(X, NEW), small(X, NEW), rtol=1e-12)


def test_rows_that_do_not_count_have_no_output_and_no_gradient():
    net, theta = network(depth=1)
    x, y = more_rows(X, Y, 5)
    assert x.shape == (5, 2) and y.tolist() == [*Y, 0, 0]
    kernel = nk.kernels.EmpiricalNTK(Switched(net), theta)(x)
    np.testing.assert_allclose(kernel[:3, :3], nk.kernels.EmpiricalNTK(net, theta)(X), rtol=1e-12)
    assert np.all(kernel[3:] == 0) and np.all(kernel[:, 3:] == 0)
    assert np.all(np.asarray(Switched(net)(theta, x))[3:] == 0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*the correction is not small:UserWarning")
@pytest.mark.parametrize("time", [0.01, 3.0, 300.0])
@pytest.mark.parametrize("depth", [1, 2])
def test_both_orders_are_those_of_the_network_itself(depth, time):
    net, theta = network(depth=depth)
    plain = nk.solve(nk.expand(net, theta, degree=2), X, Y, nk.GradientFlow(time), order=1).predict(NEW).terms
    deepened, padded = more_layers(*more_neurons(net, theta, 9), 3)
    model = nk.expand(Switched(deepened), padded, degree=2)
    found = nk.solve(model, *more_rows(X, Y, 5), nk.GradientFlow(time), order=1).predict(switched(NEW)).terms
    for one, other in zip(plain, found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-7, atol=1e-9)
