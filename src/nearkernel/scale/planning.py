"""How long a kernel machine on n points would take, before it is begun: counts of what is done over rates.

Only what the library does is counted. Workers share the building of a matrix; iterations and the pass over centers
run on one machine, on all its cores.
"""

import dataclasses
import math

from .._base.check import positive, refuse_unused, whole
from .._base.result import Result
from .._run.memory import available_bytes, parse_bytes
from .blocks import MOST_BLOCKS
from .pivoted import bytes_for
from .rates import Rates
from .store import COPIES

_BLOCK = 2000  # rows
_DAY = 86400.0
_CACHED = 0.2  # of the free memory: what the system writes later
_CROWDED = 0.9  # of the speed of cores that more workers share, measured
_FACTORS = 5.0  # m^3 operations of the factors of both matrices of centers, measured


@dataclasses.dataclass(frozen=True, repr=False)
class Cost(Result):
    """The cost of one method: `seconds`, `memory` in bytes per process, `disk` in bytes, and `limit`, its slowest part.

    `possible` is False if it needs more memory than is available, or more blocks than a store can hold.
    """

    seconds: float
    memory: float
    limit: str
    disk: float = 0.0
    possible: bool = True


@dataclasses.dataclass(frozen=True, repr=False)
class PlanResult(Result):
    """The cost of each method that trains a kernel machine on `n` points of `d` features.

    **Fields:** `build`, writing the matrix to disk with `workers`; `direct`, one factorization; `product`, one product
    with a matrix that is recomputed; `solve`, `iterations` such products and the preconditioner; `read`, one product
    with the matrix on disk; `centers`, one pass over the data with `m` centers; `solver`, the name of the recommended
    solver, and `reason`, why it is recommended.
    """

    n: int
    d: int
    workers: int
    iterations: int
    m: int
    build: Cost
    direct: Cost
    product: Cost
    solve: Cost
    read: Cost
    centers: Cost
    solver: str
    reason: str


def plan(
    n: int,
    d: int,
    rates: Rates,
    *,
    workers: int = 0,
    machines: int | None = None,
    iterations: int = 30,
    centers: int = 2000,
    dtype_bytes: int = 8,
    memory: "str | int | None" = None,
    patience: float = _DAY,
) -> PlanResult:
    """Predicts how long `nk.scale.build`, conjugate gradients and a pass over centers take for `n` points.

    **Arguments:**

    - `n`, `d`: number of points and features.
    - `rates`: the rates of the kernel on one core, from `nk.scale.measure_rates` or built by hand.
    - `workers`: number of single-core processes that build the matrix; 0 for this machine alone, on all its cores.
    - `machines`: number of machines that the workers share; by default enough for one core per worker.
    - `iterations`: number of iterations of the solver. It depends on the kernel's eigenvalues and the ridge, and is not
      predicted.
    - `centers`: number of centers.
    - `dtype_bytes`: bytes per entry, 8 or 4.
    - `memory`: memory of one machine, such as "64GiB"; by default the free memory of this one.
    - `patience`: seconds beyond which an exact solution is not recommended; one day by default.
    """
    if not isinstance(rates, Rates):
        raise TypeError(f"`rates` must be nk.results.Rates; got {type(rates).__name__}.")
    n, d, workers = whole(n, "n", 1, 10**15), whole(d, "d", 1, 10**9), whole(workers, "workers", 0, 10**6)
    if not workers:
        refuse_unused("without `workers`", machines=machines)
    machines = _machines(workers, rates) if machines is None else whole(machines, "machines", 1, 10**6)
    iterations, m = whole(iterations, "iterations", 1), min(whole(centers, "centers", 1, 10**7), n)
    if dtype_bytes not in (4, 8):
        raise ValueError(f"`dtype_bytes` must be 4 or 8; got {dtype_bytes!r}.")
    free = available_bytes() if memory is None else parse_bytes(memory)
    positive(patience, "patience")
    costs = {
        "build": _build(n, d, rates, workers, machines, dtype_bytes, free),
        "direct": _direct(n, d, rates, free),
        "product": _product(n, d, rates, free),
        "read": _read(n, d, rates, dtype_bytes, free),
        "centers": _centers(n, d, m, rates, free),
    }
    costs["solve"] = _solve(n, d, rates, iterations, costs["product"], dtype_bytes, free)
    solver, reason = _chosen(costs, iterations, patience)
    return PlanResult(
        n=n, d=d, workers=workers, iterations=iterations, m=m, solver=solver, reason=reason, **costs
    )


def _machines(workers: int, rates: Rates) -> int:
    return max(1, math.ceil(workers / rates.cores))


def _inputs(n: int, d: int) -> float:
    """Bytes of the inputs and of the unit vectors that are made from them."""
    return 2.0 * 8 * n * d


