"""Code that `nearkernel advise` prints, run in the frameworks themselves."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel._commands.advise import maximal
from nearkernel._commands.advise.starts import DEFAULTS
from nearkernel._commands.advise.typed import how_to_type


def typed(name, *settings, **names):
    """The function `init_` of a framework."""
    exec(how_to_type(*settings)[name], names)
    return names["init_"]


def has_variance(values, variance, count=6.0):
    """Draws of a Gaussian, by the standard error of their variance."""
    values = np.asarray(values, np.float64).ravel()
    if variance == 0:
        return bool((values == 0).all())
    return abs((values**2).mean() / variance - 1) < count * np.sqrt(2 / values.size)


def as_torch(torch):
    """A multilayer perceptron, and a small transformer with embeddings, norms and a convolution."""
    mlp = torch.nn.Sequential(
        torch.nn.Linear(30, 200), torch.nn.ReLU(), torch.nn.Linear(200, 300, bias=False), torch.nn.ReLU(),
        torch.nn.Linear(300, 7),
    )  # fmt: skip

    class Conv1D(torch.nn.Module):
        """As GPT-2 of Hugging Face has it: inputs first."""

        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.empty(32, 96))

    layer = torch.nn.TransformerEncoderLayer(32, 4, 96, batch_first=True, norm_first=True)
    transformer = torch.nn.ModuleDict(
        {
            "embed": torch.nn.Embedding(20, 32),
            "encoder": torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
            "patches": torch.nn.Conv2d(3, 16, 5),
            "gpt": Conv1D(),
            "places": torch.nn.ParameterDict(
                {"pos_embed": torch.ones(1, 5, 32), "cls_token": torch.ones(1, 1, 32)}
            ),
            "norm": torch.nn.LayerNorm(32),
            "head": torch.nn.Linear(32, 20),
        }
    )
    return mlp, transformer


@pytest.mark.parametrize("bias_var", [0.0, 0.17])
def test_init_of_pytorch_gives_every_parameter_its_variance(bias_var):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    init_ = typed("PyTorch", 1.98, bias_var, 3, torch=torch)
    for model in as_torch(torch):
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        init_(model)
        for name, p in model.named_parameters():
            if "norm" in name or "embed" in name or "token" in name:
                assert torch.equal(p, before[name]), name
            elif p.ndim == 1:
                assert has_variance(p.detach(), bias_var), name
            else:  # rows of in_proj are queries, keys and values of one fan-in
                fan_in = 3 * 25 if p.ndim == 4 else 32 if name == "gpt.weight" else p.shape[1]
                assert has_variance(p.detach(), 1.98 / fan_in), name


def test_init_of_residual_blocks_leaves_both_ends_at_one():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    mlp, _ = as_torch(torch)
    typed("PyTorch", 0.04, 0.0, 2, True, torch=torch)(mlp)
    weights = [p.detach() for p in mlp.parameters() if p.ndim > 1]
    assert all(has_variance(w, c / w.shape[1]) for w, c in zip(weights, (1.0, 0.04, 1.0), strict=True))


def is_orthogonal(weight, scale):
    """Rows or columns, whichever are fewer, of a matrix (fan_in, n) or (n, fan_in)."""
    weight = np.asarray(weight, np.float64).reshape(len(weight), -1)
    gram = weight @ weight.T if weight.shape[0] <= weight.shape[1] else weight.T @ weight
    return np.allclose(gram, scale * np.eye(len(gram)), atol=1e-5 * scale)


def test_orthogonal_weights_of_pytorch():
    """Signals keep their variance: entries have the variance C_W / fan_in, in wide, narrow and square layers."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    mlp, _ = as_torch(torch)
    conv = torch.nn.Conv2d(3, 100, 3)
    init_ = typed("PyTorch", 1.98, 0.0, 3, False, True, torch=torch)
    for model in (mlp, conv):
        init_(model)
        for p in model.parameters():
            if p.ndim > 1:
                out, fan_in = len(p), p[0].numel()
                assert is_orthogonal(p.detach(), 1.98 * max(1, out / fan_in))
                assert float((p.detach() ** 2).mean()) == pytest.approx(1.98 / fan_in, rel=1e-5)


