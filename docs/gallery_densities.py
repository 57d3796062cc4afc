"""The figure of densities of trained networks; `gallery.py` runs it."""

import warnings

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import scipy.stats
from drawing import BLUE, GRAY, ORANGE, axes_row, figure

import nearkernel as nk

_X = np.array([[0.9, -0.4], [-0.3, 1.1]])
_STEPS, _NETWORKS = 40, 200_000


def _trained(net: nk.MLP, y: np.ndarray, descent: nk.GradientDescent, x_new: np.ndarray) -> np.ndarray:
    """Outputs at `x_new` (1, 2) of networks that are trained one by one."""

    def one(index):
        params = net.init(jax.random.fold_in(jax.random.key(1), index))
        end = nk.simulate(net, params, _X, y, descent, nk.Record(every=_STEPS))
        return net(end.params, x_new)[0, 0]

    with jax.enable_x64(True):
        run = jax.jit(lambda indices: jax.lax.map(one, indices, batch_size=256))
        return np.asarray(run(jnp.arange(_NETWORKS)))


@figure
def trained_density() -> plt.Figure:
    """The law of trained networks of width 24: histogram, Gaussians, and the density of four cumulants."""
    drawn, axes = axes_row(3, 3.5)
    cases = (
        ("gelu", np.array([0.8, -0.5]), np.array([[-0.8, -0.5]]), axes[:2]),
        ("tanh", np.array([1.6, -1.0]), np.array([[1.3, -0.2]]), axes[2:]),
    )
    for activation, y, x_new, panels in cases:
        net = nk.MLP(2, (24,), 1, activation, weight_var=2.0, bias_var=0.2)
        rate = 0.5 / np.linalg.eigvalsh(nk.kernels.NTK(net)(_X))[-1]
        descent = nk.GradientDescent(float(rate), _STEPS)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # at width 24 the next order is not small: it is seen
            law = nk.forecast(net, _X, y, descent, x_new, theory=nk.FiniteWidth())
        found = _trained(net, y, descent, x_new)
        mean, std, wide = law.mean[0], law.std[0], float(np.sqrt(law.cov_terms[0][0, 0]))
        f = np.linspace(mean - 4.6 * std, mean + 4.6 * std, 400)
        lines = {
            "infinite width": (scipy.stats.norm.pdf(f, law.terms[0][0], wide), GRAY, ":"),
            "Gaussian, order 1/n": (scipy.stats.norm.pdf(f, mean, std), ORANGE, "--"),
            "four cumulants": (law.density(f), BLUE, "-"),
        }
        for panel in panels:
            bins = np.linspace(f[0], f[-1], 47)
            panel.hist(found, bins, density=True, color="#D1D5DB", label="trained networks")
            for label, (density, color, style) in lines.items():
                panel.plot(f, density, style, color=color, lw=1.6, label=label)
            panel.set(title=f"{activation}, width 24", xlabel="output")
        spread = found.std()
        print(
            f"  {activation}: skewness {scipy.stats.skew(found):.3f} (predicted {law.skewness[0]:.3f}), "
            f"excess kurtosis {scipy.stats.kurtosis(found):.3f} ({law.kurtosis[0]:.3f}), "
            f"mean {found.mean():.3f} ({mean:.3f}), deviation {spread:.3f} ({std:.3f})"
        )
        for q in (0.005, 0.995):
            plain, normal = law.quantile(q)[0], scipy.stats.norm.ppf(q, mean, std)
            real, below = np.quantile(found, q), np.mean(found < normal)
            print(
                f"  quantile {q}: networks {real:.3f}, four cumulants {plain:.3f}, Gaussian {normal:.3f}; "
                f"share below them {np.mean(found < plain):.5f}, {below:.5f}"
            )
    axes[1].set(yscale="log", ylim=(5e-5, 1), title="the same, logarithmic")
    axes[2].set(yscale="log", ylim=(2e-4, 3), title="tanh, logarithmic")
    drawn.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return drawn
