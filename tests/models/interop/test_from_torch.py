"""PyTorch networks as models: outputs, gradients and Hessian-vector products of PyTorch itself, for any batch size."""

import pickle
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.dynamics.orders.kink_probe import jumps
from nearkernel.models.interop.aten import OPERATIONS
from support.pytorch.networks import NETWORKS, Attention, made
from support.pytorch.reference import called, compared, torch

pytestmark = pytest.mark.merge
nn = torch.nn


def small(*layers):
    torch.manual_seed(0)
    return nn.Sequential(*layers).eval()


def inputs(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def as_pytorch(module, x, output=None):
    with torch.no_grad():
        return called(module.double(), x, output).numpy()


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_has_the_outputs_and_derivatives_of_pytorch(name):
    net, batch, output = made(name)
    errors = compared(net, batch(2), batch(5, seed=1), output)
    assert max(errors) < 1e-13, errors


def test_a_batch_of_one_keeps_its_dimension():
    class Squeezed(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(3, 1)

        def forward(self, x):
            return self.net(x).squeeze() * x[:, :1, None].squeeze(2).squeeze(1)

    module = Squeezed()
    model, params = nk.from_torch(module, inputs(2, 3))
    x = inputs(5, 3, seed=1)
    alone = np.concatenate([model(params, row[None]) for row in x])
    np.testing.assert_allclose(alone, model(params, x), rtol=1e-14)
    assert alone.shape == (5, 1)


def test_a_module_that_fixes_its_batch_size_is_taken_row_by_row():
    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.net = nn.Parameter(torch.randn(1, 3)), nn.Linear(3, 2)

        def forward(self, x):
            return self.net(torch.tanh(x) + self.token.repeat(len(x), 1))

    module = Fixed()
    model, _ = nk.from_torch(module, inputs(2, 3))
    assert model.by_row
    assert max(compared(module, inputs(2, 3), inputs(7, 3, seed=1))) < 1e-14


def test_stopped_gradients_stay_stopped():
    """PyTorch's own lowering forgets them."""

    class Stopped(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x):
            with torch.no_grad():
                scale = torch.cos(self.a(x))
                shift = torch.sin(scale)
            return self.b(x) * scale + self.a(x).detach() * self.b(x) + shift

    assert max(compared(Stopped(), inputs(2, 3), inputs(4, 3, seed=1))) < 1e-14


def test_changes_in_place_and_views_of_them_are_followed():
    class Changing(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 4)

        def forward(self, x):
            z = torch.zeros(x.shape[0], 4, dtype=x.dtype)
            z[:, ::2] = self.a(x)[:, 1::2]
            z[:, 1].add_(self.a(x)[:, 0]).mul_(2)
            return nn.functional.relu(z, inplace=True)

    assert max(compared(Changing(), inputs(2, 3), inputs(4, 3, seed=1))) < 1e-14


def test_tied_weights_stay_one():
    net, batch, _ = made("tiny_gpt")
    model, params = nk.from_torch(net, batch(2))
    assert "embed.weight" in params and "head.weight" not in params
    state = nk.to_torch(model, jax.tree.map(lambda leaf: np.asarray(leaf) + 0.1, params))
    torch.testing.assert_close(state["head.weight"], state["embed.weight"])
    assert nk.from_torch(net, batch(2), trainable="head")[1].keys() == {"embed.weight"}  # by its other name


def test_frozen_weights_and_buffers_are_arrays_of_the_model():
    net, batch, _ = made("batch_norm_cnn")
    model, params = nk.from_torch(net, batch(2), trainable="8")
    assert sorted(params) == ["8.bias", "8.weight"]
    assert {"1.running_mean", "1.weight", "0.weight"} <= model.frozen.keys()
    leaves = jax.tree.leaves(model)
    assert sum(np.size(leaf) for leaf in leaves) == sum(np.size(each) for each in model.frozen.values())
    with jax.enable_x64(True):
        jaxpr = jax.make_jaxpr(lambda m, p, x: m(p, x))(model, params, batch(3))
    assert max((np.size(const) for const in jaxpr.consts), default=0) < 100  # none in the program
    moved = jax.tree.map(lambda leaf: np.asarray(leaf) + 1.0, model)
    assert np.abs(np.asarray(moved(params, batch(3))) - np.asarray(model(params, batch(3)))).max() > 1e-3
    assert not model.kinks  # what trains meets no relu any more


def test_which_parameters_train():
    net, batch, _ = made("layer_norm_mlp")
    chosen = lambda trainable: sorted(nk.from_torch(net, batch(2), trainable=trainable, check=False)[1])
    assert chosen("4") == chosen("4.*") == ["4.bias", "4.weight"]
    assert chosen("*.weight") == ["0.weight", "1.weight", "4.weight"]
    assert chosen(["0.bias", "1"]) == ["0.bias", "1.bias", "1.weight"]
    assert chosen(lambda name, layer: isinstance(layer, nn.LayerNorm)) == ["1.bias", "1.weight"]
    net[0].requires_grad_(False)
    assert chosen(None) == ["1.bias", "1.weight", "4.bias", "4.weight"]
    with pytest.raises(
        ValueError, match=r"`trainable` finds no parameter like 'heads' in `module`, which has 0\.weight"
    ):
        chosen("heads")
    with pytest.raises(TypeError, match=r"`trainable` must be a pattern such as 'head\.\*'.*; got int"):
        chosen(3)


def test_parameters_that_do_not_matter_for_the_output_do_not_train():
    net, batch, _ = made("encoder")
    net.spare = nn.Linear(3, 3)
    model, params = nk.from_torch(net, batch(2))
    assert not any(name.startswith("spare") for name in params) and "spare.weight" in model.frozen
    assert nk.to_torch(model, params).keys() == net.state_dict().keys()


def test_adapters_of_low_rank():
    net, batch, _ = made("tiny_gpt")
    net = net.double()
    adapters = nk.LoRA(rank=2, names=("block.linear1", "block.self_attn.in_proj_weight"), alpha=4.0)
    model, params = nk.from_torch(net, batch(2), trainable=[adapters, "block.norm1"])
    assert {name: np.shape(leaf) for name, leaf in params.items()} == {
        "block.linear1.weight.A": (2, 8),
        "block.linear1.weight.B": (16, 2),
        "block.self_attn.in_proj_weight.A": (2, 8),
        "block.self_attn.in_proj_weight.B": (24, 2),
        "block.norm1.weight": (8,),
        "block.norm1.bias": (8,),
    }
    x = batch(3, seed=1)
    np.testing.assert_allclose(model(params, x), as_pytorch(net, x), atol=1e-13)  # they start at zero
    rng = np.random.default_rng(0)
    moved = {name: np.asarray(leaf) + 0.3 * rng.normal(size=np.shape(leaf)) for name, leaf in params.items()}
    net.load_state_dict(nk.to_torch(model, moved))  # merged; the model keeps its own arrays
    np.testing.assert_allclose(model(moved, x), as_pytorch(net, x), atol=1e-13)
    name = "block.linear1.weight"
    change = np.asarray(model.weights(moved)[name]) - np.asarray(model.frozen[name])
    np.testing.assert_allclose(change, 2.0 * moved[f"{name}.B"] @ moved[f"{name}.A"], atol=1e-14)
    with pytest.raises(ValueError, match=r"`trainable` both trains 'block\.linear1\.weight' and adapts it"):
        nk.from_torch(net, batch(2), trainable=[adapters, "block"])
    with pytest.raises(ValueError, match="`trainable` finds no matrix like 'embed' in `module`"):
        nk.from_torch(net, batch(2), trainable=nk.LoRA(names="embed"))


def test_weights_go_back_into_the_module():
    net, batch, _ = made("batch_norm_cnn")
    model, params = nk.from_torch(net, batch(2))
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    state = nk.to_torch(model, params)
    assert list(state) == list(before)
    for name, tensor in before.items():
        assert state[name].dtype == tensor.dtype
        torch.testing.assert_close(state[name], tensor, rtol=0, atol=0)
    scaled = nk.Scaled(model, 4.0)
    theta = jax.tree.map(lambda leaf: np.asarray(leaf) * 1.1, params)
    moved = nk.to_torch(nk.expand(scaled, scaled.at(params)), {"params": theta, "start": params})
    net.load_state_dict(moved)
    np.testing.assert_allclose(
        net.float().eval()(torch.tensor(batch(3), dtype=torch.float32)).detach(),
        model(theta, batch(3)),
        atol=1e-5,
    )
    with pytest.raises(TypeError, match=r"`model` must come from nk\.from_torch; got MLP"):
        nk.to_torch(nk.MLP(3), {})
    with pytest.raises(TypeError, match=r"`params` must be a dict of the 8 arrays .*0\.bias.*; got a\."):
        nk.to_torch(model, {"a": 1.0})


def test_several_inputs_by_place_and_by_name():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.net = nn.Embedding(7, 2), nn.Linear(3, 2)

        def forward(self, x, ids, scale=1.0, mask=None):
            z = self.net(x * scale) + self.embed(ids).sum(1)
            return {"first": z, "second": (z**2).sum(1)}

    x, ids = inputs(5, 3), np.arange(20).reshape(5, 4) % 7
    module = Two()
    placed, params = nk.from_torch(module, (x[:2], ids[:2], 2.0), output="first")
    named, _ = nk.from_torch(module, {"ids": ids[:2], "x": x[:2], "mask": None, "scale": 2.0}, output="first")
    expected = module.double()(torch.tensor(x), torch.tensor(ids), 2.0)
    np.testing.assert_allclose(placed(params, (x, ids)), expected["first"].detach(), atol=1e-14)
    np.testing.assert_allclose(named(params, {"x": x, "ids": ids}), expected["first"].detach(), atol=1e-14)
    flat = placed.flatten((x, ids))
    assert flat.shape == (5, 7)  # tokens among floating-point numbers
    np.testing.assert_allclose(placed(params, flat), expected["first"].detach(), atol=1e-14)
    kernel = nk.kernels.EmpiricalNTK(placed, params)(flat)
    assert kernel.shape == (5, 5) and np.linalg.eigvalsh(kernel)[0] > -1e-9
    by_function, _ = nk.from_torch(module.float(), (x[:2], ids[:2], 2.0), output=lambda z: z["second"])
    np.testing.assert_allclose(by_function(params, flat)[:, 0], expected["second"].detach(), atol=1e-13)
    with pytest.raises(
        ValueError, match=r"`module` must return one tensor; it returns a dict of 'first', 'second'"
    ):
        nk.from_torch(module, (x[:2], ids[:2]))
    with pytest.raises(ValueError, match=r"`output` 'third' is not among the outputs of `module`"):
        nk.from_torch(module, (x[:2], ids[:2]), output="third")
    with pytest.raises(
        ValueError, match=r"`x` must be a tuple of shapes \(n, 3\), \(n, 4\) \(or all flattened into one row"
    ):
        placed(params, x)
    with pytest.raises(
        ValueError, match=r"`x` must be a dict \{ids: \(n, 4\), x: \(n, 3\)\}.*got a dict of x"
    ):
        named(params, {"x": x})
    with pytest.raises(ValueError, match=r"`example` must have the same number of rows in all inputs"):
        nk.from_torch(module, (x, ids[:2]))


def test_images_may_come_in_one_line():
    net, batch, _ = made("group_norm_cnn")
    model, params = nk.from_torch(net, batch(2))
    x = batch(4, seed=1)
    np.testing.assert_array_equal(model(params, x.reshape(4, -1)), model(params, x))
    np.testing.assert_array_equal(model.flatten(torch.tensor(x)), x.reshape(4, -1))
    with pytest.raises(
        ValueError,
        match=r"`x` must be of shape \(n, 3, 8, 8\) \(or all flattened into one row, \(n, 192\)\); got shape \(4, 7\)",
    ):
        model(params, x.reshape(4, -1)[:, :7])


def test_precision_is_that_of_the_parameters():
    net, batch, _ = made("mlp")
    model, params = nk.from_torch(net, batch(2))
    assert {leaf.dtype for leaf in params.values()} == {np.dtype(np.float64)}
    assert model(params, batch(3)).dtype == np.float64
    with nk.precision("float32"):
        model, params = nk.from_torch(net, batch(2))
    assert {leaf.dtype for leaf in params.values()} == {np.dtype(np.float32)}
    assert model(params, batch(3)).dtype == np.float32
    np.testing.assert_allclose(model(params, batch(3)), as_pytorch(net, batch(3)), atol=1e-6)


def test_a_module_in_half_precision_is_computed_in_full():
    net, batch, _ = made("mlp")
    net = net.to(torch.bfloat16)
    model, params = nk.from_torch(net, batch(2))
    np.testing.assert_allclose(model(params, batch(3)), as_pytorch(net, batch(3)), atol=1e-14)


def test_a_model_needs_no_pytorch_and_can_be_stored():
    net, batch, _ = made("gru")
    model, params = nk.from_torch(net, batch(2))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again(params, batch(3)), model(params, batch(3)))


def test_every_verb_takes_it():
    """Inside the caller's own jit, grad and vmap too."""
    net, batch, _ = made("mlp")
    model, params = nk.from_torch(net, batch(2))
    x, y = batch(6), inputs(6, 2, seed=3)
    largest = np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(model, params).full(x).reshape(12, 12))[-1]
    algorithm = nk.GradientDescent(lr=1 / largest, steps=20)
    linear = nk.expand(model, params)
    run = nk.simulate(linear, params, x, y, algorithm)
    solved = nk.solve(linear, x, y, algorithm)
    np.testing.assert_allclose(linear(run.params, batch(3, 1)), solved.predict(batch(3, 1)).mean, atol=1e-9)
    with pytest.raises(ValueError, match=r"a model of nk\.from_torch has no `init`"):
        model.init(jax.random.key(0))
    loss = jax.jit(lambda p: jnp.sum(model(p, x) ** 2))
    small_params = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf), jnp.float32), params)
    assert jax.grad(loss)(small_params)["0.weight"].dtype == np.float32


