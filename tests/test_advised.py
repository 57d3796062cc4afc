"""What the advised initialization is worth, in PyTorch itself: the table of docs/advised.py imitates its default."""

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest

SEEDS, RATES = 4, (1e-3, 3e-3)


def script():
    spec = importlib.util.spec_from_file_location("advised", Path(__file__).parents[1] / "docs/advised.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def trained(torch, script, parts, net, rate, seed, advised):
    """(validation, test): the share of rows that are right after training a module of PyTorch."""
    torch.manual_seed(seed)
    sizes = [64, *[net.width] * net.depth, 10]
    layers = [torch.nn.Linear(*pair) for pair in itertools.pairwise(sizes)]
    module = torch.nn.Sequential(*(each for layer in layers for each in (layer, torch.nn.GELU())))[:-1]
    scale = 1.0
    if advised:
        point = script.nk.critical(net.activation)
        scale = script.advised_start(net)[2]
        for layer in layers:
            torch.nn.init.normal_(layer.weight, std=(point.weight_var / layer.in_features) ** 0.5)
            torch.nn.init.normal_(layer.bias, std=point.bias_var**0.5)
    (x, y), *others = [(torch.tensor(scale * x, dtype=torch.float32), torch.tensor(y)) for x, y in parts]
    adam, loss = torch.optim.Adam(module.parameters(), lr=rate), torch.nn.CrossEntropyLoss()
    for _ in range(script.STEPS):
        batch = torch.randperm(len(x))[: script.BATCH]
        adam.zero_grad()
        loss(module(x[batch]), y[batch]).backward()
        adam.step()
    return [float((module(xs).argmax(dim=1) == ys).float().mean()) for xs, ys in others]


@pytest.mark.slow
def test_pytorch_agrees_with_the_table():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("optax", reason="optax is not installed")
    found = script()
    found.RATES = RATES
    parts, net = found.rows(), found.NETWORKS[0]
    gains = {}
    for advised, start in ((False, found.pytorch_start), (True, found.advised_start)):
        runs = np.array(
            [
                [trained(torch, found, parts, net, rate, seed, advised) for seed in range(SEEDS)]
                for rate in RATES
            ]
        )
        same = found.accuracies(net, start, parts)
        for ours, theirs in zip(same[:, :, 1], runs[:, :, 1], strict=True):
            error = np.hypot(ours.std(ddof=1) / len(ours) ** 0.5, theirs.std(ddof=1) / SEEDS**0.5)
            assert abs(ours.mean() - theirs.mean()) < 4 * error + 0.01
        gains[advised] = runs[:, :, 1].mean(axis=1).max()
    assert gains[True] > gains[False] + 0.1
