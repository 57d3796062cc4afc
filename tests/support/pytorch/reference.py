"""What PyTorch itself says of a module: outputs, gradients and Hessian-vector products in float64, beside ours."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.models.interop.torch_trace import quiet

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'nearkernel[torch]'")


def tensors(x):
    """Arrays as tensors; dicts and tuples of them likewise."""
    if isinstance(x, dict):
        return {name: tensors(each) for name, each in x.items()}
    return tuple(map(tensors, x)) if isinstance(x, tuple) else torch.as_tensor(np.asarray(x))


def called(module, x, output=None):
    """(n, out) as the module gives it."""
    x = tensors(x)
    # Fused attention has no second derivatives.
    with quiet(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        z = module(**x) if isinstance(x, dict) else module(*x) if isinstance(x, tuple) else module(x)
    if callable(output):
        z = output(z)
    elif output is not None:
        z = getattr(z, output) if isinstance(output, str) else z[output]
    return z.reshape(len(z), -1)


def of_torch(module, names, x, weights, direction, output=None, derivatives=2):
    """z, the gradient of sum(weights * z), and its derivative along `direction`: by double backward."""
    by_name = dict(module.named_parameters(remove_duplicate=False))
    trained = [by_name[name].requires_grad_() for name in names]
    z = called(module, x, output)
    total = (z * torch.as_tensor(weights)).sum()
    first = torch.autograd.grad(total, trained, create_graph=derivatives > 1, allow_unused=True)
    first = [torch.zeros_like(p) if g is None else g for g, p in zip(first, trained, strict=True)]
    slope = sum((g * torch.as_tensor(direction[name])).sum() for g, name in zip(first, names, strict=True))
    second = [None] * len(names)
    if derivatives > 1 and slope.requires_grad:
        second = torch.autograd.grad(slope, trained, allow_unused=True)
    second = [torch.zeros_like(p) if h is None else h for h, p in zip(second, trained, strict=True)]
    as_dict = lambda found: {name: g.detach().numpy() for name, g in zip(names, found, strict=True)}
    return z.detach().numpy(), as_dict(first), as_dict(second)


def of_jax(model, params, x, weights, direction):
    with jax.enable_x64(True):

        @jax.jit
        def run(model, params, x, direction):
            total = lambda p: (jnp.sum(weights * model(p, x)), model(p, x))
            slope = lambda p: jax.grad(total, has_aux=True)(p)
            (first, z), (second, _) = jax.jvp(slope, (params,), (direction,))
            return z, first, second

        return jax.tree.map(np.asarray, run(model, params, x, direction))


def apart(found, expected):
    """The largest difference over the largest entry, of arrays or dicts of them."""
    found, expected = jax.tree.leaves(found), jax.tree.leaves(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape, f"{one.shape} is not {other.shape}"
    largest = max(np.abs(other).max(initial=0.0) for other in expected)
    difference = max(np.abs(one - other).max(initial=0.0) for one, other in zip(found, expected, strict=True))
    assert np.isfinite(difference)
    return float(difference / max(largest, 1e-12))


def compared(module, example, x, output=None, seed=0, derivatives=2, **options):
    """Errors of outputs, gradient and Hessian-vector product at `x`, a batch of another size than `example`."""
    model, params = nk.from_torch(module, example, output=output, **options)
    reference = copy.deepcopy(module).double()
    if not derivatives:
        return [apart(np.asarray(model(params, x)), called(reference, x, output).detach().numpy())]
    rng = np.random.default_rng(seed)
    direction = {name: rng.normal(size=np.shape(leaf)) for name, leaf in params.items()}
    weights = rng.normal(size=np.shape(model(params, x)))
    expected = of_torch(reference, list(params), x, weights, direction, output, derivatives)
    found = of_jax(model, params, x, weights, direction)
    return [apart(one, other) for one, other in zip(found, expected, strict=True)][: derivatives + 1]