def test_kinks_are_seen_in_the_graph():
    net, batch, _ = made("batch_norm_cnn")
    model, _ = nk.from_torch(net, batch(2))
    assert model.kinks == ("relu at '2'", "max_pool2d_with_indices at '3'", "relu at '5'")
    for smooth in ("mlp", "group_norm_cnn", "attention", "encoder", "gru"):
        net, batch, _ = made(smooth)
        assert nk.from_torch(net, batch(2), check=False)[0].kinks == ()
    kinked = {
        "leaky_relu": nn.LeakyReLU(),
        "_prelu_kernel": nn.PReLU(),
        "hardtanh": nn.ReLU6(),
        "hardswish": nn.Hardswish(),
        "elu": nn.ELU(alpha=0.5),
        "le": nn.Hardshrink(),
    }
    for name, layer in kinked.items():
        found = nk.from_torch(small(nn.Linear(3, 4), layer, nn.Linear(4, 1)), inputs(2, 3))[0].kinks
        assert f"{name} at '1'" in found
    for layer in (nn.ELU(), nn.Softplus(), nn.Mish(), nn.Tanhshrink(), nn.RMSNorm(4), nn.Softmax(-1)):
        assert nk.from_torch(small(nn.Linear(3, 4), layer, nn.Linear(4, 1)), inputs(2, 3))[0].kinks == ()