def _longest(parts: dict[str, float]) -> tuple[float, str]:
    limit = max(parts, key=lambda name: parts[name])
    return parts[limit], limit


def _build(n: int, d: int, rates: Rates, workers: int, machines: int, size: int, free: int) -> Cost:
    """Workers compute and write; one scheduler hands blocks out; one disk takes them."""
    block = min(n, _BLOCK)
    side = math.ceil(n / block)
    count = side * (side + 1) / 2
    taken = count * block**2 * size
    hands = min(workers, machines * rates.cores) if workers else rates.cores
    # With few blocks, the last ones leave hands idle.
    rounds = math.ceil(count / hands) if count < 10 * hands else count / hands
    parts = {
        "computing": rounds * block**2 / (rates.build * (_CROWDED if workers > hands else 1.0)),
        "the disk": max(taken - _CACHED * free, 0.0) / rates.disk,
    }
    if workers:
        start = 8.0 * n * d / min(rates.network, rates.disk / min(workers, machines))  # all read the inputs
        parts["computing"] += start
        parts["the scheduler"] = count * rates.task
        parts["the network"] = taken / (rates.network * machines)
    seconds, limit = _longest(parts)
    held = _inputs(n, d) + COPIES * block**2 * size * (1 if workers else rates.cores)
    beside = math.ceil(workers / machines) if workers else 1
    fits = held * beside <= free
    return Cost(seconds, held, limit, disk=taken, possible=fits and count <= MOST_BLOCKS)


def _direct(n: int, d: int, rates: Rates, free: int) -> Cost:
    entries, factor = 0.5 * n**2 / rates.entries, n**3 / 3 / rates.flops
    held = 2.0 * 8 * n**2 + _inputs(n, d)
    seconds = (entries + factor) / rates.cores
    return Cost(
        seconds, held, "the factorization" if factor > entries else "computing", possible=held <= free
    )


def _product(n: int, d: int, rates: Rates, free: int) -> Cost:
    held = _inputs(n, d) + 6.0 * 8 * n
    return Cost(0.5 * n**2 / (rates.product * rates.cores), held, "computing", possible=held <= free)


def _solve(n: int, d: int, rates: Rates, iterations: int, product: Cost, size: int, free: int) -> Cost:
    """Conjugate gradients: products, the last one to check; a preconditioner of a few sqrt(n) columns."""
    rank = min(n, 3000, math.isqrt(2 * n * (d + 25)))
    while rank > 1 and bytes_for(n, rank, size) > 0.5 * free:
        rank = int(0.95 * rank)
    held = product.memory + bytes_for(n, rank, size)
    prepared = (1.5 * n * rank / rates.entries + 4.0 * n * rank**2 / rates.flops) / rates.cores
    seconds = (iterations + 1) * product.seconds + prepared
    return Cost(seconds, held, "computing", possible=held <= free)


def _read(n: int, d: int, rates: Rates, size: int, free: int) -> Cost:
    taken = 0.5 * size * n**2
    seconds, limit = _longest({"the disk": taken / rates.disk, "computing": n**2 / rates.flops / rates.cores})
    held = _inputs(n, d) + COPIES * _BLOCK**2 * size * rates.cores
    return Cost(seconds, held, limit, disk=taken, possible=held <= free)


def _centers(n: int, d: int, m: int, rates: Rates, free: int) -> Cost:
    """One pass: n m entries, n m^2 operations of sums; the data may stay on disk."""
    parts = {
        "computing": n * m / rates.entries / rates.cores,
        "sums of squares": n * float(m) ** 2 / rates.flops / rates.cores,
        "factors": _FACTORS * m**3 / rates.flops / rates.cores,
    }
    reading = 8.0 * n * (d + 1) / rates.disk
    limit = max(parts, key=lambda name: parts[name])
    held = 6.0 * 8 * m**2 + 16.0 * m * _BLOCK
    if reading > sum(parts.values()):
        return Cost(reading, held, "the disk", possible=held <= free)
    return Cost(sum(parts.values()), held, limit, possible=held <= free)


def _chosen(costs: dict[str, Cost], iterations: int, patience: float) -> tuple[str, str]:
    """The exact solver that is done first, if one is possible in time; else few centers."""
    exact = {"direct": costs["direct"], "cg": costs["solve"]}
    able = {name: cost for name, cost in exact.items() if cost.possible and cost.seconds <= patience}
    if able:
        name = min(able, key=lambda each: able[each].seconds)
        words = {
            "direct": "the matrix fits in memory, and one factorization serves all times and algorithms",
            "cg": f"exact in {iterations} iterations, without storing the matrix",
        }
        return name, words[name]
    if not any(cost.possible for cost in exact.values()):
        return "nystrom", "no exact method fits in memory; the data are read once and may stay on disk"
    return (
        "nystrom",
        "an exact solution would take longer than `patience`; one pass over the data does not",
    )
