"""Whether a converted module is the module: its outputs, its gradients, and rows that do not see each other."""

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from ..._base.types import Array, PyTree
from .aten import dtype_of
from .torch_model import TorchModel
from .torch_trace import quiet

if TYPE_CHECKING:
    from torch import Tensor, nn

_TOLERANCE = 1e-4  # a wrong operation is wrong by more; a module that rounds to float32 inside is not
_LOOSE = 1e-2  # for a module that does not run in float64
_ROUNDING = 1e-9


def require_same(
    torch: ModuleType,
    wrapped: "nn.Module",
    leaves: "Sequence[Tensor]",
    model: TorchModel,
    params: dict[str, Array],
) -> None:
    """Compares outputs and gradients of `model` with those of the module at `leaves`."""
    rows = [_with_another_row(torch, leaf) for leaf in leaves]
    expected, state, tolerance = _by_torch(torch, wrapped, rows)
    _require_plain_backward(torch, expected)
    arrays = [
        np.asarray(row.cpu().double() if each.kind == "float" else row.cpu(), dtype_of(each.kind, np.float64))
        for row, each in zip(rows, model.inputs, strict=True)
    ]
    z = np.asarray(model.compiled(params, arrays))
    _require_near(z, _numbers(expected).reshape(z.shape), "outputs", tolerance)
    weights = np.random.default_rng(0).normal(size=z.shape)
    ours, theirs = (
        np.concatenate([np.ravel(each[name]) for name in model.names])
        for each in (
            _gradient(model, params, arrays, weights),
            _gradient_by_torch(torch, expected, state, model, params, weights),
        )
    )
    smooth = np.isfinite(ours) & np.isfinite(theirs)  # zeros may lie on a point without a derivative
    rounded = ours.dtype == np.float32
    _require_near(ours[smooth], theirs[smooth], "gradients", _LOOSE if rounded else tolerance)
    twice = [np.concatenate([array[1:], array[1:]]) for array in arrays]
    if _apart(np.asarray(model.compiled(params, twice))[1], z[1]) > _ROUNDING:
        raise ValueError(
            "`module` mixes the rows of a batch: an output changes with the other inputs. Each row must depend on its "
            "own input only (batch_first=True for sequences; no batch normalization without running statistics)."
        )


def _require_near(found: np.ndarray, expected: np.ndarray, what: str, tolerance: float) -> None:
    apart = _apart(found, expected)
    if not apart <= tolerance:
        raise RuntimeError(
            f"the JAX model of `module` differs from PyTorch at `example`: {what} by {apart:.1e} of the largest. "
            "Please report it; `check=False` skips this check."
        )


@jax.jit(compiler_options={"xla_backend_optimization_level": 0})  # it runs once
def _gradient(model: TorchModel, params: dict[str, Array], arrays: list, weights: Array) -> dict[str, Array]:
    """Of sum(weights * outputs), by the trained parameters."""
    return jax.grad(lambda p: jnp.sum(weights * model.evaluate(p, arrays)))(params)


def _gradient_by_torch(
    torch: ModuleType,
    output: "Tensor",
    state: dict[str, Array],
    model: TorchModel,
    params: dict[str, Array],
    weights: Array,
) -> dict[str, Array]:
    """The same by PyTorch, by the weights of the module; what adapters add to these is followed by JAX."""
    of_weights, back = jax.vjp(model.weights, params)
    total = (output.reshape(weights.shape) * torch.as_tensor(weights).to(output)).sum()
    held = {name: state[f"module.{name}"] for name in of_weights if f"module.{name}" in state}
    held = {name: tensor for name, tensor in held.items() if tensor.requires_grad and total.requires_grad}
    slopes = torch.autograd.grad(total, list(held.values()), allow_unused=True) if held else ()
    by_name = {name: slope for name, slope in zip(held, slopes, strict=True) if slope is not None}
    cotangents = {
        name: jnp.asarray(_numbers(by_name[name]), array.dtype) if name in by_name else _none(array)
        for name, array in of_weights.items()
    }
    return back(cotangents)[0]


def _none(array: jax.Array) -> Array:
    """A cotangent of zeros; integers have no other."""
    floating = jnp.issubdtype(array.dtype, jnp.floating)
    return jnp.zeros_like(array) if floating else np.zeros(array.shape, jax.dtypes.float0)


def _numbers(tensor: "Tensor") -> np.ndarray:
    return tensor.detach().cpu().double().numpy()


def _apart(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max(initial=0.0) / max(np.abs(expected).max(initial=0.0), 1e-30))


def _with_another_row(torch: ModuleType, leaf: "Tensor") -> "Tensor":
    """Two rows that differ, also where the example has but one."""
    first, second = leaf[0], leaf[1]
    if leaf.is_floating_point():
        second = 0.9 * second + 0.1 * second.flip(tuple(range(second.ndim)))
    return torch.stack([first, second.flip(-1) if second.ndim else second])


def _by_torch(
    torch: ModuleType, wrapped: "nn.Module", rows: list
) -> tuple["Tensor", dict[str, Array], float]:
    """Outputs with their graph, in float64 where the module runs in it, the weights, and how accurate they are."""
    try:
        return *run_torch(torch, wrapped, rows, torch.float64), _TOLERANCE
    except RuntimeError:  # a type that is fixed in the module's code does not fit
        return *run_torch(torch, wrapped, rows), _LOOSE


def run_torch(
    torch: ModuleType,
    wrapped: "nn.Module",
    rows: "Sequence[Tensor]",
    dtype: PyTree = None,
) -> tuple["Tensor", dict[str, Array]]:
    """Outputs of the module with copies of its weights and buffers, so that it is not changed; these copies."""

    def cast(tensor: "Tensor") -> "Tensor":
        copy = tensor.detach().clone()
        return copy.to(dtype) if dtype is not None and copy.is_floating_point() else copy

    state = {name: cast(tensor) for name, tensor in wrapped.named_buffers()}
    for name, tensor in wrapped.named_parameters():
        state[name] = cast(tensor).requires_grad_(tensor.is_floating_point())
    with quiet(), torch.enable_grad():
        return torch.func.functional_call(wrapped, state, tuple(map(cast, rows))), state


def _require_plain_backward(torch: ModuleType, output: "Tensor") -> None:
    """Refuses functions that define their own backward: tracing sees only what they compute."""
    seen, stack = set(), [output.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        stack.extend(following for following, _ in node.next_functions)
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            name = type(node).__name__.removesuffix("Backward")
            raise ValueError(
                f"`module` uses {name}, a torch.autograd.Function with a custom backward, which nk.from_torch "
                "cannot follow; `check=False` uses the derivative of its forward instead."
            )
