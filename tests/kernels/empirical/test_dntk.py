"""Meta-kernels: how tangent kernels move, entry by entry and contracted."""

import jax
import numpy as np
import pytest

import nearkernel as nk
from support.helpers import compiled, points
from support.references.quadratic_problems import F, cubic, problem, psi_array, quadratic, third_array

P = problem(4, 0, new=3)
W = 0.4 * np.random.default_rng(1).normal(size=(1, F))
EPS = 0.3


def tensors(x, degree=2):
    """Effective features and meta-features at W."""
    psi, third = EPS * psi_array(x), EPS**2 * third_array(x) * (degree == 3)
    features = x[:, :F] + psi @ W[0] + 0.5 * np.einsum("njkl,k,l->nj", third, W[0], W[0])
    return features, psi + third @ W[0], third


def test_the_meta_kernel_is_its_formula():
    f, psi, _ = tensors(P.x)
    f_new, psi_new, _ = tensors(P.x_new)
    dntk = nk.theory.EmpiricalDNTK(quadratic(EPS), W)
    np.testing.assert_allclose(dntk(P.x), np.einsum("ajk,bj,ck->abc", psi, f, f), atol=1e-12)
    found = dntk(P.x_new, P.x, P.x_new)
    np.testing.assert_allclose(found, np.einsum("ajk,bj,ck->abc", psi_new, f, f_new), atol=1e-12)
    np.testing.assert_allclose(dntk(P.x_new, P.x), np.einsum("ajk,bj,ck->abc", psi_new, f, f_new), atol=1e-12)


def test_the_meta_kernel_is_symmetric_in_its_last_two_indices_only():
    mu = nk.theory.EmpiricalDNTK(quadratic(EPS), W)(P.x)
    np.testing.assert_allclose(mu, mu.swapaxes(1, 2), atol=1e-13)
    assert np.abs(mu - mu.swapaxes(0, 1)).max() > 0.01


def test_it_can_be_contracted_without_being_formed():
    dntk = nk.theory.EmpiricalDNTK(quadratic(EPS), W)
    rng = np.random.default_rng(2)
    p1, p2 = rng.normal(size=4), rng.normal(size=(3, 1))
    found = dntk.contract(P.x_new, P.x, p1, P.x_new, p2)
    assert found.shape == (3, 1)
    expected = np.einsum("abc,b,c->a", dntk(P.x_new, P.x, P.x_new), p1, p2[:, 0])
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-12)


def test_second_tensors_are_their_formulas():
    f, psi, third = tensors(P.x, 3)
    ddntk = nk.theory.EmpiricalDDNTK(cubic(EPS), W)
    nu, kappa = ddntk(P.x)
    np.testing.assert_allclose(nu, np.einsum("ajkl,bj,ck,dl->abcd", third, f, f, f), atol=1e-12)
    bent = np.einsum("ajk,ck->acj", psi, f)
    np.testing.assert_allclose(kappa, np.einsum("acj,bdj->abcd", bent, bent), atol=1e-12)
    p = np.random.default_rng(3).normal(size=4)
    np.testing.assert_allclose(
        ddntk.contract(P.x, P.x, p)[:, 0], np.einsum("abcd,b,c,d->a", nu, p, p, p), atol=1e-12
    )


def test_an_expansion_has_the_meta_kernel_of_its_model():
    tay = nk.expand(quadratic(EPS), np.zeros((1, F)), degree=2)
    np.testing.assert_allclose(
        nk.theory.EmpiricalDNTK(tay, W)(P.x), nk.theory.EmpiricalDNTK(quadratic(EPS), W)(P.x), atol=1e-12
    )


def test_the_kernel_of_a_network_moves_by_its_meta_kernel():
    """With several outputs: d/ds of the kernel along -grad is -(mu_12a + mu_21a) e_a."""
    net = nk.MLP(3, (4,), out_dim=2, activation="tanh")
    params, x = net.init(jax.random.key(0)), points(3, 3)
    e = np.random.default_rng(4).normal(size=(3, 2))
    params = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), params)
    step = compiled(lambda p: jax.vjp(lambda q: net(q, x), p)[1](-e)[0])(params)
    shift = lambda s: jax.tree.map(lambda p, d: p + s * d, params, step)
    kernel = lambda s: nk.kernels.EmpiricalNTK(net, shift(s), method="jacobian").full(x).reshape(6, 6)
    measured = (kernel(1e-4) - kernel(-1e-4)) / 2e-4
    drift = nk.theory.EmpiricalDNTK(net, params)(x) @ e.reshape(-1)
    np.testing.assert_allclose(measured, -(drift + drift.T), atol=1e-6)
    half = nk.kernels.EmpiricalNTK(net, params).half_drift(step, x, x).reshape(6, 6)
    np.testing.assert_allclose(half, -drift, atol=1e-10)


def test_bad_input_gets_one_line():
    dntk = nk.theory.EmpiricalDNTK(quadratic(EPS), W)
    with pytest.raises(TypeError, match="`model` must be a nearkernel model; got function: wrap it with"):
        nk.theory.EmpiricalDNTK(lambda p, x: x, W)
    with pytest.raises(ValueError, match=r"`p1` must have one weight per output, 4; got \(3,\)"):
        dntk.contract(P.x, P.x, np.ones(3), P.x, np.ones(4))
    with pytest.raises(ValueError, match=r"`x0` must have shape \(n, d\); got \(16,\)"):
        dntk(P.x[0])


def test_too_large_a_tensor_is_refused(monkeypatch):
    monkeypatch.setattr("nearkernel._run.memory.available_bytes", lambda: 500)
    dntk = nk.theory.EmpiricalDNTK(quadratic(EPS), W)
    monkeypatch.setattr(
        "nearkernel.kernels.empirical.dntk._Meta._features", lambda self, x, name: np.zeros((len(x), F))
    )
    with pytest.raises(MemoryError, match=r"the meta-kernel needs 512 bytes.*contract it instead"):
        dntk(P.x)
