"""What is typed after `nearkernel kernel build|solve|plan`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

from .. import options as shared
from ..declared import argument, option

_ARRAYS = "An .npz file with `x` (n, d){more}."
_MACHINES = "Number of machines that the workers share. [default: one core per worker]"
_WORKERS = "Number of single-core processes that build the matrix; 0: this machine."

Store = Annotated[Path, argument("The matrix, a folder such as K.zarr.")]
Kernel = Annotated[Literal["ntk", "nngp", "rbf", "laplace"], option("Which kernel.")]
Dtype = Annotated[Literal["float64", "float32"], option("Data type of the entries.")]


@dataclasses.dataclass(frozen=True)
class Build:
    data: Annotated[Path, argument(_ARRAYS.format(more=""))]
    kernel: Kernel
    out: Annotated[Path, option("Folder for the matrix, e.g. K.zarr.", shared.OUTPUT)]
    length: Annotated[float | None, option("rbf and laplace: their length scale.")] = None
    depth: shared.Depth = 3
    activation: shared.Activation = "relu"
    weight_var: shared.WeightVar = None
    bias_var: shared.BiasVar = 0.0
    scheduler: Annotated[str | None, option("Address of a Dask scheduler, e.g. tcp://10.0.0.1:8786.")] = None
    memory: Annotated[str, option("Memory limit for blocks under construction, e.g. 4GiB.")] = "2GiB"
    dtype: Dtype = "float64"


@dataclasses.dataclass(frozen=True)
class Solve:
    path: Store
    data: Annotated[Path, argument(_ARRAYS.format(more=", `y` (n,) or (n, out), and optionally `x_new`"))]
    ridge: Annotated[float, option("The ridge in (K + ridge) a = y.", min=0)]
    tol: Annotated[float, option("Relative residual at which to stop.")] = 1e-6
    max_iterations: Annotated[int, option("Maximum number of iterations.", min=1)] = 1000
    memory: Annotated[str | None, option("Memory limit, e.g. 4GiB. [default: half of the free memory]")] = (
        None
    )


@dataclasses.dataclass(frozen=True)
class Plan:
    n: Annotated[int, option("Number of points.", min=1, max=10**15)]
    d: Annotated[int, option("Number of features per point.", min=1, max=10**5)]
    kernel: Kernel
    workers: Annotated[int, option(_WORKERS, min=0, max=10**6)] = 0
    machines: Annotated[int | None, option(_MACHINES, min=1, max=10**6)] = None
    iterations: Annotated[int, option("Assumed number of solver iterations.", min=1)] = 30
    centers: Annotated[int, option("Number of centers in a pass over the data.", min=1, max=10**7)] = 2000
    length: Annotated[float | None, option("rbf and laplace: their length scale. [default: sqrt(d)]")] = None
    depth: shared.Depth = 3
    activation: shared.Activation = "relu"
    dtype: Dtype = "float64"
    memory: Annotated[
        str | None, option("Memory of one machine, e.g. 64GiB. [default: the free memory here]")
    ] = None
    entries: Annotated[
        float | None, option("Kernel entries per second of one core. [default: measured here]")
    ] = None
    disk: Annotated[
        str | None, option("Speed of the disk or shared folder, e.g. 2GB/s. [default: measured here]")
    ] = None
    network: Annotated[str | None, option("Speed of a worker's network. [default: 1.25GB/s]")] = None
