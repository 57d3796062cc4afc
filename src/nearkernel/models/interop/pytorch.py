"""PyTorch modules as models, and predicted weights back into PyTorch."""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from ..._base.extra import needing
from ..._base.types import Array, ArrayLike, PyTree, Unchecked
from ..._run.precision import in_float64, working_dtype
from ..base import AbstractModel, Params
from ..expansion.taylor import Taylor
from ..networks.scaled import Scaled
from .aten import Program, kinks, operation_names
from .torch_check import require_same, run_torch
from .torch_model import Entry, Input, TorchModel
from .torch_trace import trace
from .trainable import Parameter, Trainable, choose

if TYPE_CHECKING:
    from torch import Tensor, nn

    Example: TypeAlias = ArrayLike | Tensor | tuple | dict[str, object]


def _torch() -> ModuleType:
    with needing("nk.from_torch"):
        import torch
    return torch


@in_float64
def from_torch(
    module: "nn.Module",
    example: "Example",
    *,
    trainable: Trainable | None = None,
    output: str | int | Callable | None = None,
    check: bool = True,
) -> tuple[TorchModel, Params]:
    """Converts a PyTorch module into a JAX model and its parameters, with derivatives of every order.

    The module is traced by `torch.export` in evaluation mode: batch normalization uses its running statistics, dropout
    does nothing. All arithmetic is in float64 (in float32 within `nk.precision("float32")`), for any batch size.

    **Arguments:**

    - `module`: a `torch.nn.Module` in evaluation mode; it is not changed.
    - `example`: an example input, an array or tensor (n, *shape); for a module with several inputs a tuple or a dict
      of arrays, called as `module(*example)` or `module(**example)`.
    - `trainable`: which parameters to train. By default those that require gradients; or a glob pattern of names or
      submodules ("head", "*.norm*.weight"), a function `trainable(name, submodule)`, an `nk.LoRA`, or a list of
      these. All other parameters are frozen.
    - `output`: which output to use if the module returns several: a name, an index, or a function of the return
      value.
    - `check`: compare outputs and gradients with PyTorch at `example`, and raise `ValueError` for a custom backward,
      which the trace does not see.

    **Returns:** a `TorchModel`, and `params`, a dict of the trained arrays, by their names in the module. Tied
    parameters appear once, under their first name.

    ```python
    model, params = nk.from_torch(module, images[:2], trainable="head")
    ```
    """
    torch = _torch()
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"`module` must be a torch.nn.Module; got {type(module).__name__}.")
    _require_evaluation_mode(torch, module)
    arguments = _arguments(torch, module, example)
    wrapped = _wrapper(torch)(module, arguments.call, output)
    _require_rows(run_torch(torch, wrapped, arguments.leaves)[0], len(arguments.leaves[0]))
    program, constants, by_row = trace(wrapped, arguments.leaves)
    held = _Held(torch, module)
    program = Program(
        [held.first.get(name, name) for name in program.weights],
        program.inputs,
        program.steps,
        program.output,
    )
    used = {name: each for name, each in held.parameters.items() if name in program.weights}
    choice = choose(trainable, used)
    dtype = working_dtype()
    arrays = {name: _array(tensor, dtype) for name, tensor in held.tensors.items()}
    params = {name: arrays.pop(name) for name in choice.names}
    params |= {name: jnp.asarray(value, dtype) for name, value in choice.drawn.items()}
    model = TorchModel(
        frozen=arrays | {name: _array(tensor, dtype) for name, tensor in constants.items()},
        program=program,
        by_row=by_row,
        inputs=arguments.inputs,
        keyed=arguments.keyed,
        names=tuple(sorted(params)),
        adapters=choice.adapters,
        state=held.state,
        kinks=kinks(program, {*choice.names, *(adapter.name for adapter in choice.adapters)}),
    )
    if check:
        require_same(torch, wrapped, arguments.leaves, model, params)
    return model, params