def test_orthogonal_weights_of_flax():
    nn = pytest.importorskip("flax.linen")

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.Conv(50, (3, 3))(x)
            return nn.Dense(7)(nn.Dense(60, use_bias=False)(x))

    params = Model().init(jax.random.key(0), np.zeros((1, 4, 4, 2)))["params"]
    new = typed("Flax", 1.98, 0.0, 3, False, True, jax=jax)(params, jax.random.key(1))
    for name, layer in new.items():
        kernel = np.asarray(layer["kernel"])
        assert kernel.shape == params[name]["kernel"].shape
        matrix = kernel.reshape(-1, kernel.shape[-1])
        fan_in, out = matrix.shape
        assert is_orthogonal(matrix, 1.98 * max(1, out / fan_in)), name
        assert (matrix**2).mean() == pytest.approx(1.98 / fan_in, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("bias_var", [0.0, 0.17])
def test_init_of_flax_gives_every_parameter_its_variance(bias_var):
    nn = pytest.importorskip("flax.linen")

    class Model(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(20, 32)(tokens)
            x = x + nn.MultiHeadDotProductAttention(4)(nn.LayerNorm()(x))
            return nn.Dense(20)(nn.gelu(nn.Dense(96, use_bias=False)(nn.LayerNorm()(x))))

    params = Model().init(jax.random.key(0), np.zeros((1, 5), int))["params"]
    new = typed("Flax", 1.98, bias_var, 3, jax=jax)(params, jax.random.key(1))
    assert jax.tree.map(np.shape, new) == jax.tree.map(np.shape, params)
    for path, p in jax.tree_util.tree_leaves_with_path(new):
        names = [key.key for key in path]
        if names[-1] == "kernel":
            fan_in = 96 if p.shape == (96, 20) else 32  # names follow the order of construction
            assert has_variance(p, 1.98 / fan_in), names
        elif "LayerNorm" not in names[0] and names[-1] == "bias":
            assert has_variance(p, bias_var), names
        else:
            old = params[names[0]][names[1]]
            assert np.array_equal(p, old), names
    ends = typed("Flax", 0.04, 0.0, 1, True, jax=jax)(params, jax.random.key(1))
    assert has_variance(ends["Dense_1"]["kernel"], 1 / 32) and has_variance(ends["Dense_0"]["kernel"], 1 / 96)
    assert has_variance(ends["MultiHeadDotProductAttention_0"]["out"]["kernel"], 0.04 / 32)


@pytest.mark.slow
def test_init_of_keras_gives_every_parameter_its_variance():
    keras = pytest.importorskip("keras")
    import math

    x = inputs = keras.Input((5,))
    x = keras.layers.Embedding(20, 32)(x)
    x = x + keras.layers.MultiHeadAttention(4, 8)(keras.layers.LayerNormalization()(x), x)
    x = keras.layers.Dense(20)(keras.layers.Dense(96, use_bias=False)(x))
    model = keras.Model(inputs, x)
    typed("Keras", 1.98, 0.17, 3, keras=keras, math=math)(model)
    for v in model.trainable_variables:
        values = np.asarray(keras.ops.convert_to_numpy(v))
        if v.name == "kernel":
            fan_in = 96 if v.shape[0] == 96 else 32
            assert has_variance(values, 1.98 / fan_in), v.path
        elif v.name == "bias":
            assert has_variance(values, 0.17), v.path


@pytest.mark.parametrize(
    "settings", [(2.0, 0.0, 3), (2.0, 0.2, 3), (0.1, 0.0, 3, True), (2.0, 0.2, 3, False, True)]
)
def test_what_is_typed_is_python(settings):
    for code in how_to_type(*settings).values():
        compile(code, "typed", "exec")
        assert max(map(len, code.splitlines())) <= 104


def test_the_default_of_attention_in_pytorch_is_what_is_drawn():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    attention = torch.nn.MultiheadAttention(256, 4)
    values, outputs = DEFAULTS[0].attention(256)
    for p, variance in ((attention.in_proj_weight, values), (attention.out_proj.weight, outputs)):
        assert has_variance(p.detach(), variance / 256)
    assert has_variance(attention.in_proj_bias.detach(), 0.0) and DEFAULTS[1].attention(256) == (1.0, 1.0)


def carried(name, **names):
    """The function of a framework that sets factors."""
    exec(maximal.CODE[name], names)
    return names["mup" if name == "Flax" else "mup_"]


def expected_of_mup(width, adam):
    """(learning rates, factor of the initial output weights) of inputs, hidden weights and outputs, from width 8."""
    net = nk.MLP(5, (width, width), 2, bias_var=0.1, parametrization="mup", base_width=8)
    return net.lr_factors("adam" if adam else "sgd"), (8 / width) ** 0.5


@pytest.mark.parametrize("adam", [True, False])
def test_code_of_pytorch_sets_rates_and_outputs(adam):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)

    def model(n):
        layers = [torch.nn.Linear(5, n), torch.nn.ReLU(), torch.nn.LayerNorm(n), torch.nn.Linear(n, n)]
        return torch.nn.Sequential(*layers, torch.nn.ReLU(), torch.nn.Linear(n, 2))

    net, base = model(32), model(8)
    before = [p.detach().clone() for p in net.parameters()]
    groups = carried("PyTorch", torch=torch)(net, base, 0.1, adam)
    (torch.optim.Adam if adam else torch.optim.SGD)(groups, lr=1.0)
    rates, last = expected_of_mup(32, adam)
    found = [group["lr"] / 0.1 for group in groups]
    weights = [rates[0]["weight"], rates[1]["weight"], rates[2]["weight"]]
    assert [found[k] for k in (0, 4, 6)] == pytest.approx(weights)
    biases = [rates[0]["bias"], rates[1]["bias"], rates[2]["bias"]]
    assert [found[k] for k in (1, 5, 7)] == pytest.approx(biases)
    assert found[2:4] == pytest.approx([biases[0]] * 2)  # gain and shift of the norm
    for k, (old, p) in enumerate(zip(before, net.parameters(), strict=True)):
        np.testing.assert_allclose(p.detach(), old * (last if k == 6 else 1.0), rtol=1e-6)
    tokens = [torch.nn.Sequential(torch.nn.Embedding(9, n), torch.nn.Linear(n, 9)) for n in (32, 8)]
    embedding, output, bias = (group["lr"] for group in carried("PyTorch", torch=torch)(*tokens, 1.0, adam))
    assert (embedding, output, bias) == ((1.0, 0.25, 1.0) if adam else (4.0, 0.25, 1.0))


@pytest.mark.parametrize("adam", [True, False])
def test_code_of_pytorch_knows_transformers(adam):
    """Packed weights of attention are hidden layers; positions that are bare parameters are embeddings."""
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):
        def __init__(self, n, heads):
            super().__init__()
            self.pos_embedding = torch.nn.Parameter(torch.ones(1, 7, n))
            self.layer = torch.nn.TransformerEncoderLayer(n, heads, 2 * n, norm_first=True)
            self.head = torch.nn.Linear(n, 3)

    net, base = Model(32, 8), Model(8, 2)
    names = [name for module in net.modules() for name, _ in module.named_parameters(recurse=False)]
    before = {name: p.detach().clone() for name, p in net.named_parameters()}
    rates = [group["lr"] for group in carried("PyTorch", torch=torch)(net, base, 1.0, adam)]
    hidden, narrow = (0.25, 1.0) if adam else (1.0, 4.0)
    assert rates[names.index("pos_embedding")] == narrow and rates[names.index("in_proj_weight")] == hidden
    assert rates[names.index("in_proj_bias")] == narrow and rates[-2:] == [0.25, 1.0]
    for name, p in net.named_parameters():
        np.testing.assert_allclose(p.detach(), before[name] * (0.5 if name == "head.weight" else 1.0))


