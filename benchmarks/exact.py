"""Measures exact theory: deep linear networks against mpmath and integrals, spectra, entropy numbers and widths.

python benchmarks/exact.py            # prints; about a minute
python benchmarks/exact.py --write    # and refreshes README.md
"""

import time

import jax
import mpmath
import numpy as np
from _common import report, table

import nearkernel as nk
from nearkernel.statistics.exact.deep_linear import (
    Interpolant,
    interpolation,
    log_evidence,
    most_probable_var,
)
from nearkernel.statistics.exact.deep_linear_posterior import posterior_of
from nearkernel.statistics.special.gamma_product import log_gamma_product


def seconds(function, repeats: int = 1):
    """Of the best call; with one repeat that of the first."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def row(what: str, value: float, most: float | None = None, least: float | None = None) -> dict[str, str]:
    reached = (most is None or value <= most) and (least is None or value >= least)
    asked = f"<= {most:g}" if most is not None else f">= {least:g}" if least is not None else ""
    return {
        "what": what,
        "measured": f"{value:.3g}",
        "asked": asked,
        "reached": ("yes" if reached else "NO") * bool(asked),
    }


def large() -> list[dict[str, str]]:
    """L = 100, n = 1000, P = 500, n_0 = 1000."""
    rng = np.random.default_rng(0)
    x, y, widths = rng.normal(size=(500, 1000)), rng.normal(size=500), (1000,) * 100
    first, _ = seconds(lambda: nk.theory.deep_linear_log_evidence(x, y, widths))
    later, _ = seconds(lambda: nk.theory.deep_linear_log_evidence(x, y, widths), 5)
    best, _ = seconds(lambda: nk.theory.best_prior_var(x, y, widths))
    full, law = seconds(lambda: nk.theory.deep_linear_posterior(x, y, widths))
    quantile, _ = seconds(lambda: law.quantile(x[:100], [0.05, 0.95]))
    data = interpolation(x, y)
    alone, _ = seconds(lambda: log_evidence(data, widths, 1.0), 5)
    shapes = np.array([250.0] + [500.0] * 100)
    return [
        row("evidence, L = 100, n = 1000, P = 500: seconds, first call", first, 1),
        row("... later calls", later, 1),
        row("... without the factorization of X", alone),
        row("best prior variance of the same: seconds", best, 1),
        row("posterior of the same: seconds", full, 1),
        row("its quantiles at 100 points: seconds", quantile, 1),
        row("error estimate of ln G there", float(log_gamma_product(np.array(620.0), shapes).error), 1e-8),
        *monotone(),
    ]


def monotone() -> list[dict[str, str]]:
    """At nu0 = 1 neither depth nor narrow layers help; a prior variance off the best one never does."""
    theta = np.zeros(1000)
    theta[0] = np.sqrt(0.5)
    data = Interpolant(theta, np.eye(1000, 500), 0.0)
    depths = [log_evidence(data, (1000,) * n, 1.0) for n in range(0, 101, 5)]
    widths = [log_evidence(data, (n,) * 100, 1.0) for n in (1, 10, 50, 100, 300, 1000, 10**4, 10**6)]
    variances = [log_evidence(data, (1000,) * 100, v) for v in np.geomspace(1.01, 1e3, 20)]
    wrong = sum(np.sum(np.diff(v) >= 0) for v in (depths, variances)) + np.sum(np.diff(widths) <= 0)
    wrong += sum(not np.isfinite(v).all() for v in (depths, widths, variances))
    return [row("steps of 49 models that are not finite or not monotone", float(wrong), 0)]


def against_mpmath() -> list[dict[str, str]]:
    cases = [(z, a) for a in ([0.5, 1.0], [1.0, 1.5, 4.0], [2.0, 2.5, 0.5, 7.0]) for z in (-12.0, 0.0, 5.0)]
    ours, found = seconds(lambda: [float(log_gamma_product(np.array(z), a).value) for z, a in cases], 3)

    def theirs():
        return [
            float(mpmath.log(mpmath.meijerg([[], []], [a, []], mpmath.exp(z))) - sum(map(mpmath.loggamma, a)))
            for z, a in cases
        ]

    with mpmath.workdps(30):
        took, expected = seconds(theirs)
    return [
        row(
            "ln G against mpmath in 30 digits, 9 small cases: largest error",
            np.max(np.abs(np.subtract(found, expected))),
            1e-8,
        ),
        row("mpmath's seconds over ours", took / ours),
    ]


def against_integrals() -> list[dict[str, str]]:
    """One hidden layer of 1, 2, 3 neurons: the density integrated over each weight of the second layer by itself."""
    rng = np.random.default_rng(1)
    x, y, worst = rng.normal(size=(2, 3)), np.array([0.7, -0.4]), 0.0
    u = np.arange(-3.8, 2.4, 0.08)
    w = np.exp(u - np.exp(-u))
    weight = 0.16 * w * (1 + np.exp(-u)) * np.exp(-w * w / 2) / np.sqrt(2 * np.pi)
    for points in (1, 2):
        gram = x[:points] @ x[:points].T
        t = y[:points] @ np.linalg.solve(gram, y[:points])
        for width in (1, 2, 3):
            scale = sum(np.meshgrid(*[w**2] * width, indexing="ij")) * 1.3**2 / (3 * width)
            weights = np.prod(np.meshgrid(*[weight] * width, indexing="ij"), axis=0)
            normal = np.exp(-t / (2 * scale)) / np.sqrt((2 * np.pi * scale) ** points * np.linalg.det(gram))
            exact = np.exp(nk.theory.deep_linear_log_evidence(x[:points], y[:points], (width,), 1.3))
            worst = max(worst, abs(np.sum(weights * normal) / exact - 1))
    return [row("evidence against numerical integration, tiny networks: relative error", worst, 1e-8)]


def posterior_draws() -> list[dict[str, str]]:
    rng = np.random.default_rng(2)
    law = nk.theory.deep_linear_posterior(rng.normal(size=(4, 9)), rng.normal(size=4), (5, 3, 6), 1.2)
    new, size, q = rng.normal(size=(5, 9)), 400_000, np.array([0.01, 0.1, 0.5, 0.9, 0.99])
    below = np.mean((law.sample(size, jax.random.key(0)) @ new.T)[:, :, None] <= law.quantile(new, q), axis=0)
    worst = np.abs((below - q) / np.sqrt(q * (1 - q) / size)).max()
    return [row("posterior quantiles against draws, 25 of them: worst, in standard errors", worst, 4)]


def limit_theorem() -> list[dict[str, str]]:
    """Infinite effective depth with the plain prior against the best data-dependent prior: n_0 E[S], nu0 = 0.4."""
    rows = []
    for points, lam in ((200, 30), (2000, 30), (2000, 1000)):
        theta = np.zeros(2 * points)
        theta[0] = np.sqrt(0.2)
        data, width = Interpolant(theta, np.eye(2 * points, points), 0.0), 100 * points
        best = most_probable_var(data, (width,) * 3)
        plain = posterior_of(data, (width,) * (lam * 100), 1.0).scale
        chosen = posterior_of(data, (width,) * 3, best).scale
        rows.append(
            row(
                f"limit theorem, P = {points}, lambda = {lam}: plain / best prior scale - 1",
                plain / chosen - 1,
            )
        )
    return rows


def spectra() -> list[dict[str, str]]:
    law = nk.theory.marchenko_pastur(0.5)
    took, values = seconds(lambda: law.sample(2000, jax.random.key(0)))
    distance = law.compare(values).distance
    n, d = 400, 600
    x = np.random.default_rng(3).normal(size=(n, d))
    x *= np.sqrt(d) / np.linalg.norm(x, axis=1, keepdims=True)
    rows = [
        row("Marchenko-Pastur, N = 2000: distance of a drawn matrix", distance),
        row("its eigenvalues: seconds", took),
    ]
    for width in (100, 1000):
        net = nk.MLP(d, (width,), 1, "relu", weight_var=2.0)
        bulk = nk.theory.kernel_bulk(nk.kernels.NTK(net), n, d)
        values = np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(net, net.init(jax.random.key(1)))(x))
        rows.append(
            row(
                f"relu NTK, width {width}, 400 inputs: distance from the bulk",
                bulk.compare(values[:-1]).distance,
            )
        )
    values = np.linalg.eigvalsh(nk.kernels.NTK(net)(x))
    rows.append(row("relu NTK, infinite width: distance from the bulk", bulk.compare(values[:-1]).distance))
    return rows


def entropy() -> list[dict[str, str]]:
    axes = 1 / np.arange(1, 1001)
    took, found = seconds(lambda: nk.theory.ellipsoid_entropy(axes, np.arange(0, 200)))
    rng = np.random.default_rng(4)
    functions = (
        rng.normal(size=(600, 400))
        @ np.linalg.cholesky(nk.kernels.Laplace(0.3)(np.linspace(0, 1, 400)[:, None])).T
    )
    pairs = [nk.theory.stable_pair(functions, n, jax.random.key(0)) for n in range(1, 8)]
    share = max(pair.error / (1.5 * pair.radius) for pair in pairs)
    constant = max(max(pair.encoder_constant, pair.decoder_constant) for pair in pairs)
    return [
        row(
            "entropy numbers of an ellipsoid, axes 1/i, up to 200 bits: upper / lower",
            np.max(found.upper / found.lower),
        ),
        row("... seconds", took),
        row("stable pair, 600 functions, n = 1 to 7: error over (lower bound on) 3 eps_n", share, 1),
        row("largest Lipschitz constant of its maps", constant, 2),
    ]


def measured(chosen) -> str:
    parts = (large, against_mpmath, against_integrals, posterior_draws, limit_theorem, spectra, entropy)
    return table([one for part in parts for one in part()])


if __name__ == "__main__":
    report(__doc__, "exact", measured, ("jax", "numpy", "scipy", "mpmath"))
