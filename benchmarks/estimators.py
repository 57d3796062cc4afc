"""Estimators of the correction of order 1/width for many points: error against seconds of each, prototypes included.

    .venv/bin/python benchmarks/estimators.py [--quick]

| estimator | what is averaged |
|---|---|
| library | one neuron with a probe z and its mirror image, as `nk.forecast(order=1)` does, by 16 scrambles |
| fewer, more scrambles | the same neurons in longer or shorter Sobol sequences |
| float64 | the same numbers in float64 |
| split | the mean alone: neurons at the fixed residual -y, and what a probe adds to them, apart |
| dense | tensors of four points by sampled neurons, one matrix product each; then the exact law |

Errors are rms over new points, over the rms of the correction: `said` by the scrambles, and `real` against a reference
of many more neurons and another seed. `work` is CPU seconds times the square of the error of the mean in % that is
said: what an error of 1 % takes if errors fall as the root of the number of neurons.
"""

import time
import types
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
import scipy.stats
from _common import report, table

import nearkernel as nk
from nearkernel import FiniteWidth
from nearkernel._run.executor import run
from nearkernel.forecasts.order_one.neuron_average import (
    Draw,
    NeuronJob,
    Points,
    _cast,
    _clock,
    _panels,
    root,
)
from nearkernel.forecasts.order_one.one_neuron import _derivatives, _Neurons, _Run, _sizes
from nearkernel.forecasts.order_one.time_responses import responses
from nearkernel.forecasts.order_one.trained_moments import start_of, trained_law
from nearkernel.statistics.averages.base import ORDERS, Averages
from nearkernel.statistics.width.recursion import (
    DDNTK_TENSORS,
    DNTK_TENSORS,
    KERNELS,
    NTK_TENSORS,
    first_tensors,
    next_tensors,
)

TRAIN, NEW, WIDTH, C, BIAS = 32, 8, 512, 1.5, 0.15
FIELDS = dict(
    V="four_point", G="kernel_correction", H="ntk_correction", D="ntk_output_d", F="ntk_output_f", A="ntk_variance_a",
    B="ntk_variance_b", P="dntk_p", Q="dntk_q", R="ddntk_r", S="ddntk_s", T="ddntk_t", U="ddntk_u",
)  # fmt: skip

rng = np.random.default_rng(7)
X, X_NEW = rng.normal(size=(TRAIN, 5)), rng.normal(size=(NEW, 5))
Y = np.sin(X.sum(axis=1))
NET = nk.MLP(5, (WIDTH,), 1, "tanh", weight_var=C, bias_var=BIAS)


class Found(NamedTuple):
    """Times the width, at new points, and standard errors; None where an estimator does not tell."""

    mean: np.ndarray
    var: np.ndarray | None
    mean_error: np.ndarray
    var_error: np.ndarray | None


