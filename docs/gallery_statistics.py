"""Figures of random networks and how to start them; `gallery.py` runs them."""

import jax
import jax.numpy as jnp
import matplotlib.colors
import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GRAY, ORANGE, SKY, axes_row, figure

import nearkernel as nk


@figure
def gradients() -> plt.Figure:
    """Squared input gradients of random relu networks: drawn, by their exact law, and by the normal law."""
    d, size, colors = 64, 4000, (BLUE, ORANGE)
    x = jnp.asarray(np.random.default_rng(0).normal(size=d))

    def squares(net):
        def one(index):
            params = net.init(jax.random.fold_in(jax.random.key(0), index))
            return jax.grad(lambda row: net(params, row[None])[0, 0])(x) ** 2

        with jax.enable_x64(True):
            return np.asarray(jax.jit(lambda i: jax.lax.map(one, i, batch_size=16))(np.arange(size)))

    drawn, axes = axes_row(2)
    for (depth, n), color in zip(((10, 64), (40, 64)), colors, strict=True):
        net = nk.MLP(d, (n,) * depth, 1, "relu", weight_var=2.0)
        found = squares(net)
        for panel, coordinates in zip(axes, (d, 1), strict=True):
            law = nk.theory.input_gradient(net, coordinates)
            logs = np.log(found[:, :coordinates].sum(axis=1))
            (low, high), (mean, variance) = np.quantile(logs, [0.0005, 0.9995]), law.normal
            y = np.linspace(low, high, 300)
            normal = np.exp(-((y - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
            panel.hist(logs, np.linspace(low, high, 41), density=True, color=color, alpha=0.3)
            panel.plot(y, law.pdf(y), color=color, label=f"depth/width = {depth}/{n}: exact law")
            panel.plot(y, normal, color=color, ls="--", lw=1.2, label="normal law")
            away = np.abs(np.sort(law.cdf(logs)) - (np.arange(size) + 0.5) / size).max()
            print(
                f"  depth {depth}, {coordinates} coordinates: draws are {away:.4f} from the exact law "
                f"(chance: below {1.63 / np.sqrt(size):.4f} in 99 %); the mean of the logarithm is {logs.mean():.2f} "
                f"(exact {law.log_mean:.2f}, normal law {mean:.2f}), its variance {logs.var():.2f} "
                f"(exact {law.log_var:.2f}, normal law {variance:.2f})"
            )
    axes[0].set(title="whole gradient", xlabel=r"$\ln\,|dz/dx|^2$", ylabel="density over networks")
    axes[1].set(title="one coordinate", xlabel=r"$\ln\,(dz/dx_1)^2$")
    axes[0].legend(loc="upper left", fontsize=8)
    return drawn


@figure
def advise() -> plt.Figure:
    """The picture of `nearkernel advise --activation gelu --depth 20 --width 512`."""
    from nearkernel._commands.advise.advice import advise as advice_for
    from nearkernel._commands.advise.inputs import inputs_of
    from nearkernel._commands.advise.options import Options
    from nearkernel._commands.advise.reporting.picture import paint

    options = Options("gelu", 20, 512)
    inputs = inputs_of(options)
    advice = advice_for(options, inputs, lambda what: None)
    for outcome in advice.outcomes:
        theory, found = outcome.predicted, outcome.measured
        print(
            f"  {outcome.start.name}: gradient factor {theory.gradient_factor:.2g}, measured "
            f"{found.gradient_factor:.2g} +- {found.gradient_factor_sem:.1g} on {found.networks} networks"
        )
    print(f"  bad draws: {advice.spread.bad_draw:.2%}")
    drawn = plt.figure(figsize=(8.6, 3.3), layout="constrained")
    paint(drawn, options, inputs, advice)
    return drawn


@figure
def phases() -> plt.Figure:
    """Ordered and chaotic phases of deep networks, and the line between them."""
    drawn, axes = axes_row(2, 3.6)
    for panel, name, most_weight, most_bias in zip(
        axes, ("tanh", "gelu"), (4.0, 3.0), (1.0, 0.4), strict=True
    ):
        weight_vars, bias_vars = np.linspace(0.05, most_weight, 60), np.linspace(0.0, most_bias, 50)
        found = nk.statistics.phase_diagram(name, weight_vars, bias_vars)
        levels = [0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.6]
        norm = matplotlib.colors.TwoSlopeNorm(1.0, 0.0, 1.6)
        shown = np.clip(found.chi_perp, 0.0, 1.59).T
        mesh = panel.contourf(weight_vars, bias_vars, shown, levels, cmap="RdBu_r", norm=norm, alpha=0.8)
        line = found.critical_line[found.critical_line[:, 0] <= most_weight]
        panel.plot(*line.T, color="black", lw=2.0, label="χ⊥ = 1")
        exploding = np.isinf(found.kernel)
        if exploding.any():
            panel.contourf(
                weight_vars, bias_vars, exploding.T, levels=[0.5, 1.5], colors="none", hatches=["//"]
            )
        point = nk.critical(name)
        panel.plot(
            point.weight_var, point.bias_var, "o", color=ORANGE, ms=8, mec="white", clip_on=False, zorder=5
        )
        print(
            f"  {name}: critical at C_W = {point.weight_var:.6f}, C_b = {point.bias_var:.6f}; {point.message}"
        )
        panel.set(
            title=name,
            xlabel="weight variance $C_W$",
            xlim=(weight_vars[0], most_weight),
            ylim=(0, most_bias),
        )
        panel.grid(False)
        panel.text(0.12, 0.85, "ordered", transform=panel.transAxes, fontsize=11)
        panel.text(0.72, 0.12 if name == "tanh" else 0.85, "chaotic", transform=panel.transAxes, fontsize=11)
    axes[0].set_ylabel("bias variance $C_b$")
    axes[0].legend(loc="center left")
    bar = drawn.colorbar(mesh, ax=axes, shrink=0.9, ticks=[0.0, 0.4, 0.8, 1.0, 1.2, 1.6])
    bar.set_label("χ⊥ deep in the network")
    return drawn


@figure
def flow() -> plt.Figure:
    """The variance of a neuron over depth: at the critical point it falls by a power, off it exponentially or not."""
    depth, x = 300, np.ones((1, 2))
    layers = np.arange(1, depth + 2)
    drawn, axes = axes_row(2)
    rows = {
        "tanh": ((0.9, 0.0, SKY), (1.0, 0.0, BLUE), (1.2, 0.0, ORANGE)),
        "gelu": ((1.9, 0.17292239, SKY), (1.98305826, 0.17292239, BLUE), (2.05, 0.17292239, ORANGE)),
    }
    for panel, (name, settings) in zip(axes, rows.items(), strict=True):
        for weight_var, bias_var, color in settings:
            scale = 1.0 if name == "tanh" else 2.0
            net = nk.MLP(2, (1,) * depth, 1, name, weight_var, bias_var)
            kernel = [float(layer.kernel[0, 0]) for layer in nk.propagate(net, scale * x)]
            critical = "  (critical)" if color == BLUE else ""
            panel.plot(layers, kernel, color=color, label=f"$C_W$ = {weight_var:g}{critical}")
            if color == BLUE:
                print(
                    f"  {name} at criticality: K = {kernel[0]:.4f} in layer 1, {kernel[-1]:.6f} in layer {depth + 1}"
                )
        panel.set(xscale="log", yscale="log", xlabel="layer", title=name)
    law = nk.critical("tanh").kernel_law(layers[3:])
    axes[0].plot(layers[3:], law, color=GRAY, ls="--", label="1/(2 layer)")
    axes[0].set(ylabel="variance K of a neuron", ylim=(1e-5, 2))
    axes[1].axhline(nk.critical("gelu").fixed_point, color=GRAY, ls="--", label="K*")
    axes[1].set(ylim=(0.5, 50))
    for panel in axes:
        panel.legend()
    return drawn


@figure
def kurtosis() -> plt.Figure:
    """How far outputs are from Gaussian: excess kurtosis over depth / width, theory and drawn networks."""
    drawn, axes = axes_row(2, 3.6, sharey=True)
    rows = (("relu", 2.0, BLUE, "o"), ("tanh", 1.0, ORANGE, "s"))
    x, most = np.ones((1, 4)), 10
    for panel, width in zip(axes, (32, 128), strict=True):
        for name, weight_var, color, mark in rows:
            net = nk.MLP(4, (width,) * most, 1, name, weight_var)
            layers = list(nk.propagate(net, x, order=1))[1:]
            theory = [
                3 * float(layer.four_point.item() / layer.kernel.item() ** 2) / width for layer in layers
            ]
            ratio = np.arange(1, most + 1) / width
            panel.plot(ratio, theory, color=color, label=f"{name}: order 1/n")

            def moments(params, net=net):
                """E[z^2] and E[z^4] / 3 of every layer, averaged over its weights."""
                z = net.layer_outputs(params, jnp.asarray(x))[:-1]
                own = jnp.stack([net.weight_var * jnp.mean(net.activation(layer) ** 2) for layer in z])
                return own, own**2

            found = nk.measure(moments, net, 16_000 if width == 32 else 3_000, jax.random.key(0))
            second, fourth = found.mean
            excess = 3 * (fourth / second**2 - 1)
            error = 3 * found.sem[1] / second**2
            panel.errorbar(
                ratio, excess, 2 * error, fmt=mark, color=color, ms=5, capsize=2, label=f"{name}: drawn"
            )
            if name == "relu":
                exact = 3 * ((1 + 5 / width) ** np.arange(1, most + 1) - 1)
                panel.plot(ratio, exact, color=color, ls=":", label="relu: exact, 3 (1 + 5/n)^l - 3")
            print(
                f"  {name}, width {width}, {most} hidden layers: {theory[-1]:.3f} to order 1/n, drawn {excess[-1]:.3f}"
            )
        panel.set(title=f"width {width}", xlabel="hidden layers / width")
    axes[0].set_ylabel("excess kurtosis of a neuron")
    axes[0].legend()
    return drawn
