"""The advised initialization in PyTorch itself, with the code that is printed, against what docs/advised.py trains."""

import importlib.util
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

from nearkernel._commands.advise import advice, train
from nearkernel._commands.advise.inputs import inputs_of
from nearkernel._commands.advise.typed import how_to_type

SEEDS, RATE = 4, 1e-3


def script():
    spec = importlib.util.spec_from_file_location("advised", Path(__file__).parents[2] / "docs/advised.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["advised"] = module  # where a dataclass looks for its types
    spec.loader.exec_module(module)
    return module


def initialized(torch, net, name, module, point, orthogonal):
    """As one row of the table says."""
    if name == "advised":
        names = {"torch": torch}
        settings = (point.weight_var, point.bias_var, net.depth, False, orthogonal)
        exec(how_to_type(*settings)["PyTorch"], names)
        names["init_"](module)
    elif name == "He":
        for layer in module:
            if isinstance(layer, torch.nn.Linear):
                torch.nn.init.kaiming_normal_(layer.weight)
                torch.nn.init.zeros_(layer.bias)


def score(torch, net, name, parts, scale, seed, *settings):
    """The share of test rows that are right after training a module of PyTorch."""
    torch.manual_seed(seed)
    sizes = [64, *[net.width] * net.depth, 10]
    layers = [torch.nn.Linear(*pair) for pair in itertools.pairwise(sizes)]
    module = torch.nn.Sequential(*(each for layer in layers for each in (layer, torch.nn.GELU())))[:-1]
    initialized(torch, net, name, module, *settings)
    (x, y), (new, right) = [
        (torch.tensor(scale * x, dtype=torch.float32), torch.tensor(y.argmax(axis=1))) for x, y in parts
    ]
    adam, loss = torch.optim.Adam(module.parameters(), lr=RATE), torch.nn.CrossEntropyLoss()
    for _ in range(train.STEPS):
        batch = torch.randperm(len(x))[: train.BATCH]
        adam.zero_grad()
        loss(module(x[batch]), y[batch]).backward()
        adam.step()
    return float((module(new).argmax(dim=1) == right).float().mean())


@pytest.mark.slow
def test_pytorch_agrees_with_the_table():
    """Default, He and the printed code, each within 4 standard errors and two points of what the command trains."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    found = script()
    net = found.Deep("gelu", depth=12, width=64)
    inputs = inputs_of(net.options)
    order, held = np.random.default_rng(0).permutation(len(inputs.rows)), len(inputs.rows) // 5
    parts = [
        (inputs.rows[part], inputs.targets[part]) for part in (order[2 * held :], order[held : 2 * held])
    ]
    scale, orthogonal = advice.plan(net.options, inputs)
    same = {run.name: run for run in found.measured(net, (RATE,)).runs}
    assert orthogonal and list(same) == ["advised", "He", "PyTorch", "Keras"]
    means = {}
    for name in ("advised", "He", "PyTorch"):
        factor = scale if name == "advised" else 1.0
        settings = (net.options.critical, orthogonal)
        scores = [score(torch, net, name, parts, factor, seed, *settings) for seed in range(SEEDS)]
        error = np.hypot(same[name].error, np.std(scores, ddof=1) / SEEDS**0.5)
        means[name] = np.mean(scores)
        assert abs(means[name] - same[name].score) < 4 * error + 0.02, name
    assert means["advised"] > means["PyTorch"] + 0.1
