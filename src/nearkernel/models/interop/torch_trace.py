"""A PyTorch module as a program: traced by torch.export, lowered to ATen operations, written down as plain data.

PyTorch's own lowering forgets where gradients are stopped (`detach`, `no_grad`). They are marked beforehand by an
operation that it does not know and therefore keeps. What the table of operations has is not decomposed further.
"""

import contextlib
import functools
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..._base.check import nearest
from ..._base.types import Array, PyTree
from .aten import Program, Ref, Step, known, operation_names

if TYPE_CHECKING:
    import torch

_IGNORED = {"dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking", "generator"}
_RECURRENT = ("gru.input", "lstm.input", "rnn_tanh.input", "rnn_relu.input")
_KINDS = (
    "functions of each entry, reductions, shapes and indexing, linear algebra, convolution, pooling, interpolation, "
    "normalization, softmax, attention, RNN, GRU and LSTM"
)


class Trace(NamedTuple):
    """`program`, whose weights have the names they have in the module; `constants`, arrays that belong to no module;
    `by_row`, whether it takes one row at a time."""

    program: Program
    constants: dict[str, Array]
    by_row: bool


def trace(module: "torch.nn.Module", leaves: "Sequence[torch.Tensor]") -> Trace:
    """The program of `module(*leaves)`, for every size of the first dimension of `leaves`.

    A module that fixes its batch size, for instance by `len(x)`, is traced for one row.
    """
    import torch

    with quiet():
        by_row = False
        try:
            exported = _exported(module, leaves, {0: torch.export.Dim.DYNAMIC})
        except Exception:
            by_row = True
            try:
                exported = _exported(module, [leaf[:1] for leaf in leaves], None)
            except Exception as error:
                raise ValueError(_cannot_export(error)) from error
        _mark_stopped_gradients(exported.graph_module)
        table = torch.export.default_decompositions()
        for overload in [each for each in table if _name(each) and known(_name(each))]:
            del table[overload]
        exported = exported.run_decompositions(table)
    return Trace(*_written(exported), by_row)