def library(neurons: int, **options) -> Found:
    """One call of the verb."""
    chosen = FiniteWidth(exact=0, tolerance=1e-9, most=neurons, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # all neurons are used
        law: Any = nk.forecast(NET, X, Y, None, X_NEW, theory=chosen)
    cov, error = np.diagonal(law.cov_terms[1]), np.diagonal(law.error.cov)
    return Found(*(WIDTH * part for part in (law.terms[1], cov, law.error.mean, error)))


def one_sign(activation, last, at_end, net, neuron, panels, u, xi, z):
    """`outcome` of a probe without its mirror image, times `z`: 0 for the fixed residual alone."""
    s = _derivatives(activation, u @ neuron.u_root)
    xi, weights = _sizes(xi, last)
    own = _Neurons(last, net, neuron, s, xi @ neuron.xi_root)
    n = net.ntk.shape[1]
    probe = (0.0 * z @ net.z_root)[None, None]
    e0 = (probe[..., :n] - net.targets) @ net.modes
    e1 = (own.xi * s[0][:, None])[..., :n] @ net.modes
    steps = _Run(own, 0.0 * probe, e0, e1, at_end)
    return steps.outcome(steps.through(panels), probe, 2.0 * weights)


def both_signs(*arguments):
    """Mean at the probe and its mirror image, less that at the fixed residual."""
    from nearkernel.forecasts.order_one.one_neuron import outcome

    found, fixed = outcome(*arguments), one_sign(*arguments)
    return found._replace(mean=found.mean - fixed.mean)


def split(neurons: int, probes: int, scrambles: int = 16, seed: int = 0) -> Found:
    """`neurons` at the fixed residual, and `probes` neurons for what a probe adds."""
    points = Points(NET, X, Y[:, None], X_NEW, FiniteWidth())
    clock = _clock(points.lam, 0.0, np.inf)
    layer, filter_ = points.neurons[0], points.filter(0.0, np.inf)
    constants = jax.tree.map(
        lambda array: _cast("float32", array),
        (points._background(clock, filter_), layer.neuron, _panels(clock)),
    )
    roots = (layer.neuron.u_root, layer.neuron.xi_root, root(points.kernel))
    draw = Draw([len(r) for r in roots], [np.sum(np.square(r), axis=1) for r in roots], 1)
    means, errors, block = [], [], 128
    for program, count in ((one_sign, neurons), (both_signs, probes)):
        job = NeuronJob(program, (layer.activation, True, True), constants, draw, "float32")
        each = max(1, count // scrambles // block)
        engines = [
            scipy.stats.qmc.Sobol(sum(draw.sizes), rng=np.random.default_rng([seed, len(means), k]))
            for k in range(scrambles)
        ]
        blocks = (engine.random(block) for engine in engines for _ in range(each))
        found = np.array([part[0] for part in run(job, blocks)]).reshape(scrambles, each, -1).sum(axis=1)
        found = found / (each * block)
        means.append(found.mean(axis=0))
        errors.append(found.std(axis=0, ddof=1) / np.sqrt(scrambles))
    shift = points.by_mean_kernel(0.0, np.inf, -Y[:, None]).ravel()
    return Found(means[0] + means[1] + shift, None, np.hypot(*errors), None)


def sampled_averages(points: Points, neurons: int, seed: int) -> Averages:
    """<s s s s> of one scramble, by matrix products of neurons with pairs of points; of pairs exactly."""
    kernel, size = points.layers.kernels[0], len(points.kernel)
    factor, pairs = root(kernel).astype(np.float32), points.layers.pairs[0]
    engine = scipy.stats.qmc.Sobol(len(factor), rng=np.random.default_rng(seed))
    totals = dict.fromkeys(ORDERS, 0.0)
    activation = NET.activation_of(1)

    @jax.jit
    def products(normal):
        s = _derivatives(activation, normal @ factor)
        two = lambda i, j: (s[i][:, :, None] * s[j][:, None]).reshape(len(normal), -1)
        return [two(i, j).T @ two(k, m) for i, j, k, m in ORDERS]

    for _ in range(neurons // 512):
        normal = jnp.asarray(scipy.special.ndtri(engine.random(512)), jnp.float32)
        for order, part in zip(ORDERS, products(normal), strict=True):
            totals[order] = totals[order] + np.asarray(part, np.float64)
    fours = {order: (total / neurons).reshape((size,) * 4) for order, total in totals.items()}
    known = np.array(
        [[pairs.pair(i, j) if i + j <= 6 else np.zeros_like(kernel) for j in range(6)] for i in range(6)]
    )
    return Averages(known, fours)


def dense(neurons: int, scrambles: int = 4, seed: int = 0) -> Found:
    points = Points(NET, X, Y[:, None], X_NEW, FiniteWidth())
    names = (*KERNELS, *NTK_TENSORS, *DNTK_TENSORS, *DDNTK_TENSORS)
    first, theta = first_tensors(TRAIN + NEW, names), points.layers.ntks[0]
    response = responses(points.lam, 0.0, np.inf)
    found = []
    for k in range(scrambles):
        averages = sampled_averages(points, neurons // scrambles, 100 * seed + k)
        tensors = next_tensors(first, theta, C, 0.0, averages)
        fields = {FIELDS[name]: tensor for name, tensor in tensors.items()}
        start = start_of(types.SimpleNamespace(kernel=points.kernel, ntk=points.ntk, **fields), 1)
        law = trained_law(start.rotated(points.vectors), response, points.vectors.T @ Y)
        parts = law.corrections.values()
        found.append((sum(p[0] for p in parts), np.diagonal(sum(p[1] for p in parts))))
    mean, var = (np.array(part) for part in zip(*found, strict=True))
    errors = [part.std(axis=0, ddof=1) / np.sqrt(scrambles) for part in (mean, var)]
    return Found(mean.mean(axis=0), var.mean(axis=0), *errors)


def share(error: np.ndarray | None, size: np.ndarray) -> float:
    return np.nan if error is None else 100 * float(np.sqrt(np.mean(error**2) / np.mean(size**2)))


def row(name: str, neurons: str, function: Callable[[], Found], reference: Found) -> dict[str, str]:
    """One call, which compiles what it needs."""
    with jax.enable_x64(True):
        start, cpu = time.perf_counter(), time.process_time()
        found = function()
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    assert reference.var is not None
    var = None if found.var is None else found.var - reference.var
    real = share(found.mean - reference.mean, reference.mean), share(var, reference.var)
    said = share(found.mean_error, reference.mean), share(found.var_error, reference.var)
    line = {
        "estimator": name,
        "neurons": neurons,
        "seconds (CPU)": f"{seconds:.1f} ({cpu:.1f})",
        "mean: said, real": f"{said[0]:.1f} %, {real[0]:.1f} %",
        "variance: said, real": "" if var is None else f"{said[1]:.1f} %, {real[1]:.1f} %",
        "work": f"{cpu * said[0] ** 2:.0f}",
    }
    print(line, flush=True)
    return line


def measured(chosen) -> str:
    many = 2**13 if chosen.quick else 2**15
    with jax.enable_x64(True):
        reference = library(8 * many, seed=1)
    rows: list[tuple[str, str, Callable[[], Found]]] = [
        ("library", f"{many}", lambda: library(many)),
        ("4 scrambles", f"{many}", lambda: library(many, scrambles=4)),
        ("64 scrambles", f"{many}", lambda: library(many, scrambles=64)),
        ("float64", f"{many}", lambda: library(many, dtype="float64")),
        ("split", f"{2 * many} + {many // 4}", lambda: split(2 * many, many // 4)),
        ("split", f"{many} + {many // 2}", lambda: split(many, many // 2)),
        ("dense", f"{many // 2}", lambda: dense(many // 2)),
    ]
    lines = [row(*each, reference) for each in rows]
    said = [share(reference.mean_error, reference.mean), share(reference.var_error, reference.var)]  # type: ignore[arg-type]
    about = f"tanh, one hidden layer, {TRAIN} + {NEW} points; the reference ({8 * many} neurons) is known to"
    return f"{table(lines)}\n\n{about} {said[0]:.1f} % (mean) and {said[1]:.1f} % (variance)."


if __name__ == "__main__":
    quick = {"action": "store_true", "help": "a quarter of the neurons"}
    report(__doc__, "estimators", measured, quick=quick)
