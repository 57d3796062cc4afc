"""Tangent kernels of any model without the gradients of its weights, against Jacobians."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from support.cases import few

RNG = np.random.default_rng(5)
draw = lambda *shape: RNG.normal(size=shape)


def dense(p, x):
    h = jnp.tanh(x @ p["first"] + p["bias"])
    return jnp.tanh(h @ p["second"].T) @ p["last"]


def several_axes(p, x):
    heads = jnp.einsum("nsd,dhk->nshk", x, p["split"])
    scores = jax.nn.softmax(jnp.einsum("nshk,nthk->nhst", heads, heads), axis=-1)
    mixed = jnp.einsum("nhst,nthk->nshk", scores, heads)
    return jnp.einsum("nshk,hko->no", mixed, p["join"])


def weights_first(p, x):
    return (p["last"] @ jnp.tanh(p["first"] @ x.T)).T


def used_twice(p, x):
    h = jnp.tanh(x @ p["both"])
    return jnp.sin(h @ p["both"]) @ p["last"]


def tied(p, x):
    h = jnp.tanh(x @ p["embed"])
    return h @ p["embed"].T


@jax.jit
def block(w, h):
    return jnp.tanh(h @ w)


def one_program_twice(p, x):
    return block(p["second"], block(p["first"], x)) @ p["last"]


def in_a_loop(p, x):
    steps = lambda h, _: (jnp.tanh(h @ p["loop"]), None)
    return jax.lax.scan(steps, x, None, length=3)[0] @ p["last"]


def returned(p, x):
    return x @ p["first"] + p["offset"]


def squared(p, x):
    return x @ (p["square"] @ p["square"])


def filters(strides, padding, dilation, groups, names):
    def model(p, x):
        z = jax.lax.conv_general_dilated(
            x,
            p["filter"],
            strides,
            padding,
            rhs_dilation=dilation,
            dimension_numbers=names,
            feature_group_count=groups,
        )
        return jnp.tanh(z).reshape(len(x), -1) @ p["last"]

    return model


NHWC, NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")
CASES = {
    "dense": (dense, dict(first=draw(4, 7), bias=draw(7), second=draw(6, 7), last=draw(6, 3)), (4,)),
    "several axes": (several_axes, dict(split=draw(4, 2, 3), join=draw(2, 3, 2)), (5, 4)),
    "weights first": (weights_first, dict(first=draw(6, 4), last=draw(2, 6)), (4,)),
    "used twice": (used_twice, dict(both=draw(4, 4), last=draw(4, 2)), (4,)),
    "tied": (tied, dict(embed=draw(4, 6)), (4,)),
    "one program twice": (
        one_program_twice,
        dict(first=draw(4, 4), second=draw(4, 4), last=draw(4, 2)),
        (4,),
    ),
    "in a loop": (in_a_loop, dict(loop=draw(4, 4), last=draw(4, 2)), (4,)),
    "returned": (returned, dict(first=draw(4, 2), offset=draw(2)), (4,)),
    "squared": (squared, dict(square=draw(4, 4)), (4,)),
    "filters": (
        filters((2, 1), "SAME", (1, 2), 1, NHWC),
        dict(filter=draw(3, 2, 2, 5), last=draw(60, 2)),
        (5, 4, 2),
    ),
    "padded filters": (
        filters((1, 2), [(2, 0), (1, 1)], (2, 1), 1, NCHW),
        dict(filter=draw(4, 3, 2, 3), last=draw(60, 1)),
        (3, 5, 5),
    ),
    "grouped filters": (
        filters((1, 1), "VALID", (1, 1), 2, NHWC),
        dict(filter=draw(2, 2, 1, 4), last=draw(36, 2)),
        (4, 4, 2),
    ),
}


def kernels(name, factors=None, methods=("layers", "jacobian")):
    """Of one network by two methods, and a function that draws inputs, each flattened into a row."""
    function, params, shape = CASES[name]
    model = nk.from_function(lambda p, x: function(p, x.reshape(-1, *shape)))
    found = [nk.kernels.EmpiricalNTK(model, params, factors, method) for method in methods]
    return found, lambda count: draw(count, int(np.prod(shape)))


@pytest.mark.parametrize("name", few(CASES, 4))
def test_no_gradient_is_needed(name):
    (tapped, plain), inputs = kernels(name)
    x, other = inputs(5), inputs(3)
    for found, expected in (
        (tapped(x), plain(x)),
        (tapped.full(x), plain.full(x)),
        (tapped(x, other), plain(x, other)),
        (tapped.full(x, other), plain.full(x, other)),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["dense", "filters"])
def test_factors_count(name):
    """One for an array, or one for each of its entries."""
    params = CASES[name][1]
    first = next(iter(params))
    factors = {key: draw(*leaf.shape) ** 2 if key == first else 0.3 for key, leaf in params.items()}
    (auto, plain), inputs = kernels(name, factors, ("auto", "jacobian"))
    x = inputs(4)
    np.testing.assert_allclose(auto.full(x), plain.full(x), rtol=1e-12, atol=1e-12)


def test_wide_networks_keep_little():
    """What is kept of an input is of the size of its activations, not of the weights."""
    wide = dict(first=draw(4, 300), bias=draw(300), second=draw(400, 300), last=draw(400, 3))
    model = nk.from_function(dense)
    kept = []
    with jax.enable_x64(True):
        for method in ("layers", "jacobian"):
            kernel = nk.kernels.EmpiricalNTK(model, wide, method=method)
            kept.append(sum(part.size for part in kernel._side_parts(draw(1, 4))))
    assert kept[1] > 3 * 120_000 and kept[0] < kept[1] / 60


def test_blocks_of_rows_leave_no_seam(monkeypatch):
    (tapped, plain), inputs = kernels("dense")
    x, other = inputs(7), inputs(5)
    expected = [plain(x), plain.full(x), plain.full(x, other)]
    monkeypatch.setattr("nearkernel.kernels.empirical.ntk.BUDGET", 2000)
    for found, value in zip((tapped(x), tapped.full(x), tapped.full(x, other)), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-12)
