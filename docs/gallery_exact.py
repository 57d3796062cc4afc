"""Figures of exact theory: deep linear networks, spectra, entropy; `gallery.py` runs them."""

import jax
import matplotlib.pyplot as plt
import numpy as np
import scipy.stats
from drawing import BLUE, GRAY, GREEN, ORANGE, PURPLE, SKY, axes_row, figure

import nearkernel as nk


def _data(points: int, nu0: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Orthogonal inputs in twice as many dimensions, and targets with n_0 |theta_*|^2 / P = nu0."""
    y = np.random.default_rng(seed).normal(size=points)
    x = np.sqrt(2 * points) * np.eye(points, 2 * points)
    return x, y * np.sqrt(nu0 * points) / np.linalg.norm(y)


@figure
def deep_linear() -> plt.Figure:
    """Evidence over depth, and the scale of predictions between that of the prior and that of the data."""
    drawn, axes = axes_row(2, 3.5)
    depths = np.unique(np.round(np.geomspace(1, 2000, 25)).astype(int))
    for nu0, color in ((0.4, BLUE), (1.0, GREEN), (2.5, ORANGE)):
        x, y = _data(100, nu0)
        flat = nk.theory.deep_linear_log_evidence(x, y, ())
        gains = [nk.theory.deep_linear_log_evidence(x, y, (400,) * n) - flat for n in depths]
        best = int(depths[np.argmax(gains)]) if max(gains) > 0 else 0
        print(f"  nu0 = {nu0}: gain at most {max(0.0, *gains):.1f} nats, at depth {best}")
        axes[0].plot(depths, gains, "o-", ms=3, lw=1.3, color=color, label=f"ν₀ = {nu0:g}")
    axes[0].axhline(0, color=GRAY, lw=1)
    axes[0].set(xscale="log", xlabel="hidden layers", ylabel="ln Z - ln Z of depth 0", ylim=(-10, 32))
    axes[0].set_title("100 points, width 400, plain prior")
    axes[0].legend()
    lambdas = np.geomspace(0.05, 100, 60)
    for nu0, color in ((0.4, BLUE), (2.5, ORANGE)):
        limit = [nk.theory.limiting_scale(nu0, 10**3, (10**6,) * round(1e3 * lam)) for lam in lambdas]
        axes[1].plot(lambdas, limit, color=color, lw=1.4, label=f"limit, ν₀ = {nu0:g}")
        axes[1].axhline(nu0, color=color, ls="--", lw=1)
        for points, mark in ((20, "^"), (200, "o")):
            x, y = _data(points, nu0)
            wide = 50 * points
            for lam in (0.1, 0.3, 1, 3, 10, 30):
                layers = (wide,) * round(lam * wide / points)
                scale = 2 * points * nk.theory.deep_linear_posterior(x, y, layers).scale
                axes[1].plot(lam, scale, mark, color=color, ms=4.5)
            var = nk.theory.best_prior_var(x, y, (wide,) * 5)
            best = 2 * points * nk.theory.deep_linear_posterior(x, y, (wide,) * 5, var).scale
            print(
                f"  nu0 = {nu0}, P = {points}: plain prior at lambda = 30: {scale:.3f}; best prior: {best:.3f}"
            )
    axes[1].set(xscale="log", yscale="log", xlabel="effective depth λ = P Σ 1/n", ylabel="n₀ E[S]")
    axes[1].set_yticks([0.4, 1, 2.5], ["0.4", "1", "2.5"])
    axes[1].minorticks_off()
    axes[1].plot([], [], "^", color=GRAY, ms=4.5, label="exact, 20 points")
    axes[1].plot([], [], "o", color=GRAY, ms=4.5, label="exact, 200 points")
    axes[1].set_title("depth finds the best prior (dashed)")
    axes[1].legend(fontsize=8.5)
    return drawn


@figure
def products() -> plt.Figure:
    """Lengths of products of Gaussian matrices, drawn and exact; depth and width do not commute."""
    drawn, axes = axes_row(2, 3.4)
    sizes, draws = (8, 6, 8, 6), 20_000
    rng = np.random.default_rng(0)
    product = np.ones((draws, 1, 1))
    for n_out, n_in in zip((1, *sizes[:0:-1]), sizes[::-1], strict=True):
        product = product @ (rng.normal(size=(draws, n_out, n_in)) / np.sqrt(n_in))
    log = np.log(np.sum(product**2, axis=(1, 2)))
    law = nk.theory.gaussian_product(sizes)
    test = scipy.stats.kstest(log, law.cdf)
    normal = scipy.stats.norm(law.normal[0], np.sqrt(law.normal[1]))
    grid = np.linspace(-6, 3, 300)
    away = np.abs(law.cdf(grid) - normal.cdf(grid)).max()
    print(
        f"  {draws} drawn products: KS distance {test.statistic:.4f}, p = {test.pvalue:.2f}; "
        f"normal law off by {away:.3f}"
    )
    axes[0].hist(log, 60, density=True, color=SKY, alpha=0.6, label="drawn matrices")
    axes[0].plot(grid, law.pdf(grid), color=BLUE, label="exact")
    axes[0].plot(grid, normal.pdf(grid), "--", color=ORANGE, label="log-normal limit")
    axes[0].set(xlabel="ln |θ|²", title="widths 8, 6, 8, 6", xlim=(-6, 3))
    axes[0].legend()
    depths = np.unique(np.round(np.geomspace(1, 3000, 14)).astype(int))
    for width, color in ((10, ORANGE), (100, PURPLE), (1000, BLUE), (10_000, GREEN)):
        laws = [nk.theory.gaussian_product((width,) * n) for n in depths]
        middle = np.array([one.log_mean for one in laws]) / 2
        spread = np.sqrt([one.log_var for one in laws]) / 2
        axes[1].plot(depths, np.exp(middle), color=color, label=f"width {width}")
        axes[1].fill_between(
            depths, np.exp(middle - spread), np.exp(middle + spread), color=color, alpha=0.15, lw=0
        )
    axes[1].set(
        xscale="log", ylim=(0, 1.6), xlabel="matrices", title="typical length |θ|, one deviation each way"
    )
    axes[1].legend()
    return drawn


@figure
def marchenko_pastur() -> plt.Figure:
    """Eigenvalues of noise, of a tangent kernel and of random features beside their laws."""
    drawn, axes = axes_row(3, 3.2)
    law = nk.theory.marchenko_pastur(0.4)
    found = law.compare(law.sample(1000, jax.random.key(0)))
    print(f"  noise, 1000 x 2500: distance {found.distance:.4f}, outside {found.below + found.above}")
    _bars(axes[0], found.eigenvalues, 50)
    grid = np.linspace(0.05, 3, 600)
    axes[0].plot(grid, law.density(grid), color=ORANGE, label="Marchenko-Pastur")
    axes[0].set(title="noise, N/M = 0.4", xlabel="eigenvalue")
    axes[0].legend(fontsize=8.5)

    n, d = 500, 800
    x = np.random.default_rng(1).normal(size=(n, d))
    x *= np.sqrt(d) / np.linalg.norm(x, axis=1, keepdims=True)
    net = nk.MLP(d, (1000,), 1, "relu", weight_var=2.0)
    kernel = nk.kernels.NTK(net)
    law = nk.theory.kernel_bulk(kernel, n, d)
    values = np.linalg.eigvalsh(kernel(x))
    finite = np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(net, net.init(jax.random.key(0)))(x))
    found, other = law.compare(values[:-1]), law.compare(finite[:-1])
    print(
        f"  NTK of {n} inputs in {d} dimensions: distance {found.distance:.3f}; at width 1000 {other.distance:.3f}"
    )
    print(
        f"  law: {law.shift:.3f} + {law.variance:.3f} MP({law.ratio:.3f}); largest eigenvalue {values[-1]:.0f}"
    )
    _bars(axes[1], values[:-1], 40, "infinite width")
    axes[1].hist(finite[:-1], 40, density=True, histtype="step", color=GREEN, lw=1.2, label="width 1000")
    low, high = law.edges
    grid = np.linspace(low - 0.3, high + 1, 600)
    axes[1].plot(grid, law.density(grid), color=ORANGE, label="shifted law")
    axes[1].set(title="relu NTK, random inputs", xlabel="eigenvalue")
    axes[1].legend(fontsize=8.5)

    size = 1000
    features = nk.kernels.RandomFeatures(d, size, jax.random.key(2), "erf", weight_var=2.0)
    values = np.linalg.eigvalsh(features(x))
    layer = _layer_kernel(x, 2.0)
    law = nk.theory.sampled_spectrum(np.linalg.eigvalsh(layer), n / size)
    grid = np.linspace(0.01, 1.05 * values[-1], 500)
    share = np.cumsum(law.density(grid)) * (grid[1] - grid[0])
    off = np.abs(np.interp(values, grid, share) - (np.arange(n) + 0.5) / n).max()
    plain = nk.theory.marchenko_pastur(n / size, values.mean())
    noise = plain.compare(values).distance
    print(f"  {size} random features: distance {off:.3f} from the general law, {noise:.3f} from noise")
    _bars(axes[2], values, 50)
    axes[2].plot(grid, law.density(grid), color=ORANGE, label="from the kernel")
    axes[2].plot(grid, plain.density(grid), "--", color=GRAY, lw=1.3, label="noise")
    axes[2].set(title=f"{size} random features", xlabel="eigenvalue", ylim=(0, 1.6))
    axes[2].legend(fontsize=8.5)
    return drawn


def _layer_kernel(x: np.ndarray, weight_var: float) -> np.ndarray:
    """E[erf(u) erf(v)] of one layer of weights: what the features estimate."""
    gram = weight_var * x @ x.T / x.shape[1]
    lengths = 1 + 2 * np.diag(gram)
    return 2 / np.pi * np.arcsin(2 * gram / np.sqrt(np.outer(lengths, lengths)))


def _bars(panel: plt.Axes, values: np.ndarray, count: int, label: str | None = None) -> None:
    panel.hist(values, count, density=True, color=SKY, alpha=0.6, label=label)


@figure
def entropy() -> plt.Figure:
    """Entropy numbers beside stable widths; a Lipschitz function and its codes; the pair and its bound."""
    drawn, axes = axes_row(3, 3.3)
    x = np.linspace(0, 1, 800)[:, None]
    bits = np.unique(np.round(np.geomspace(1, 200, 16)).astype(int))
    for kernel, name, color in (
        (nk.kernels.Laplace(0.3), "Laplace", BLUE),
        (nk.kernels.RBF(0.05), "Gaussian", ORANGE),
    ):
        ball = nk.theory.kernel_axes(kernel, x)
        found = nk.theory.ellipsoid_entropy(ball, bits)
        widths = np.array([nk.theory.ellipsoid_width(ball, int(n)) for n in bits])
        axes[0].fill_between(
            bits, found.lower, found.upper, color=color, alpha=0.3, lw=0, label=f"εₙ, {name}"
        )
        axes[0].plot(bits, np.maximum(widths, 1e-9), "--", color=color, lw=1.4, label=f"δₙ, {name}")
        late = bits >= 40
        slopes = [
            np.polyfit(np.log(bits[late]), np.log(v[late] + 1e-30), 1)[0] for v in (found.lower, widths)
        ]
        loose, at = np.max(found.upper / found.lower), np.argmax(late)
        print(f"  {name}: upper/lower at most {loose:.2f}; fitted powers {slopes[0]:.2f}, {slopes[1]:.2f}")
        print(f"    at n = {bits[at]}: entropy number at least {found.lower[at]:.1e}, width {widths[at]:.1e}")
    axes[0].set(xscale="log", yscale="log", ylim=(1e-5, 2), xlabel="n", title="entropy and width")
    axes[0].legend(fontsize=8, loc="lower left")

    rng = np.random.default_rng(5)
    t = np.linspace(0, 1, 1025)
    walk = np.interp(t, np.linspace(0, 1, 65), np.concatenate([[0], np.cumsum(rng.choice([-1, 1], 64))]) / 64)
    axes[1].plot(t, walk, color=GRAY, lw=1.2, label="f")
    for n, color in ((7, ORANGE), (31, BLUE)):
        code = nk.theory.lipschitz_code(np.interp(np.linspace(0, 1, n + 2)[1:], t, walk))
        back = nk.theory.lipschitz_decode(code, t)
        bound = nk.theory.lipschitz_entropy(n).upper[0]
        print(f"  {n} bits: error {np.abs(walk - back).max():.4f}, entropy number {bound:.4f}")
        axes[1].plot(t, back, color=color, lw=1.3, label=f"{n} bits")
    axes[1].set(title="codes of a Lipschitz f", xlabel="x")
    axes[1].legend(fontsize=8.5)

    gram = nk.kernels.Laplace(0.3)(x[::2])
    functions = rng.normal(size=(600, 400)) @ np.linalg.cholesky(gram).T / 20
    tried = np.arange(1, 8)
    pairs = [nk.theory.stable_pair(functions, int(n), jax.random.key(0)) for n in tried]
    bounds = nk.theory.set_entropy(functions, tried)
    for pair in pairs:
        print(
            f"  n = {pair.bits}, {pair.dims} numbers: error {pair.error:.3f}, 3 eps_n at least {1.5 * pair.radius:.3f}"
            f", constants {pair.encoder_constant:.3f} and {pair.decoder_constant:.3f}"
        )
    axes[2].fill_between(tried, 3 * bounds.lower, 3 * bounds.upper, color=SKY, alpha=0.4, lw=0, label="3 εₙ")
    axes[2].plot(
        tried, [pair.error for pair in pairs], "o-", color=PURPLE, ms=4.5, label="pair, 32 n numbers"
    )
    axes[2].set(ylim=(0, None), xlabel="n", title="a stable pair, measured")
    axes[2].legend(fontsize=8.5)
    return drawn
