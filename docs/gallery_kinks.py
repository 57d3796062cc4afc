"""The figure of trained networks with a kink; `gallery.py` runs it."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from drawing import BLUE, GRAY, ORANGE, axes_row, figure

import nearkernel as nk

_X, _Y = np.array([[1.2, 0.5, 0.2], [0.5, 1.1, -0.3]]), np.array([1.3, -0.4])
_NEW = np.array([[1.1, -0.4, 0.8]])
_STEPS = 60


def _network(width: int) -> nk.MLP:
    return nk.MLP(3, (width,), 1, "relu", weight_var=1.6, bias_var=0.1)


def _observable(net: nk.MLP, descent: nk.GradientDescent):
    """Differences of mean and variance from infinite width, without what the frozen kernel of a network does."""
    law, both = nk.forecast(net, _X, _Y, descent, _NEW), jnp.asarray(np.vstack([_X, _NEW]))
    middle, n, record = law.mean[0], len(_X), nk.Record(every=_STEPS)

    def trained(params):
        end = nk.simulate(net, params, both[:n], jnp.asarray(_Y), descent, record)
        return net(end.params, both[n:])[0, 0] - middle

    def frozen(params, sign):
        gradients = jax.tree.leaves(jax.jacrev(lambda p: net(p, both)[:, 0])(params))
        factors = jax.tree.leaves(net.lr_factors())
        flat = [(g.reshape(len(both), -1), f) for g, f in zip(gradients, factors, strict=True)]
        kernel, z = sum(f * (g @ g.T) for g, f in flat), sign * net(params, both)[:, 0]
        moved, e = jnp.zeros(n), z[:n] - _Y
        for _ in range(_STEPS):
            moved, e = moved + descent.lr * e, e - descent.lr * kernel[:n, :n] @ e
        return z[n] - kernel[n, :n] @ moved - middle

    def observe(params):
        other = [*params[:-1], jax.tree.map(jnp.negative, params[-1])]
        ends, known = (trained(params), trained(other)), (frozen(params, 1.0), frozen(params, -1.0))
        return {
            "mean": sum(f - g for f, g in zip(ends, known, strict=True)) / 2,
            "cov": sum(f**2 - g**2 for f, g in zip(ends, known, strict=True)) / 2,
        }

    return observe


@figure
def kink_shift() -> plt.Figure:
    """Trained relu networks: width^(1/2) times the difference from infinite width, over the width."""
    drawn, axes = axes_row(2, 3.3)
    rate = float(0.4 / np.linalg.eigvalsh(nk.kernels.NTK(_network(4))(_X))[-1])
    descent, widths = nk.GradientDescent(rate, _STEPS), np.array([32, 128, 512, 2048])
    many = nk.Kinks(tolerance=1e-9, most=2**15)
    law = nk.forecast(_network(10**8), _X, _Y, descent, _NEW, theory=many)  # the limit
    theory = {"mean": (law.terms[1], law.error.mean), "cov": (law.cov_terms[1], law.error.cov)}
    estimates = []
    for width in widths:
        net, pairs = _network(int(width)), min(8000, 2**22 // int(width))
        estimates.append(nk.measure(_observable(net, descent), net, pairs, jax.random.key(int(width))))
    line = np.geomspace(24, 2800, 50)
    for panel, (name, title) in zip(axes, (("mean", "mean"), ("cov", "variance")), strict=True):
        value, error = (1e4 * float(np.ravel(each)[0]) for each in theory[name])
        found, sem = (
            np.sqrt(widths) * np.array([float(getattr(e, part)[name]) for e in estimates])
            for part in ("mean", "sem")
        )
        panel.fill_between(line, value - 2 * error, value + 2 * error, color=BLUE, alpha=0.25, lw=0)
        panel.axhline(value, color=BLUE, label="nk.Kinks()")
        panel.plot(line, found[0] * np.sqrt(widths[0] / line), ":", color=GRAY, label="if it fell as 1/width")
        panel.errorbar(
            widths, found, 2 * sem, fmt="o", color=ORANGE, ms=5, capsize=2, label="trained networks"
        )
        panel.set(title=rf"$\sqrt{{\mathrm{{width}}}}$ × change of the {title}", xlabel="width", xscale="log")
        panel.set_xticks(widths, [str(width) for width in widths])
        panel.minorticks_off()
        print(f"  {title}: {value:.4f} +- {error:.4f}; measured", found.round(4), "+-", sem.round(4))
    axes[0].set_ylim(0, None)
    axes[1].set_ylim(None, 0)
    axes[0].legend(loc="lower left")
    return drawn