@pytest.mark.parametrize(
    "name", ["mlp", "layer_norm_mlp", "batch_norm_cnn", "group_norm_cnn", "encoder", "gru", "lstm", "vit"]
)
def test_kinks_of_the_graph_are_jumps_of_the_derivative(name):
    """Found without the graph, on a path of the parameters."""
    net, batch, _ = made(name)
    model, params = nk.from_torch(net, batch(2), check=False)
    assert jumps(model, params, batch(6, seed=1)) is bool(model.kinks)


def test_solving_a_kinked_module_beyond_order_zero_warns():
    net = small(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    model, params = nk.from_torch(net, inputs(2, 3))
    x = inputs(5, 3)
    expanded = nk.expand(model, params, degree=2)
    with pytest.warns(UserWarning, match=r"the model \(relu at '1'\) has kinks"):
        nk.solve(expanded, x, np.sin(x[:, 0]), nk.GradientFlow(time=0.01), order=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nk.solve(expanded, x, np.sin(x[:, 0]), nk.GradientFlow(time=0.01), order=0)


@pytest.mark.parametrize(
    "layers, trouble",
    [
        ((nn.Linear(3, 3), nn.Dropout(0.1)), r"dropout draws random numbers \('1'\)"),
        ((nn.Linear(3, 3), nn.BatchNorm1d(3)), r"batch normalization mixes the rows of a batch \('1'\)"),
    ],
)
def test_training_mode_is_refused_where_it_matters(layers, trouble):
    module = nn.Sequential(*layers).train()
    with pytest.raises(
        ValueError, match=rf"`module` is in training mode, where {trouble}: call module\.eval\(\) first"
    ):
        nk.from_torch(module, inputs(2, 3))
    nk.from_torch(module.eval(), inputs(2, 3))
    nk.from_torch(nn.Sequential(nn.Linear(3, 2), nn.Tanh()).train(), inputs(2, 3))  # the same in both


def test_randomness_and_statistics_of_batches_are_refused_in_functions_too():
    class Random(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(3, 3)

        def forward(self, x):
            return nn.functional.dropout(self.net(x), 0.2, training=True)

    with pytest.raises(
        ValueError, match=r"`module` draws random numbers \(.*\), as dropout does in training mode"
    ):
        nk.from_torch(Random().eval(), inputs(2, 3))
    with pytest.raises(ValueError, match=r"`module` mixes the rows of a batch"):
        nk.from_torch(small(nn.Linear(3, 3), nn.BatchNorm1d(3, track_running_stats=False)), inputs(2, 3))
    sequence_first = small(nn.Linear(8, 8), nn.TransformerEncoderLayer(8, 2, 16))
    with pytest.raises(ValueError, match=r"`module` mixes the rows of a batch.*batch_first=True"):
        nk.from_torch(sequence_first, inputs(4, 5, 8))
    with pytest.raises(
        ValueError, match=r"`module` draws random numbers \(lstm\.input.*\).*call module\.eval\(\) first"
    ):
        recurrent = nn.LSTM(3, 4, 2, dropout=0.5, batch_first=True)
        nk.from_torch(recurrent.train(), inputs(2, 5, 3), output=0)

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(3, 3)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls += 1
            return self.net(x) * self.calls

    module = Counting()
    with pytest.raises(
        ValueError, match=r"`module` changes 'calls' when it is called.*call module\.eval\(\) first"
    ):
        nk.from_torch(module, inputs(2, 3))
    assert module.calls == 0  # its own buffer did not change


def test_an_operation_that_is_not_supported_is_named_with_its_place():
    class Strange(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(3, 3)

        def forward(self, x):
            return torch.special.airy_ai(self.net(x))

    module = nn.ModuleDict({"odd": Strange()})
    module.forward = lambda x: module["odd"](x)
    with pytest.raises(
        NotImplementedError,
        match=r"`module` uses the operation special_airy_ai\.default in submodule 'odd' \(test_from_torch\.py, line \d+"
        r"\), which nk\.from_torch does not support.*Supported: functions of each entry,.*; "
        r"print\(\*nk\.models\.torch_operations\(\)\) lists all \d{3}",
    ) as caught:
        nk.from_torch(module, inputs(2, 3))
    assert "\n" not in str(caught.value)
    assert {"add", "convolution", "scaled_dot_product_attention"} <= set(nk.models.torch_operations())


def test_a_backward_of_its_own_is_refused():
    class Straight(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    class Rounding(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(3, 3)

        def forward(self, x):
            return Straight.apply(self.net(x)) + self.net(x)

    with pytest.raises(
        ValueError, match=r"`module` uses Straight, a torch\.autograd\.Function with a custom backward"
    ):
        nk.from_torch(Rounding(), inputs(2, 3))
    model, params = nk.from_torch(Rounding(), inputs(2, 3), check=False)
    assert model(params, inputs(4, 3)).shape == (4, 3)


def test_gradients_are_compared(monkeypatch):
    """A wrong derivative with right outputs is caught, on either side."""
    net = small(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    message = r"the JAX model of `module` differs from PyTorch at `example`: gradients by .* of the largest"
    with monkeypatch.context() as patched:
        patched.setitem(OPERATIONS, "tanh", lambda x: jax.lax.stop_gradient(jnp.tanh(x)))
        with pytest.raises(RuntimeError, match=message):
            nk.from_torch(net, inputs(2, 3))
        nk.from_torch(net, inputs(2, 3), check=False)
        nk.from_torch(net, inputs(2, 3), trainable="2")  # what trains is not behind it
        with pytest.raises(RuntimeError, match=message):
            nk.from_torch(net, inputs(2, 3), trainable=nk.LoRA(rank=1, names="0"))

    class Hooked(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(3, 2)

        def forward(self, x):
            z = self.net(x)
            if z.requires_grad and not torch.compiler.is_compiling():
                z.register_hook(lambda gradient: 2 * gradient)
            return z

    with pytest.raises(RuntimeError, match=message):
        nk.from_torch(Hooked(), inputs(2, 3))


@pytest.mark.parametrize("name", ["batch_norm_cnn", "encoder", "resnet18", "tiny_gpt"])
def test_an_example_of_zeros_is_as_good_as_any(name):
    """Ties of pooling and points without a derivative are no reason to refuse a module."""
    net, batch, _ = made(name)
    model, params = nk.from_torch(net, np.zeros_like(batch(1)))
    np.testing.assert_allclose(model(params, batch(3)), as_pytorch(net, batch(3)), atol=1e-12)


def test_bad_modules_and_examples_cost_one_line():
    net = small(nn.Linear(3, 2))
    with pytest.raises(TypeError, match=r"`module` must be a torch\.nn\.Module; got function"):
        nk.from_torch(lambda x: x, inputs(2, 3))
    with pytest.raises(
        ValueError, match=r"`example` must be an array \(n, \.\.\.\), or a tuple or dict of arrays; got str"
    ):
        nk.from_torch(net, "x")
    with pytest.raises(
        ValueError, match=r"`module` must return one row of floating-point numbers per input; for 2 inputs it"
    ):
        nk.from_torch(small(nn.Flatten(0)), inputs(2, 3))
    with pytest.raises(
        ValueError,
        match=r"`trainable` finds no parameter that requires gradients in `module`, which has no p",
    ):
        nk.from_torch(small(nn.Tanh()), inputs(2, 3))

    class Branching(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(3, 2)

        def forward(self, x):
            return self.net(x) if x.sum() > 0 else -self.net(x)

    with pytest.raises(
        ValueError, match=r"`module` cannot be traced by torch\.export: its `forward` must not branch"
    ) as e:
        nk.from_torch(Branching(), inputs(2, 3))
    assert "\n" not in str(e.value)


def test_padding_of_an_embedding_does_not_train():
    torch.manual_seed(0)
    module = Attention().eval()
    model, params = nk.from_torch(module, np.array([[0, 1, 2, 0, 3, 0]]))
    with jax.enable_x64(True):
        slope = jax.grad(lambda p: jnp.sum(model(p, np.array([[0, 5, 2, 0, 3, 0]]))))(params)["token.weight"]
    assert np.abs(np.asarray(slope)[0]).max() == 0 and np.abs(np.asarray(slope)[5]).max() > 0
