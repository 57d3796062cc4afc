"""Networks of clouds: matrices known by their actions, and their training, against what is written out."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.dynamics.algorithms.losses import get_loss
from nearkernel.forecasts.mean_field.cloud import (
    CoordinateCloud,
    OutOfDirections,
    PairedCloud,
    PlainCloud,
    sobol_normals,
)
from nearkernel.forecasts.mean_field.cloud_initialization import tilted
from nearkernel.forecasts.mean_field.cloud_network import CloudNetwork, layout_of
from nearkernel.forecasts.mean_field.cloud_system import CloudSystem, LazySystem, grams
from nearkernel.forecasts.mean_field.conditioned_gaussian import KnownMatrix
from nearkernel.forecasts.mean_field.drivers import Descent, Flow, Signal
from support.cases import few

RNG = np.random.default_rng(8)
X, NEW = RNG.normal(size=(4, 3)), RNG.normal(size=(2, 3))
VECTOR, CLASSES = RNG.normal(size=4), np.eye(3)[[0, 2, 1, 2]]


def asked(seed: int, left: int, right: int, kappa: float) -> KnownMatrix:
    """A matrix between layers of 4 and 3 neurons that has been asked about everything, in turns."""
    rng = np.random.default_rng(seed)
    clouds = PlainCloud(left, rng), PlainCloud(right, rng)
    matrix = KnownMatrix(*clouds, 1.7, kappa, 1e-6)
    for _ in range(3):
        matrix.forward(rng.normal(size=(2, left)) ** 3)
        matrix.backward(rng.normal(size=(1, right)) ** 2)
    assert matrix.rank == (left, right)
    return matrix


def test_a_matrix_asked_about_everything_is_a_gaussian_matrix():
    """Entries over 1500 draws: means, variances, correlations and fourth moments, each within 4.5 standard errors."""
    left, right, kappa = 4, 3, np.sqrt(4 / 3)
    drawn = np.array(
        [asked(seed, left, right, kappa).forward(np.eye(left), False)[1] for seed in range(1500)]
    )
    flat = drawn.reshape(len(drawn), -1) / np.sqrt(1.7 / left)  # W in NTK scaling, unit entries
    for power, expected in ((1, 0.0), (2, 1.0), (4, 3.0)):
        values = flat**power
        z = (values.mean(axis=0) - expected) / (values.std(axis=0) / np.sqrt(len(values)))
        assert np.abs(z).max() < 4.5
    cross = np.array([flat[:, i] * flat[:, j] for i in range(12) for j in range(i)])
    assert np.abs(cross.mean(axis=1) / cross.std(axis=1) * np.sqrt(len(flat))).max() < 4.5


def test_a_matrix_is_linear_and_has_an_adjoint():
    matrix = asked(1, 4, 3, 1.3)
    v, g = RNG.normal(size=(2, 4)), RNG.normal(size=(2, 3))
    forward = [matrix.forward(each, False)[1] for each in (v, 2.0 * v[::-1])]
    np.testing.assert_allclose(2.0 * forward[0][::-1], forward[1], atol=1e-12)
    np.testing.assert_allclose(
        matrix.right.inner(g, forward[0]), 1.3 * matrix.left.inner(matrix.backward(g, False), v), atol=1e-12
    )


def network_and_params(net: nk.MLP, richness: float) -> tuple[CloudNetwork, list]:
    """A network of plain clouds that was asked about all its matrices, and its parameters written out."""
    rng = np.random.default_rng(5)
    network = CloudNetwork(
        layout_of(net, richness), [PlainCloud(width, rng) for width in net.widths], 4, 1e-6
    )
    params = [{"weight": network.first[:3].copy(), "bias": network.first[3].copy()}]
    for matrix, bias in zip(network.matrices, network.biases, strict=True):
        answer = matrix.forward(np.eye(matrix.left.size))[1]
        params.append(
            {"weight": answer * np.sqrt(matrix.left.size / net.weight_var), "bias": bias / net.bias_var**0.5}
        )
    params.append({"weight": network.readout.T.copy(), "bias": np.zeros(net.out_dim)})
    return network, params


def system_of(network: CloudNetwork, net: nk.MLP, centered: bool) -> CloudSystem:
    def extended(x):
        return np.concatenate(
            [x * np.sqrt(net.weight_var / 3), np.full((len(x), 1), net.bias_var**0.5)], axis=1
        )

    return CloudSystem(network, extended(X), extended(NEW), centered=centered)


@pytest.mark.parametrize(
    "algorithm, loss, y, centered",
    few(
        [
            (nk.GradientDescent(0.05, 6), "squared", VECTOR, False),
            (nk.GradientDescent(0.05, 6, 0.7), "squared", VECTOR, True),
            (nk.GradientDescent(0.1, 6), "cross_entropy", CLASSES, False),
            (nk.SGD(0.05, 2, 6), "squared", CLASSES, False),
            (nk.SGD(0.05, 4, 6, 0.5, 1.5, lambda step: 1 / (1 + step)), "squared", VECTOR, False),
            (nk.SGD(0.05, 3, 6, weight_decay=0.8), "cross_entropy", CLASSES, True),
            pytest.param(nk.GradientFlow(0.4), "squared", CLASSES, True, marks=pytest.mark.slow),
        ],
        2,
    ),
)
def test_training_is_that_of_the_network_written_out(algorithm, loss, y, centered):
    """Three layers of different widths: the same outputs as `simulate` from the same parameters."""
    richness, targets = 0.7, y.reshape(4, -1)
    net = nk.MLP(
        3, (9, 5, 7), targets.shape[1], "tanh", weight_var=1.5, bias_var=0.3, parametrization="mean_field"
    )
    key = jax.random.key(2) if isinstance(algorithm, nk.SGD) else None
    with jax.enable_x64(True):
        network, params = network_and_params(net, richness)
        system = system_of(network, net, centered)
        signal = Signal(get_loss(loss), targets, getattr(algorithm, "batch_size", None), key)
        flow = isinstance(algorithm, nk.GradientFlow)
        scale = 1 / richness**2
        driver = (
            Flow(algorithm.time, scale, 0.25, list(np.linspace(0, 0.4, 21)))
            if flow
            else Descent(
                np.array([scale * algorithm.rate(k) for k in range(6)])
                if isinstance(algorithm, nk.SGD)
                else np.full(6, scale * algorithm.lr),
                algorithm.momentum,
                algorithm.lr * getattr(algorithm, "weight_decay", 0.0),
            )
        )
        train = []
        driver(system, signal, lambda step, time, outputs: train.append(outputs))
        found = train[-1], system.new_outputs()
    model = nk.Scaled(net, 1 / richness, centered)
    end = nk.simulate(model, model.at(params), X, targets, algorithm, loss=loss, key=key).params
    for outputs, x in zip(found, (X, NEW), strict=True):
        np.testing.assert_allclose(outputs, model(end, x), atol=2e-6 if flow else 1e-9)


def test_flow_and_momentum_of_a_kernel_are_their_closed_forms():
    """A `LazySystem` has the outputs of `solve`; a flow finds steps of its own, and halving them changes little."""
    kernel = nk.kernels.NTK(nk.MLP(3, (8,), 1, "gelu", weight_var=1.5, bias_var=0.3))
    signal, both = Signal(get_loss("squared"), VECTOR[:, None]), np.concatenate([X, NEW])
    flow = Flow(0.9, 2.0, 0.5)
    runs = [
        (nk.GradientFlow(1.8), flow, 1e-4),
        (nk.GradientFlow(1.8), lambda *args: flow.halved()(*args), 1e-5),
        (nk.GradientDescent(0.1, 9, 0.6), Descent(np.full(9, 0.1), 0.6), 1e-12),
    ]
    for algorithm, driver, atol in runs:
        with jax.enable_x64(True):
            system, times = LazySystem(kernel(both, X), 1), []
            driver(system, signal, lambda step, time, outputs, times=times: times.append(time))
        expected = nk.solve(kernel, X, VECTOR, algorithm).predict(both).mean
        np.testing.assert_allclose(
            np.concatenate([system.outputs(), system.new_outputs()])[:, 0], expected, atol=atol
        )
    assert flow.times[0] == 0.0 and flow.times[-1] == 0.9 and np.diff(flow.times).min() > 0


def test_kernels_are_those_of_the_network_written_out():
    net = nk.MLP(3, (9, 5), 2, "gelu", weight_var=1.5, bias_var=0.3, parametrization="mean_field")
    with jax.enable_x64(True):
        network, params = network_and_params(net, 1.0)
        system = system_of(network, net, False)
        found = grams(network, system.xi, learn=True)
    expected = nk.kernels.EmpiricalNTK(net, params).full(X)
    np.testing.assert_allclose(found.ntk, expected, atol=1e-10)
    with jax.enable_x64(True):
        hidden = np.asarray(net.activation(net.layer_outputs(params, X)[1]))
    np.testing.assert_allclose(found.features[1], hidden @ hidden.T / 5, atol=1e-12)
    error = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0], [0.0, -1.0]])
    own = expected[np.arange(4), [0, 1, 0, 1]][:, np.arange(4), [0, 1, 0, 1]]
    sign = np.sign(error.sum(axis=1))
    with jax.enable_x64(True):
        system.outputs()
        sharpness = system.sharpness(error)
    assert sharpness == pytest.approx(np.linalg.eigvalsh(own * np.outer(sign, sign))[-1], rel=1e-9)


def test_sobol_points_are_white_and_pairs_have_parity():
    even, odd = sobol_normals(3, 2, 256, np.random.default_rng(0))
    for part in (even, odd):
        np.testing.assert_allclose(part @ part.T / 256, np.eye(len(part)), atol=1e-12)
    cloud = PairedCloud(even, odd, np.linspace(1, 2, 256), np.random.default_rng(1))
    forward, backward = cloud.fresh(5, False), cloud.fresh(4, True)  # more than was prepared
    np.testing.assert_allclose(cloud.inner(forward, backward), 0.0, atol=1e-14)
    later = cloud.fresh(2, False, forward[3:] + 0.0)
    for known in (forward[3:], later):
        np.testing.assert_allclose(cloud.inner(known, later), np.eye(2) * (known is later), atol=1e-12)


def test_tilted_weights_match_moments_and_stay_positive():
    rng = np.random.default_rng(3)
    fields = rng.normal(size=(4, 200))
    few = tilted(np.full(200, 1 / 200), [fields**2], [np.ones(4)])
    np.testing.assert_allclose(few @ fields.T**2, 1.0, atol=1e-12)
    assert few.sum() == pytest.approx(1.0) and few.min() > 0
    # With as many moments as neurons no positive weights exist: the weights stay positive, the moments are missed.
    many = rng.normal(size=(190, 200)) ** 2
    weights = tilted(np.full(200, 1 / 200), [many], [np.ones(190)])
    assert weights.min() > 0.01 / 200 and weights.sum() == pytest.approx(1.0)


def test_too_few_neurons_are_noticed():
    rng = np.random.default_rng(0)
    even, odd = sobol_normals(1, 1, 16, rng)
    clouds = [PairedCloud(even, odd, np.ones(16), rng) for _ in range(2)]
    matrix = KnownMatrix(*clouds, 1.0, 1.0, 1e-2)
    matrix.forward(rng.normal(size=(8, 32)))
    with pytest.raises(OutOfDirections):
        matrix.forward(rng.normal(size=(1, 32)))
    with pytest.raises(OutOfDirections):
        CoordinateCloud(3).fresh(4, False)
