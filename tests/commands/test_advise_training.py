"""`nearkernel advise --train`: the networks that are trained, and what is concluded."""

import json

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel._commands.advise import blocks, train, transformer
from nearkernel._commands.advise.blocks import BLOCKS
from nearkernel._commands.advise.reporting.words import conclusion
from nearkernel._commands.advise.starts import DEFAULTS, HE, advised_starts
from support.commands import nearkernel
from support.helpers import points

pytestmark = pytest.mark.usefixtures("inside_an_empty_folder")


def test_short_runs_are_those_of_the_library(monkeypatch):
    """The same network, drawn once: variance explained after gradient descent and Adam is that of `nk.simulate`."""
    x, y = points(6, 4), np.sin(points(6, 2))
    net = nk.MLP(4, (8, 8, 8), 2, "tanh", parametrization="standard")
    with jax.enable_x64(True):
        params = train.drawn(DEFAULTS[0], jax.random.split(jax.random.key(3), 2), 4, 8, 3, 2)
        batches = np.tile(np.arange(6), (2, train.STEPS, 1))
        for optimizer, rate in (("gd", 0.3), ("adam", 3e-3)):
            kind = (False, False, optimizer, False)
            found = train._scores(
                net.activation, kind, params, [(x, y)] * 3, batches, np.array([rate / 2, rate])
            )
            algorithm = nk.GradientDescent(rate / 6, steps=100) if optimizer == "gd" else nk.Adam(rate, 100)
            for seed in range(2):
                own = jax.tree.map(lambda a, seed=seed: a[seed], params)
                hidden = [{name: each[i] for name, each in own["hidden"].items()} for i in range(2)]
                weights, record = [own["first"], *hidden, own["last"]], nk.Record(every=100)
                run = nk.simulate(net, weights, x, y, algorithm, record, lr_factors=1.0)
                loss = np.asarray(run.history["loss"])[-1] / 6  # of the sum over rows
                expected = 1 - 2 * loss / y.var(axis=0).sum()
                np.testing.assert_allclose(np.asarray(found)[1, seed], expected, rtol=2e-4)


def test_losses_and_scores():
    z, y = points(7, 3), np.eye(3)[[0, 1, 2, 0, 1, 2, 2]] - 0.3
    right = y.argmax(axis=1)
    loss, score = train.loss_and_score(True, z, y)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    assert loss == pytest.approx(-np.log(p[np.arange(7), right]).mean(), rel=1e-5)
    assert score == pytest.approx((z.argmax(axis=1) == right).mean())
    assert train.loss_and_score(True, np.full((7, 3), np.nan), y)[1] == 0  # not the share of the first class
    assert train.loss_and_score(False, y + 0.0, y)[1] == 1
    mean = np.broadcast_to(y.mean(axis=0), y.shape)
    assert train.loss_and_score(False, mean, y)[1] == pytest.approx(0, abs=1e-6)


def test_conclusions_state_their_sigmas():
    run = lambda name, score, error: train.Run(name, score, error, 1e-3, (score,), name == "advised")
    say = lambda *numbers: conclusion(run("advised", *numbers[:2]), run("He", *numbers[2:]))
    assert say(0.947, 0.003, 0.921, 0.004) == "Advised beats He by 2.6 ± 0.5 points (5.2 sigma)."
    assert say(0.93, 0.01, 0.92, 0.01) == "He is as good here: advised is 1.0 ± 1.4 points (0.7 sigma) ahead."
    assert say(0.90, 0.003, 0.93, 0.004) == "He beats advised by 3.0 ± 0.5 points (6.0 sigma): use He."
    assert say(0.9, 0.0, 0.9, 0.0).startswith("He is as good here")
    assert train.gap(run("a", 0.9, 0.0), run("b", 0.8, 0.0))[2] == np.inf


