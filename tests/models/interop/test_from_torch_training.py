"""Predictions for PyTorch networks against training by PyTorch, and their tangent kernels against its autograd."""

import copy

import numpy as np
import pytest

import nearkernel as nk
from support.pytorch.networks import made
from support.pytorch.reference import called, torch

pytestmark = pytest.mark.merge
nn = torch.nn


def smooth_mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 20), nn.Tanh(), nn.Linear(20, 1)).eval().double(), (3,)


def smooth_cnn():
    torch.manual_seed(1)
    layers = (
        nn.Conv2d(1, 6, 3, padding=1),
        nn.GroupNorm(2, 6),
        nn.SiLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(24, 1),
    )
    return nn.Sequential(*layers).eval().double(), (1, 4, 4)


def trained_by_pytorch(module, alpha, x, y, lr, steps):
    """SGD of torch.optim on 1/2 sum (alpha (z - z_0) - y)^2, full batches."""
    net = copy.deepcopy(module)
    x, y = torch.tensor(x), torch.tensor(y)
    start = module(x).detach()
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = 0.5 * ((alpha * (net(x) - start) - y) ** 2).sum()
        loss.backward()
        optimizer.step()
    return net


@pytest.mark.parametrize("make", [smooth_mlp, smooth_cnn])
def test_each_order_is_another_power_of_the_lazy_scale(make):
    """Outputs and weights, orders 0, 1 and 2; the weights through `nk.to_torch` and `load_state_dict`."""
    module, shape = make()
    rng = np.random.default_rng(0)
    x, x_new = rng.normal(size=(9, *shape)), rng.normal(size=(5, *shape))
    y = np.sin(x.reshape(9, -1)[:, 0]) + 0.5 * x.reshape(9, -1)[:, 1]
    model, theta = nk.from_torch(module, x)
    kernel = nk.kernels.EmpiricalNTK(model, theta).full(x).reshape(9, 9)
    most, steps = np.linalg.eigvalsh(kernel)[-1], 60
    start = module(torch.tensor(x_new)).detach().numpy()
    errors, weight_errors = [], []
    for alpha in (32.0, 64.0):
        scaled = nk.Scaled(model, alpha)
        params = scaled.at(theta)
        algorithm = nk.GradientDescent(lr=0.8 / most / alpha**2, steps=steps)
        net = trained_by_pytorch(module, alpha, x, y[:, None], algorithm.lr, steps)
        trained = alpha * (net(torch.tensor(x_new)).detach().numpy() - start)[:, 0]
        expanded = nk.expand(scaled, params, degree=3)
        solutions = [nk.solve(expanded, x, y, algorithm, order) for order in (0, 1, 2)]
        errors.append([np.linalg.norm(each.predict(x_new).mean - trained) for each in solutions])
        loaded = copy.deepcopy(module)
        apart = []
        for each in solutions:
            loaded.load_state_dict(nk.to_torch(expanded, each.params()))
            z = alpha * (loaded(torch.tensor(x_new)).detach().numpy() - start)[:, 0]
            apart.append(np.linalg.norm(z - trained))
        weight_errors.append(apart)
    for found in (errors, weight_errors):
        slopes = np.log2(np.array(found[1]) / np.array(found[0]))
        np.testing.assert_allclose(slopes, [-1, -2, -3], atol=0.15)


def test_simulating_the_model_is_training_the_module():
    module, shape = smooth_cnn()
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(6, *shape)), rng.normal(size=(6, 1))
    model, theta = nk.from_torch(module, x)
    scaled = nk.Scaled(model, 2.0)
    run = nk.simulate(scaled, scaled.at(theta), x, y, nk.GradientDescent(lr=1e-3, steps=50))
    net = trained_by_pytorch(module, 2.0, x, y, 1e-3, 50)
    found = nk.to_torch(scaled, run.params)
    for name, tensor in net.state_dict().items():
        torch.testing.assert_close(found[name], tensor, rtol=1e-10, atol=1e-12)
    assert run.history["loss"][-1] < 0.9 * run.history["loss"][0]


def test_inspecting_a_module_foretells_its_training():
    module, shape = smooth_cnn()
    rng = np.random.default_rng(3)
    x, x_new, y = rng.normal(size=(6, *shape)), rng.normal(size=(5, *shape)), rng.normal(size=(6, 1))
    model, params = nk.from_torch(module, x)
    found = nk.inspect(model, params, x, y, x_new, nk.GradientDescent(lr=2e-3, steps=40), pieces=4)
    net = copy.deepcopy(module)
    optimizer = torch.optim.SGD(net.parameters(), lr=2e-3)
    for _ in range(40):
        optimizer.zero_grad()
        (0.5 * (net(torch.tensor(x)) - torch.tensor(y)) ** 2).sum().backward()
        optimizer.step()
    trained, start = (each(torch.tensor(x_new)).detach().numpy() for each in (net, module))
    error = np.linalg.norm(found.prediction - trained) / np.linalg.norm(trained - start)
    assert found.verdict == "trust" and error < 0.25
    loaded = copy.deepcopy(module)
    loaded.load_state_dict(nk.to_torch(model, found.params))
    np.testing.assert_allclose(
        loaded(torch.tensor(x_new)).detach(), trained, atol=0.25 * np.abs(trained - start).max()
    )


@pytest.mark.parametrize("name", ["group_norm_cnn", "encoder"])
@pytest.mark.parametrize("method", ["jacobian", "products"])
def test_the_tangent_kernel_is_that_of_pytorchs_autograd(name, method):
    net, batch, _ = made(name)
    model, params = nk.from_torch(net, batch(2))
    net = net.double()
    x = batch(4, seed=1)
    trained = list(net.parameters())
    rows = [
        torch.cat([g.reshape(-1) for g in torch.autograd.grad(value, trained, retain_graph=True)])
        for value in called(net, x)[:, :2].reshape(-1)
    ]
    jacobian = torch.stack(rows).numpy()
    expected = (jacobian @ jacobian.T).reshape(4, 2, 4, 2)
    found = nk.kernels.EmpiricalNTK(model, params, method=method).full(x)[:, :2, :, :2]
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()