def to_torch(model: AbstractModel, params: Params) -> "dict[str, Tensor]":
    """The `state_dict` of the PyTorch module that `model` came from, with `params` in place of its parameters.

    **Arguments:** `model`, made by `nk.from_torch`, or an `nk.expand` or `nk.Scaled` of one; `params`, its parameters,
    such as `nk.solve(...).params()` or `nk.simulate(...).params`. Adapters are merged into their matrices.

    ```python
    module.load_state_dict(nk.to_torch(model, solution.params()))
    ```
    """
    torch = _torch()
    while isinstance(model, Taylor | Scaled):
        if isinstance(model, Scaled) and model.centered and isinstance(params, dict) and "params" in params:
            params = params["params"]
        model = model.model
    if not isinstance(model, TorchModel):
        raise TypeError(f"`model` must come from nk.from_torch; got {type(model).__name__}.")
    weights = jax.tree.map(np.asarray, model.weights(params))
    return {
        entry.name: torch.tensor(weights[entry.weight]).to(getattr(torch, entry.dtype))
        for entry in model.state
    }


def torch_operations() -> tuple[str, ...]:
    """Names of the ATen operations that `nk.from_torch` supports; PyTorch decomposes most others into these."""
    return operation_names()


def _require_evaluation_mode(torch: ModuleType, module: "nn.Module") -> None:
    layers = torch.nn.modules
    for name, each in module.named_modules():
        if not each.training:
            continue
        if isinstance(each, layers.dropout._DropoutNd) and each.p > 0:
            trouble = "dropout draws random numbers"
        elif isinstance(each, layers.batchnorm._BatchNorm):
            trouble = "batch normalization mixes the rows of a batch"
        else:
            continue
        raise ValueError(
            f"`module` is in training mode, where {trouble} ({name or type(each).__name__!r}): "
            "call module.eval() first."
        )


class _Arguments(NamedTuple):
    """`leaves`, tensors of two rows; `inputs`, what they are; `keyed`, if by name; `call`, arguments from leaves."""

    leaves: "tuple[Tensor, ...]"
    inputs: tuple[Input, ...]
    keyed: bool
    call: Callable[["Sequence[Tensor]"], tuple[tuple, dict]]


def _arguments(torch: ModuleType, module: "nn.Module", example: Unchecked) -> _Arguments:
    keyed = hasattr(example, "keys")
    if keyed:
        given = {str(name): example[name] for name in example.keys()}
    else:
        several = isinstance(example, tuple | list)
        given = {str(place): value for place, value in enumerate(example if several else [example])}
    first = next((p for p in module.parameters() if p.is_floating_point()), None)
    like = torch.zeros(()) if first is None else first
    tensors = {name: value for name, value in given.items() if hasattr(value, "shape")}
    leaves = {name: _tensor(torch, value, like) for name, value in tensors.items()}
    if not leaves or any(leaf.ndim == 0 for leaf in leaves.values()):
        raise ValueError(
            f"`example` must be an array (n, ...), or a tuple or dict of arrays; got {type(example).__name__}."
        )
    if len({len(leaf) for leaf in leaves.values()}) > 1 or not all(map(len, leaves.values())):
        shapes = ", ".join(f"{name!r} {tuple(leaf.shape)}" for name, leaf in leaves.items())
        raise ValueError(f"`example` must have the same number of rows in all inputs; got {shapes}.")
    inputs = tuple(
        Input(
            name if keyed or len(given) > 1 else "x",
            tuple(leaf.shape[1:]),
            "float" if leaf.is_floating_point() else str(leaf.dtype).removeprefix("torch."),
        )
        for name, leaf in leaves.items()
    )
    names = list(leaves)

    def call(rows: "Sequence[Tensor]") -> tuple[tuple, dict]:
        values = given | dict(zip(names, rows, strict=True))
        return ((), values) if keyed else (tuple(values.values()), {})

    # A batch of one would be taken for a fixed size.
    two = tuple((leaf if len(leaf) > 1 else torch.cat([leaf, leaf]))[:2] for leaf in leaves.values())
    return _Arguments(two, inputs, keyed, call)


def _tensor(torch: ModuleType, value: Unchecked, like: "Tensor") -> "Tensor":
    """On the device of the module, and of its precision if it holds floating-point numbers."""
    if not isinstance(value, torch.Tensor):
        array = np.asarray(value)
        value = torch.from_numpy(array.copy())
    value = value.detach().to(like.device)
    return value.to(like.dtype) if value.is_floating_point() else value


