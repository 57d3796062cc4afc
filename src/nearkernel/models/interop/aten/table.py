"""The table of ATen operations: the JAX function that computes each.

A name is that of an operation ("exp": all its overloads) or of one overload ("max.dim"). Functions take the arguments
of the ATen schema, by the same names, without dtypes, layouts and devices: a program casts each result to the type that
PyTorch gives it. To add an operation, write its function in the file of its kind and decorate it with `operation`.
"""

from collections.abc import Callable

OPERATIONS: dict[str, Callable] = {}
KINKED: set[str] = set()  # functions whose derivative jumps


def operation(*names: str, kinked: bool = False) -> Callable:
    """Enters a function under `names`; `kinked` if its derivative jumps somewhere."""

    def enter(function: Callable) -> Callable:
        for name in names:
            assert name not in OPERATIONS, f"{name} is entered twice"
            OPERATIONS[name] = function
        KINKED.update(names if kinked else ())
        return function

    return enter


def enter_all(functions: dict[str, Callable], kinked: bool = False) -> None:
    """Enters functions that are one line each."""
    for name, function in functions.items():
        operation(name, kinked=kinked)(function)


def known(name: str) -> str | None:
    """The entry that serves the operation `name`, such as "add.Tensor"; None if there is none."""
    base = name.partition(".")[0]
    return name if name in OPERATIONS else base if base in OPERATIONS else None


def operation_names() -> tuple[str, ...]:
    """Operations of ATen in the table, without what only programs use."""
    inner = ("python.", "sym_", "stop_gradient", "getitem")
    return tuple(sorted(name for name in OPERATIONS if not name.startswith(inner)))