def test_all_initializations_are_trained_with_seeds():
    """Small networks of one call: rows, rates and errors of the table; the same seeds give the same scores."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 5))
    y = np.sin(x[:, :1])
    starts = [(start, 1.0) for start in (*advised_starts(2.0, 0.0, BLOCKS["plain"], True), HE, DEFAULTS[0])]
    shape = ("relu", BLOCKS["plain"], starts, 3, 16, x, y, False)
    for optimizer, batch, rows in (("adam", 60, 60), ("gd", 60, 60)):
        found = train.trained(*shape, optimizer, 0.05, 0, 3)
        assert [run.name for run in found.runs] == ["advised", "normal", "He", "PyTorch"]
        assert (found.rows, found.test_rows, found.batch, len(found.rates)) == (rows, 20, batch, 5)
        for run in found.runs:
            assert len(run.scores) == 3 and run.rate in found.rates and 0 <= min(run.scores) <= 1
            assert run.score == pytest.approx(np.mean(run.scores))
            assert run.error == pytest.approx(np.std(run.scores, ddof=1) / 3**0.5)
        assert found.strongest.name in ("He", "PyTorch") and found.runs[0].score > 0.3
        # The same variances, law and keys; the order of batches is shared by all.
        assert found.runs[1].scores == found.runs[2].scores
    assert found.runs == train.trained(*shape, "gd", 0.05, 0, 3).runs


def test_a_trained_transformer_is_that_of_the_library():
    """Queries and keys that share their weights, as `nk.layers.Attention` has them: outputs of one network."""
    block, s, tokens, width, depth = BLOCKS["transformer"], "gelu", 3, 8, 3
    net = blocks.network(block, transformer.point(s, depth, tokens), 4, width, depth, tokens)
    x = points(5, 12).reshape(5, tokens, 4)
    (start,) = advised_starts(1.0, 0.0, block, orthogonal=False)
    params = train.drawn(start, jax.random.split(jax.random.key(3), 1), 4, width, depth, 1, tokens)
    with jax.enable_x64(True):
        params = jax.tree.map(lambda a: np.asarray(a[0], float), params)
        hidden = params["hidden"] = params["hidden"] | {"key": params["hidden"]["query"]}
        heads = {name: hidden[name]["weight"][:, :, None] for name in ("query", "value")}
        attention = {**heads, "output": hidden["output"]["weight"], "bias": hidden["output"]["bias"]}
        theta = [params["first"], [[attention], [hidden["before"], hidden["after"]]], params["last"]]
        found = train.outputs(nk.activations.get(s), (True, True), params, x)
        np.testing.assert_allclose(found, net(theta, x), rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    "block, optimizer",
    [("plain", "adam"), ("plain", "gd"), ("residual", "adam"), ("normalized", "gd"), ("transformer", "adam")],
)
def test_training_from_the_advised_initialization_does_not_lose(block, optimizer):
    """No usual initialization beats the advised one by three standard errors, and plain networks gain."""
    depth = "4" if block == "transformer" else "16"
    shape = ["--activation", "gelu", "--depth", depth, "--width", "96", "--block", block]
    if block == "transformer":
        shape += ["--tokens", "8"]
    data = ["--data", "digits", "--train", optimizer, "--seeds", 3, "--framework", "torch"]
    result = nearkernel("advise", *shape, *data)
    with open("out/advice.json") as file:
        found = json.load(file)["training"]
    runs = {run["name"]: run for run in found["runs"]}
    usual = {"residual": ["He", "He/sqrt(L)"], "transformer": ["GPT-2"]}.get(block, ["He"])
    other = ["normal"] if block in ("plain", "normalized") else []
    assert list(runs) == ["advised", *other, *usual, "PyTorch", "Flax", "Keras"] and found["width"] == 64
    assert all(len(run["scores"]) == 3 for run in runs.values()) and found["strongest"] in runs
    for name in runs.keys() - {"advised"}:
        against = found["advised_against"][name]
        assert against["ahead"] > -3 * against["standard_error"] - 0.02, name
    if block == "plain":
        assert found["advised_against"]["PyTorch"]["ahead"] > 0.3
    way = "gradient descent" if optimizer == "gd" else "Adam"
    rows = {"gd": 128, "adam": 600}[optimizer]
    assert f"100 steps of {way} on {rows} rows, from each initialization" in result.stdout
    text = result.stdout.replace("\n", " ")
    assert "sigma" in text and ("is as good here" in text or "Advised beats" in text)
    assert ("At width 96 muP keeps this rate" in text) == (optimizer == "adam")
    with open("out/report.html", encoding="utf-8") as file:
        assert f"100 steps of {way} on {rows} rows" in file.read()
