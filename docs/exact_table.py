"""Makes exact_table.md: exact results and bounds of random networks beside what drawn networks show.

python docs/exact_table.py     # a few minutes
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

import nearkernel as nk
from nearkernel._commands.claims.rows import in_sigmas

PATH = Path(__file__).parent / "exact_table.md"
LIMIT = 4.0
RNG = np.random.default_rng(0)


def said(net: nk.MLP) -> str:
    """A network in a few words."""
    name = getattr(net.activation, "name", type(net.activation).__name__.lower())
    if isinstance(net.activation, nk.results.PiecewiseLinear):
        name = {0.0: "relu", 1.0: "linear"}.get(net.activation.left, f"leaky relu {net.activation.left:g}")
    widths = ", ".join(map(str, net.widths))
    return f"{name}, widths {widths}, C_W = {float(net.weight_var):g}, C_b = {float(net.bias_var):g}"


def row(quantity: str, net: nk.MLP, theory: float, mean: float, sem: float) -> list[str]:
    sigmas = (mean - theory) / max(sem, 1e-12 * abs(theory))
    return [quantity, said(net), f"{theory:.5g}", f"{mean:.5g} ± {sem:.2g}", in_sigmas(sigmas)]


def exact() -> list[list[str]]:
    """Quantities that are known at any width."""
    found = []
    x = RNG.normal(size=5)
    for net in (
        nk.MLP(5, (9, 14, 11), 1, "relu", weight_var=2.0, bias_var=0.1),
        nk.MLP(5, (20, 20), 1, "relu", weight_var=1.7),
    ):
        law = nk.theory.input_gradient(net, 1)

        def variance(params, net=net):
            """Of dz/dx_1 given the hidden layers: the last layer is integrated out, which tames the fourth moment."""
            hidden = lambda at: net.activation(net.layer_outputs(params, at[None])[-2])[0]
            slopes = jax.jacfwd(hidden)(jnp.asarray(x))[:, 0]
            return net.weight_var * jnp.mean(slopes**2)

        estimate = nk.measure(
            lambda p, f=variance: {"2": f(p), "4": 3 * f(p) ** 2, "0": f(p) == 0},
            net,
            200_000,
            jax.random.key(0),
        )
        for name, theory in (("2", law.second_moment), ("4", law.fourth_moment), ("0", law.dead)):
            label = {"2": "E (dz/dx_1)²", "4": "E (dz/dx_1)⁴", "0": "P(dz/dx = 0)"}[name]
            found.append(row(label, net, theory, float(estimate.mean[name]), float(estimate.sem[name])))
    points = RNG.normal(size=(1, 3))
    for net in (
        nk.MLP(3, (8, 12, 10), 2, "relu", weight_var=2.0),
        nk.MLP(3, (5, 9), 2, "leaky_relu(0.3)", weight_var=1.3),
        nk.MLP(3, (6, 4, 5), 2, "linear", weight_var=1.0),
    ):
        law = nk.theory.relu_ntk(net, points)

        def kernel(params, net=net):
            full = nk.kernels.EmpiricalNTK(net, params).full(jnp.asarray(points))[0, :, 0]
            return {"mean": full[0, 0], "second": full[0, 0] ** 2, "other": full[0, 1] ** 2}

        estimate = nk.measure(kernel, net, 100_000, jax.random.key(1))
        for name, label, theory in (
            ("mean", "E Θ", law.mean[0, 0]),
            ("second", "E Θ²", law.second_moment[0]),
            ("other", "E Θ₁₂², two outputs", law.other_output[0]),
        ):
            found.append(
                row(label, net, float(theory), float(estimate.mean[name]), float(estimate.sem[name]))
            )
    for net in (
        nk.MLP(3, (8, 20), 1, "relu", weight_var=2.0),
        nk.MLP(3, (64,) * 4, 1, "relu", weight_var=2.0),
    ):
        law = nk.theory.gaussianity(net, points, 100_000, jax.random.key(2))
        theory = 3 * (np.prod([1 + 5 / n for n in net.widths]) - 1)
        found.append(row("excess kurtosis of z", net, theory, law.kurtosis[0], law.kurtosis_sem[0]))
    return found


def laws() -> list[list[str]]:
    """The law of the whole gradient, by the test of Kolmogorov and Smirnov."""
    found = []
    for net in (nk.MLP(6, (10, 15), 1, "relu", 2.0, 0.3), nk.MLP(20, (32,) * 12, 1, "relu", 2.0)):
        law, x = nk.theory.input_gradient(net), RNG.normal(size=net.in_dim)

        def squared(index, net=net, x=x):
            params = net.init(jax.random.fold_in(jax.random.key(3), index))
            return jnp.sum(jax.grad(lambda at: net(params, at[None])[0, 0])(jnp.asarray(x)) ** 2)

        with jax.enable_x64(True):
            draws = jax.jit(lambda i, f=squared: jax.lax.map(f, i, batch_size=32))(np.arange(20_000))
        logs = np.log(np.maximum(np.asarray(draws), 1e-300))
        test = scipy.stats.kstest(logs, law.cdf)
        mean, var = law.normal
        normal = scipy.stats.kstest(logs, lambda y, m=mean, v=var: scipy.stats.norm.cdf(y, m, np.sqrt(v)))
        found.append(
            [
                said(net),
                f"{law.beta:.3g}",
                f"{test.statistic:.4f}",
                f"{test.pvalue:.2f}",
                f"{normal.statistic:.4f}",
            ]
        )
    return found


def bounds() -> list[list[str]]:
    """How far bounds are from what they bound."""
    x, found, size = RNG.normal(size=(10, 4)), [], 2000

    def add(name: str, net: nk.MLP, bound: float, truth: float, upper: bool = True) -> None:
        if not (bound >= truth if upper else bound <= truth):
            sys.exit(f"error: {name} does not hold for {said(net)}: {bound} and {truth}.")
        loose = (bound / truth if upper else truth / bound) if min(bound, truth) > 0 else np.inf
        found.append([name, said(net), f"{bound:.4g}", f"{truth:.4g}", f"{loose:.3g}"])

    def draws(net, function):
        def one(index):
            return function(net.init(jax.random.fold_in(jax.random.key(4), index)))

        with jax.enable_x64(True):
            return np.asarray(jax.jit(lambda i: jax.lax.map(one, i, batch_size=16))(np.arange(size)))

    for widths in ((64,), (64,) * 4):
        net = nk.MLP(4, widths, 1, "relu", weight_var=2.0)
        law = nk.theory.largest_eigenvalue(net, x)
        for name in ("row", "frobenius", "trace"):
            add(f"{name}, λ_max of the mean NTK", net, getattr(law, name), law.mean)
        largest = draws(
            net, lambda p, n=net: jnp.linalg.eigvalsh(nk.kernels.EmpiricalNTK(n, p)(jnp.asarray(x)))[-1]
        )
        for name in ("cantelli", "chernoff", "markov"):
            add(
                f"{name}, 95 % of λ_max of one NTK",
                net,
                getattr(law, name),
                float(np.quantile(largest, 0.95)),
            )
    for n in (128, 8192):
        net = nk.MLP(4, (n,), 1, "tanh", 1.5, 0.1)
        law = nk.theory.concentration(net, x)

        def spectrum(params, net=net, n=n, mean=law.mean):
            s = net.activation(net.layer_outputs(params, jnp.asarray(x))[0])
            kernel = net.weight_var * s @ s.T / n
            lam = jnp.linalg.eigvalsh(kernel)
            return jnp.stack([jnp.abs(jnp.linalg.eigvalsh(kernel - mean)).max(), lam[-1], lam[0]])

        norm, largest, smallest = draws(net, spectrum).T
        add("Bernstein, 95 % of the distance to the mean", net, law.deviation, float(np.quantile(norm, 0.95)))
        add("Bernstein, mean distance", net, law.expected, float(norm.mean()))
        add("Chernoff, 95 % of λ_max of neurons", net, law.largest, float(np.quantile(largest, 0.95)))
        add("Chernoff, 5 % of λ_min of neurons", net, law.smallest, float(np.quantile(smallest, 0.05)), False)
    for activation in ("tanh", "relu", "gelu"):
        for depth in (1, 3):
            net = nk.MLP(4, (64,) * depth, 1, activation, 1.5, 0.1)
            law = nk.theory.smallest_eigenvalue(net, x)
            add("Hermite, λ_min of the NNGP", net, law.nngp_bound, law.nngp, False)
            add("Hermite, λ_min of the NTK", net, law.ntk_bound, law.ntk, False)
    return found


def table(heads: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in (heads, ["---"] * len(heads), *rows))


def main() -> None:
    known = exact()
    worst = max(abs(float(line[-1])) for line in known)
    text = f"""# Exact results and bounds, compared with random networks

The guide [Exact laws and bounds](guides/exact-laws.md) describes the functions. `python docs/exact_table.py` generates
this page.

## Exact at any width

Means over random networks, with standard errors. The worst of {len(known)} rows is {worst:.1f} standard errors off.

{table(["quantity", "network", "theory", "measured", "sigmas"], known)}

## The law of |dz/dx|²

The Kolmogorov-Smirnov distance of 20,000 draws from the exact law, with its p-value, and from the normal law of the
logarithm.

{table(["network", "β", "distance", "p", "distance to the normal law"], laws())}

## Bounds

All bounds hold. *loose* is the ratio of the two sides (inf: the bound is trivial). There are ten inputs of four
features, and 2000 networks.

{table(["bound", "network", "bound is", "truth is", "loose"], bounds())}
"""
    PATH.write_text(text, encoding="utf-8")
    print(text)
    if worst > LIMIT:
        sys.exit(f"error: a row is {worst:.1f} standard errors off.")


if __name__ == "__main__":
    main()