def _exported(
    module: "torch.nn.Module", leaves: "Sequence[torch.Tensor]", batch: dict[int, PyTree] | None
) -> "torch.export.ExportedProgram":
    import torch

    shapes = {"leaves": tuple(batch for _ in leaves)}
    return torch.export.export(module, tuple(leaves), dynamic_shapes=shapes, strict=False)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without PyTorch's warnings about its code, and without its fused attention, which has no second derivatives."""
    import torch

    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def _cannot_export(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = lines[0] if lines else type(error).__name__
    return (
        "`module` cannot be traced by torch.export: its `forward` must not branch on values of tensors. PyTorch says: "
        f"{reason[:300]}"
    )


@functools.cache
def _stop_gradient() -> Callable:
    """An operation that PyTorch keeps, because it knows nothing about it."""
    import torch

    torch.library.define("nearkernel::stop_gradient", "(Tensor x) -> Tensor")
    torch.library.impl("nearkernel::stop_gradient", "CompositeExplicitAutograd", lambda x: x.clone())
    torch.library.register_fake("nearkernel::stop_gradient", lambda x: torch.empty_like(x))
    return torch.ops.nearkernel.stop_gradient.default


def _mark_stopped_gradients(graph_module: "torch.fx.GraphModule") -> None:
    import torch

    stopping = (torch.ops.aten.detach.default, torch.ops.aten.detach_.default)
    for node in graph_module.graph.nodes:
        if node.op != "call_function":
            continue
        if node.target in stopping:
            node.target = _stop_gradient()
        elif node.target is torch.ops.higher_order.wrap_with_set_grad_enabled:
            inner = getattr(graph_module, node.args[1].target)
            _mark_stopped_gradients(inner)
            if not node.args[0]:
                _stop_outputs(inner)
    graph_module.recompile()


def _stop_outputs(graph_module: "torch.fx.GraphModule") -> None:
    """What leaves a `no_grad` block has no gradient."""
    graph = graph_module.graph
    end = graph.output_node()

    def stopped(node: PyTree) -> PyTree:
        if not _is_tensor(node.meta.get("val")):
            return node
        with graph.inserting_before(end):
            marked = graph.call_function(_stop_gradient(), (node,))
        marked.meta = dict(node.meta)
        return marked

    outputs: PyTree = end.args[0]
    end.args = (tuple(map(stopped, outputs)),)
    graph_module.recompile()


def _is_tensor(value: object) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _written(exported: "torch.export.ExportedProgram") -> tuple[Program, dict[str, "torch.Tensor"]]:
    """The exported graph as plain data, without what the output does not need."""
    specs = exported.graph_signature.input_specs
    outputs = exported.graph_signature.output_specs
    changed = [spec.target for spec in outputs if "MUTATION" in spec.kind.name]
    if changed:
        raise ValueError(
            f"`module` changes {_shown(changed[0])!r} when it is called, as batch normalization does in training mode: "
            "call module.eval() first, so that running statistics are used."
        )
    nodes = list(exported.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    result = next(
        node for node, spec in zip(nodes[-1].args[0], outputs, strict=True) if spec.kind.name == "USER_OUTPUT"
    )
    needed = _needed(result)
    weights, arrays, constants = [], [], {}
    for node, spec in zip(placeholders, specs, strict=True):
        if spec.kind.name == "USER_INPUT":
            arrays.append(node)
        elif node in needed:
            name = _shown(spec.target)
            weights.append((name, node))
            if spec.kind.name == "CONSTANT_TENSOR":
                constants[name] = exported.constants[spec.target].detach().cpu().numpy()
    values = {node: Ref(index) for index, node in enumerate([*(node for _, node in weights), *arrays])}
    steps: list[Step] = []
    for node in nodes:
        if node.op == "call_function" and node in needed:
            steps.append(_step(node, values))
            values[node] = Ref(len(values))
        elif node.op not in ("placeholder", "output") and node in needed:
            raise NotImplementedError(f"`module` uses {node.target} of torch.export, {_unsupported()}")
    return Program([name for name, _ in weights], len(arrays), steps, values[result]), constants


def _needed(result: PyTree) -> set:
    nodes, stack = set(), [result]
    while stack:
        node = stack.pop()
        if node not in nodes:
            nodes.add(node)
            stack.extend(node.all_input_nodes)
    return nodes


def _step(node: "torch.fx.Node", values: dict) -> Step:
    import torch

    name, place = _name(node.target), _place(node)
    if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) and not _switched_off(
        name, node
    ):
        raise ValueError(
            f"`module` draws random numbers ({name}{_at(node)}), as dropout does in training mode: "
            "call module.eval() first."
        )
    entry = known(name)
    if entry is None:
        raise NotImplementedError(
            f"`module` uses the operation {name or node.target}{_at(node)}, {_unsupported(name)}"
        )
    arguments, options = node.args, dict(node.kwargs)
    if entry.startswith("squeeze"):
        arguments = (arguments[0], _of_size_one(arguments[0], arguments[1]))
    options = {key: value for key, value in options.items() if key not in _IGNORED}
    write = lambda tree: _plain(tree, values)
    return Step(
        operation=entry,
        arguments=write(tuple(arguments)),
        options=write(options),
        kinds=_kinds(node.meta.get("val")),
        place=place,
    )


def _unsupported(name: str = "") -> str:
    names = operation_names()
    return (
        f"which nk.from_torch does not support.{nearest(name.partition('.')[0], names)} "
        f"Supported: {_KINDS}; print(*nk.models.torch_operations()) lists all {len(names)}."
    )


def _switched_off(name: str, node: "torch.fx.Node") -> bool:
    """Attention and recurrent networks are marked as random for the dropout that they may have."""
    if name in _RECURRENT:
        return not (node.args[5] and node.args[6])
    if name == "scaled_dot_product_attention.default":
        return not (node.args[4] if len(node.args) > 4 else node.kwargs.get("dropout_p", 0.0))
    return False


def _of_size_one(node: PyTree, dim: PyTree) -> list[int]:
    """The dimensions among `dim` that have size 1 for every batch: a batch of one must keep its dimension."""
    sizes = node.meta["val"].shape
    dims = dim if isinstance(dim, list | tuple) else [dim]
    return [d for d in dims if isinstance(sizes[d], int) and sizes[d] == 1]


def _name(target: object) -> str:
    """ "add.Tensor" of ATen, "stop_gradient", "python.mul" on sizes, "sym_max"; "" for anything else."""
    import torch

    if isinstance(target, torch._ops.OpOverload):
        space, _, name = target._schema.name.partition("::")
        if space == "nearkernel":
            return name
        return f"{name}.{target._overloadname}" if space == "aten" else ""
    label = getattr(target, "__name__", "")
    if label == "getitem" or label.startswith("sym_"):
        return label
    return f"python.{label}" if getattr(target, "__module__", "") in ("_operator", "math", "builtins") else ""


def _plain(tree: PyTree, values: dict) -> PyTree:
    import torch

    if isinstance(tree, torch.fx.Node):
        return values[tree]
    if isinstance(tree, list | tuple):
        return (
            type(tree)(_plain(each, values) for each in tree)
            if type(tree) in (list, tuple)
            else [_plain(each, values) for each in tree]
        )
    if isinstance(tree, dict):
        return {key: _plain(each, values) for key, each in tree.items()}
    return None if isinstance(tree, torch.dtype | torch.device | torch.layout) else tree


def _kinds(value: PyTree) -> PyTree:
    import torch

    if isinstance(value, torch.Tensor):
        if value.dtype.is_floating_point:
            return "float"
        return "complex" if value.dtype.is_complex else str(value.dtype).removeprefix("torch.")
    return tuple(_kinds(each) for each in value) if isinstance(value, list | tuple) else None


def _shown(target: str) -> str:
    """A name as the user's module has it: what is traced holds it as `module`."""
    return target.removeprefix("module.")


def _place(node: "torch.fx.Node") -> str:
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return _shown(str(stack[-1][0]).removeprefix("module")).lstrip(".") if stack else ""


def _at(node: "torch.fx.Node") -> str:
    """Where an operation comes from: the submodule, and the line."""
    lines = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    place = _place(node)
    where = f" in submodule {place!r}" if place else ""
    if lines:
        file = re.split(r"[\\/]", lines[-1][0])[-1]
        where += f" ({file}, line {lines[-1][1]})"
    return where