@pytest.mark.parametrize("adam", [True, False])
@pytest.mark.parametrize("heads", [(8, 2), (2, 2)])
def test_code_of_flax_knows_attention(adam, heads):
    """Whether there are more heads or wider ones, their matrices are hidden layers and their biases are biases."""
    nn, optax = pytest.importorskip("flax.linen"), pytest.importorskip("optax")
    attention = [
        nn.MultiHeadDotProductAttention(h, qkv_features=n) for h, n in zip(heads, (32, 8), strict=True)
    ]
    params, base = (
        each.init(jax.random.key(0), np.zeros((1, 5, n)))["params"]
        for each, n in zip(attention, (32, 8), strict=True)
    )
    new, optimizer = carried("Flax", jax=jax, optax=optax)(params, base, 1.0, adam)
    moved = optimizer.update(jax.tree.map(np.ones_like, params), optimizer.init(new), new)[0]
    for path, step in jax.tree_util.tree_leaves_with_path(moved):
        hidden = path[-1].key == "kernel"
        rate = (0.25 if hidden else 1.0) if adam else (1.0 if hidden else 4.0)
        np.testing.assert_allclose(-np.asarray(step), rate, rtol=1e-4)
    for one, other in zip(jax.tree.leaves(new), jax.tree.leaves(params), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("adam", [True, False])
def test_code_of_flax_sets_rates_and_outputs(adam):
    nn, optax = pytest.importorskip("flax.linen"), pytest.importorskip("optax")

    class Model(nn.Module):
        width: int

        @nn.compact
        def __call__(self, x):
            for _ in range(2):
                x = nn.relu(nn.Dense(self.width)(x))
            return nn.Dense(2)(x)

    params, base = (Model(n).init(jax.random.key(n), np.zeros((1, 5)))["params"] for n in (32, 8))
    new, optimizer = carried("Flax", jax=jax, optax=optax)(params, base, 0.1, adam)
    rates, last = expected_of_mup(32, adam)
    moved = optimizer.update(jax.tree.map(np.ones_like, params), optimizer.init(new), new)[0]
    for k in range(3):
        for here, there in (("kernel", "weight"), ("bias", "bias")):
            step = -np.asarray(moved[f"Dense_{k}"][here]) / 0.1
            np.testing.assert_allclose(step, rates[k][there], rtol=1e-4)
            factor = last if (k, here) == (2, "kernel") else 1.0
            np.testing.assert_allclose(
                new[f"Dense_{k}"][here], factor * params[f"Dense_{k}"][here], rtol=1e-6
            )


@pytest.mark.slow
@pytest.mark.parametrize("adam", [True, False])
def test_code_of_keras_sets_rates_and_outputs(adam):
    keras = pytest.importorskip("keras", reason="Keras is not installed")
    import math

    def model(n):
        dense = keras.layers.Dense
        return keras.Sequential([keras.Input((5,)), dense(n, "relu"), dense(n, "relu"), dense(2)])

    net, base = model(32), model(8)
    before = [np.array(v) for v in net.trainable_variables]
    optimizer = carried("Keras", keras=keras, math=math)(net, base, 0.1, adam)
    rates, last = expected_of_mup(32, adam)
    start = [np.array(v) for v in net.trainable_variables]
    optimizer.apply([keras.ops.ones_like(v) for v in net.trainable_variables], net.trainable_variables)
    for k, v in enumerate(net.trainable_variables):
        np.testing.assert_allclose(start[k], before[k] * (last if k == 4 else 1.0), rtol=1e-6)
        rate = rates[k // 2]["bias" if k % 2 else "weight"]
        np.testing.assert_allclose((start[k] - np.array(v)) / 0.1, rate, rtol=1e-3, atol=1e-5)
