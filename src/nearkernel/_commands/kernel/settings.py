"""From what was typed, or kept in a store, to a kernel; and the arrays of a data file."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

import nearkernel as nk

from ..._base.npz import npz_arrays
from ..options import MOST_LAYERS, default_weight_var
from .options import Build, Plan

NETWORKS = {"ntk": nk.kernels.NTK, "nngp": nk.kernels.NNGP}
LENGTHS = {"rbf": nk.kernels.RBF, "laplace": nk.kernels.Laplace}


def kernel_settings(
    options: Build | Plan, length: float | None, weight_var: float | None = None, bias_var: float = 0.0
) -> dict[str, Any]:
    """What a store keeps, so that its kernel can be made again."""
    kernel, activation = options.kernel, options.activation
    if kernel in LENGTHS:
        if length is None:
            raise ValueError(f"--kernel {kernel} needs --length, its length scale.")
        if not (length > 0 and math.isfinite(length)):
            raise ValueError(f"--length {length}: give a finite number above 0.")
        return {"kernel": kernel, "length": length}
    if length is not None:
        raise ValueError(f"--length belongs to --kernel rbf or laplace, not {kernel}.")
    variance = default_weight_var(activation) if weight_var is None else weight_var
    for name, value in (("weight-var", variance), ("bias-var", bias_var)):
        if not math.isfinite(value):
            raise ValueError(f"--{name} {value}: give a finite number.")
    return {
        "kernel": kernel, "depth": options.depth, "activation": activation, "weight_var": variance,
        "bias_var": bias_var,
    }  # fmt: skip


def make_kernel(settings: dict[str, Any] | None, dim: int) -> nk.kernels.AbstractKernel:
    """The kernel of `settings` for inputs of `dim` features; those of a stranger's store are checked as if typed."""
    if settings is None:
        raise ValueError(
            "this matrix was made by a Python program, which defines its kernel: solve it there."
        )
    name = str(settings.get("kernel"))
    if name in LENGTHS and settings.keys() == {"kernel", "length"} and _number(settings["length"], above=0):
        return LENGTHS[name](settings["length"])
    names = {"kernel", "depth", "activation", "weight_var", "bias_var"}
    if not (
        name in NETWORKS
        and settings.keys() == names
        and type(settings["depth"]) is int
        and 1 <= settings["depth"] <= MOST_LAYERS
        and isinstance(settings["activation"], str)
        and _number(settings["weight_var"], above=0)
        and _number(settings["bias_var"])
    ):
        raise ValueError(
            f"this matrix has settings that no `nearkernel kernel build` writes: {_short(settings)}."
        )
    net = nk.MLP(
        dim, (1,) * settings["depth"], 1, settings["activation"],
        weight_var=settings["weight_var"], bias_var=settings["bias_var"],
    )  # fmt: skip
    return NETWORKS[name](net)


def _number(value: Any, above: float | None = None) -> bool:
    """Whether it is a finite number of at least 0, or `above` that."""
    fine = type(value) in (int, float) and 0 <= value <= sys.float_info.max
    return fine and (above is None or value > above)


def _short(settings: dict[str, object]) -> str:
    text = str(settings)
    return text if len(text) <= 200 else f"{text[:197]}..."


def arrays_of(data: Path, *needed: str) -> dict[str, np.ndarray]:
    """The arrays of an npz file as they are, checked only for their names."""
    return npz_arrays(data, str(data), dict.fromkeys(needed, ""), ("x_new",))