def _wrapper(torch: Unchecked) -> "type[nn.Module]":
    class Wrapper(torch.nn.Module):
        """`module` as a function of arrays that returns one."""

        def __init__(self, module: PyTree, call: Callable, output: str | int | Callable | None):
            super().__init__()
            self.module = module
            self.call = call
            self.output = output
            self.train(module.training)

        def forward(self, *leaves: PyTree) -> PyTree:
            positional, named = self.call(leaves)
            return _selected(torch, self.module(*positional, **named), self.output)

        def train(self, mode: bool = True) -> Self:
            self.training = mode  # submodules keep their own
            return self

    return Wrapper


def _selected(torch: ModuleType, result: PyTree, output: str | int | Callable | None) -> "Tensor":
    if callable(output):
        result = output(result)
    elif output is not None:
        try:
            result = getattr(result, str(output)) if hasattr(result, str(output)) else result[output]
        except (KeyError, IndexError, TypeError, AttributeError):
            raise ValueError(
                f"`output` {output!r} is not among the outputs of `module`: {_listed(result)}."
            ) from None
    if isinstance(result, torch.Tensor):
        return result
    raise ValueError(
        f"`module` must return one tensor; it returns {_listed(result)}: choose one with `output=`."
    )


def _listed(result: object) -> str:
    if hasattr(result, "keys"):
        return "a dict of " + ", ".join(repr(name) for name in result.keys())
    if isinstance(result, tuple | list):
        return f"{len(result)} values, " + ", ".join(type(each).__name__ for each in result)
    return type(result).__name__


def _require_rows(result: PyTree, count: int) -> None:
    if result.ndim == 0 or len(result) != count or not result.is_floating_point():
        kind = "" if result.is_floating_point() else f" of {str(result.dtype).removeprefix('torch.')}"
        raise ValueError(
            f"`module` must return one row of floating-point numbers per input; for {count} inputs it returns "
            f"{tuple(result.shape)}{kind}."
        )


class _Held:
    """What a module holds: tensors by their first name, names of tied ones, parameters, entries of its state_dict."""

    def __init__(self, torch: ModuleType, module: "nn.Module"):
        self.first: dict[str, str] = {}
        self.tensors: dict[str, Tensor] = {}
        self.parameters: dict[str, Parameter] = {}
        names: dict[int, list[str]] = {}
        named = [
            *module.named_parameters(remove_duplicate=False),
            *module.named_buffers(remove_duplicate=False),
        ]
        for name, tensor in named:
            names.setdefault(id(tensor), []).append(name)
            self.first[name] = names[id(tensor)][0]
            self.tensors.setdefault(self.first[name], tensor)
        for name, tensor in self.tensors.items():
            if isinstance(tensor, torch.nn.Parameter) and tensor.is_floating_point():
                owner = module.get_submodule(name.rpartition(".")[0])
                embeds = isinstance(owner, torch.nn.Embedding | torch.nn.EmbeddingBag)
                self.parameters[name] = Parameter(
                    names=tuple(names[id(tensor)]),
                    owner=owner,
                    shape=tuple(tensor.shape),
                    requires_grad=tensor.requires_grad,
                    embeds=embeds,
                )
        self.state = tuple(
            Entry(name, self.first[name], str(tensor.dtype).removeprefix("torch."))
            for name, tensor in module.state_dict(keep_vars=True).items()
            if name in self.first
        )


def _array(tensor: "Tensor", dtype: DTypeLike) -> Array:
    """A tensor, or an array of NumPy, as a JAX array; floating-point numbers as `dtype`."""
    if isinstance(tensor, np.ndarray):
        array = tensor
    else:
        tensor = tensor.detach().cpu()
        array = (tensor.double() if tensor.is_floating_point() else tensor).numpy()
    # A copy: JAX may use the memory it is given, and PyTorch changes its tensors in place.
    return jnp.asarray(array.copy(), dtype if array.dtype.kind == "f" else None)
