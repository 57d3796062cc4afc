"""One rule for dtypes: `nk.precision` outside of a caller's jit, JAX's own setting inside of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.models.layers import conv as _conv
from support.cases import few
from support.helpers import relative_error

K, L = nk.kernels, nk.layers
RNG = np.random.default_rng(2)
X, Y = RNG.normal(size=(4, 4, 3, 2)), RNG.normal(size=4)
RELU = L.Activation("relu")
HEAD = [L.Flatten(), L.Dense(1)]
LAYERS = {
    "Dense": [L.Dense(3, parametrization="standard"), RELU],
    "Conv": [L.Conv(3, (3, 3)), RELU],
    "circular Conv": [L.Conv(3, (2, 2), (2, 1), "CIRCULAR", parametrization="standard"), RELU],
    "LocallyConnected": [L.LocallyConnected(3, (2, 2)), RELU],
    "AvgPool": [L.Conv(3, (2, 2)), L.AvgPool((3, 3), (2, 2), "SAME", normalize_edges=True)],
    "SumPool": [L.Dense(3), L.SumPool((2, 3))],
    "GlobalAvgPool": [L.Conv(3, (3, 3)), RELU, L.GlobalAvgPool()],
    "GlobalSumPool": [L.Conv(3, (3, 3)), RELU, L.GlobalSumPool()],
    "LayerNorm": [L.Conv(3, (3, 3)), L.LayerNorm(), L.Activation("gelu"), L.LayerNorm("all")],
    "Attention": [L.Dense(3), L.Attention(3, 2), L.Attention(3, 2, None, "sqrt", "identity")],
    "PositionEmbedding": [L.Dense(3), L.PositionEmbedding(), L.PositionEmbedding(0.5, 0.2)],
    "Dropout": [L.Conv(3, (3, 3)), RELU, L.Dropout(0.5)],
    "Repeat": [L.Dense(3), L.Repeat([L.Activation("tanh"), L.Conv(3, (3, 3))], 2)],
    "branches": [
        L.Concat([[L.Conv(2, (3, 3))], [L.Dense(1)]]), L.Residual([RELU, L.Conv(3, (3, 3))]),
        L.Product([[], [L.Dense(3)]]), L.Sum([[], [L.Identity(), L.Dense(3)]])],
}  # fmt: skip

FAST = ("Conv", "Dropout", "Repeat")
CASES = [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in LAYERS]


def network(name):
    end = HEAD[1:] if name.startswith("Global") else HEAD
    return nk.Network(X.shape[1:], [*LAYERS[name], *end])


def dtypes(tree):
    return {np.dtype(leaf.dtype).name for leaf in jax.tree.leaves(tree)}


def started(net):
    """Parameters in both precisions, with the same numbers."""
    wide = net.init(0)
    return wide, jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), wide)


def test_every_layer_is_here():
    shown = {type(layer).__name__ for layers in LAYERS.values() for layer in _inside(layers)}
    classes = {name for name in dir(L) if isinstance(getattr(L, name), type)}
    assert classes <= shown | {"AbstractLayer", "AbstractWideLayer"}, classes - shown


def _inside(layers):
    for layer in (*layers, *HEAD):
        yield layer
        for _, inner in layer.branches():
            yield from _inside(inner)


@pytest.mark.parametrize("name", few(CASES, 1))
def test_parameters_and_inputs_of_any_two_precisions(name):
    """Outside of jit, the wider of two types wins; NumPy arrays are of the working precision."""
    net = network(name)
    wide, narrow = started(net)
    exact = np.asarray(net(wide, X))
    for params in (wide, narrow):
        for x in (X, X.astype(np.float32)):
            assert dtypes(net(params, x)) == {"float64"}
        assert dtypes(net(params, jnp.asarray(X))) == ({"float64"} if params is wide else {"float32"})
        with jax.enable_x64(params is wide):  # JAX itself truncates what its transformations make
            outputs, pull = jax.vjp(net, params, jnp.asarray(X))
            assert dtypes(pull(outputs)) == dtypes(params)
        each = jax.vmap(lambda row, params=params: net(params, row[None])[0])(X)
        assert relative_error(each, exact) < 1e-4
    with nk.precision("float32"):
        assert dtypes(net.init(0)) == dtypes(net(narrow, X)) == {"float32"}
        assert relative_error(net(narrow, X), exact) < 1e-4
    assert dtypes(net.init(0)) == dtypes(net(wide, X)) == {"float64"}


@pytest.mark.parametrize("name", few(CASES, 1))
def test_inside_jit_the_setting_of_jax_decides(name):
    net = network(name)
    wide, narrow = started(net)
    exact, key = np.asarray(net(wide, X)), jax.random.key(1)
    dropped = np.asarray(net(wide, X, key=key))
    run = lambda p, x, key: (net(p, x), net(p, x, key=key), jax.grad(lambda p: net(p, x, key=key).sum())(p))
    for params, expected in ((wide, "float64"), (narrow, "float32")):
        outputs, masked, gradient = jax.jit(lambda p, key: run(p, X, key))(params, key)
        assert dtypes((outputs, masked)) == {"float32"} and dtypes(gradient) == {expected}
        assert max(relative_error(outputs, exact), relative_error(masked, dropped)) < 1e-4
        closed = jax.jit(lambda s: s * net(params, X, key=key))(1.0)  # noqa: B023
        assert dtypes(closed) == {"float32"} and relative_error(closed, dropped) < 1e-4
    through = jax.jacfwd(jax.jit(lambda p: net(p, X)))(narrow)
    assert dtypes(through) == {"float32"}
    with jax.enable_x64(True):
        outputs, masked, _ = jax.jit(run)(wide, X, key)
        assert dtypes((outputs, masked)) == {"float64"}
        assert relative_error(outputs, exact) < 1e-12 and relative_error(masked, dropped) < 1e-12


@pytest.mark.parametrize("name", CASES)
def test_training_is_in_the_working_precision(name):
    net = network(name)
    params = net.init(0)
    train = lambda: nk.simulate(net, params, X, Y, nk.GradientDescent(0.01, 3), lr_factors=net.lr_factors())
    wide = train()
    with nk.precision("float32"):
        narrow = train()
        assert "f64" not in str(jax.make_jaxpr(net)(narrow.params, X.astype(np.float32)))
    assert dtypes(wide.params) == {"float64"} and dtypes(narrow.params) == {"float32"}
    for one, other in zip(jax.tree.leaves(narrow.params), jax.tree.leaves(wide.params), strict=True):
        assert relative_error(one, other) < 1e-3
    assert 0 < np.abs(narrow.history["loss"] - wide.history["loss"]).max()


@pytest.mark.parametrize(
    "algorithm",
    few(
        (
            nk.SGD(0.05, 2, 20),
            nk.Adam(0.01, 20),
            nk.GradientFlow(0.5),
            nk.GradientFlow(),
            nk.GradientDescent(0.5),
        ),
        2,
    ),
    ids=repr,
)
def test_every_algorithm_trains_in_float32(algorithm):
    net = nk.MLP(3, (8,), 1, "erf")
    params, x = net.init(0), X[:, :, 0, 0][:, :3]
    options = {"key": 0} if isinstance(algorithm, nk.SGD) else {}
    wide = nk.simulate(net, params, x, Y, algorithm, **options)
    with nk.precision("float32"):
        narrow = nk.simulate(net, params, x, Y, algorithm, **options)
    assert wide.status.kind == narrow.status.kind and narrow.ok
    assert dtypes(wide.params) == {"float64"} and dtypes(narrow.params) == {"float32"}
    assert relative_error(net(narrow.params, x), np.asarray(net(wide.params, x))) < 1e-3


def test_a_program_of_one_precision_does_not_serve_another():
    """A jitted function that reads the working precision while it is traced."""
    net = network("Conv")
    seen = jax.jit(lambda key: net.init(key))
    with jax.enable_x64(True):
        for dtype in ("float64", "float32", "float64"):
            with nk.precision(dtype):
                assert dtypes(seen(jax.random.key(0))) == {dtype}


@pytest.mark.parametrize("name", few(("Conv", "AvgPool", "LocallyConnected"), 1))
def test_kernels_and_derivatives_in_turn_of_both_precisions(name):
    net = network(name)
    params = started(net)
    exact = K.EmpiricalNTK(net, params[0])(X), K.NTK(net)(X)
    for dtype in ("float32", "float64"):
        with nk.precision(dtype):
            for each in params:
                tangent = K.EmpiricalNTK(net, each)(X)
                with jax.enable_x64(True):  # without it JAX warns of its own identity matrix
                    jax.jacobian(lambda p: net(p, X))(each)
                assert relative_error(tangent, exact[0]) < 1e-4
            assert relative_error(K.NTK(net)(X), exact[1]) < 1e-4


@pytest.mark.parametrize("padding", few(("SAME", "VALID", "CIRCULAR"), 1))
@pytest.mark.parametrize(
    ("shape", "filter", "strides", "dilation"),
    (
        ((9, 2), (3,), (1,), (2,)),
        ((7, 8, 3), (2, 3), (2, 1), (1, 2)),
        ((7, 8, 3), (1, 1), (1, 1), (1, 1)),
        ((5, 6, 4, 2), (2, 3, 2), (1, 2, 1), (2, 1, 1)),
    ),
    ids=str,
)
def test_products_with_patches_are_convolutions(padding, shape, filter, strides, dilation, monkeypatch):
    layer = L.Conv(5, filter, strides, padding, dilation, 1.7, 0.3)
    with jax.enable_x64(True):
        params, x = layer.init(jax.random.key(0), shape), jnp.asarray(RNG.normal(size=(3, *shape)))
        fresh = lambda: lambda params, x: layer(params, x)  # no program of JAX's knows it
        evaluate = lambda: jax.vjp(fresh(), params, x)
        program = lambda: str(jax.make_jaxpr(fresh())(params, x))
        (patches, pull), text = evaluate(), program()
        monkeypatch.setattr(_conv, "_MOST_PATCHES", 0)  # too large to hold
        convolved, pull_back = evaluate()
        assert "conv_general" in program() and "conv_general" not in text
        found = (patches, pull(patches)), (convolved, pull_back(patches))
    for one, other in zip(*map(jax.tree.leaves, found), strict=True):
        assert relative_error(one, other) < 1e-12
