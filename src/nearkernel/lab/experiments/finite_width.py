"""One output over all trained networks of a finite width: its skewness and kurtosis, and real networks."""

import dataclasses
import functools
import math
import warnings

import jax
import numpy as np

import nearkernel as nk

from ..._base.settings import setting
from .. import Answer, Curve, Experiment, Number, Picture, Preset, Watch
from .parts.program import program

X, Y = np.array([[-1.0], [0.7]]), np.array([0.8, -0.5])
BINS, SIDES = 40, 4.0  # of the histogram, and standard deviations that it reaches to each side
BATCH = 500


@dataclasses.dataclass(frozen=True)
class FiniteWidth(Experiment):
    """Train every network of a given width on two points and record one output, f*. At infinite width its
    distribution over networks is Gaussian. At finite width mean and variance shift, and the distribution leans to one
    side (skewness) and has heavier tails (kurtosis). These effects are of order 1/width, and theory computes them
    without training. Choose a narrow network, then train thousands and look at their histogram."""

    title = "Finite width: the distribution of an output"
    menu = "Finite width"
    formulas = (
        r"p(f^\star) = N(f^\star) \left[ 1 + \tfrac{g_3}{6} \mathrm{He}_3(u) + \tfrac{g_4}{24} \mathrm{He}_4(u) \right]"
        r", \quad u = \frac{f^\star - \mu}{s}",
        r"\mu = \mu_\infty + \frac{\mu_1}{n}, \quad s^2 = s_\infty^2 + \frac{s_1}{n}, \quad g_3, g_4 = O(1/n)",
    )
    button = "Train the networks"
    movie = "place"
    presets = (
        Preset(
            "Narrow", {"width": 12}, "The histogram leans and has heavier tails; four cumulants describe it."
        ),
        Preset("Wide", {"width": 256}, "All curves coincide: the distribution is Gaussian."),
        Preset("Far from the data", {"place": 1.9, "width": 16}, "Far from all points networks differ most."),
        Preset(
            "Close to a point",
            {"place": -0.9},
            "Near a training point all networks agree: the distribution is narrow.",
        ),
    )

    place: float = setting(0.1, "Input x* at which the output is recorded.", low=-2, high=2)
    width: int = setting(24, "Neurons in the hidden layer, n.", low=8, high=256, log=True)
    activation: str = setting("gelu", "Activation of the hidden layer.", choices=("gelu", "erf", "sin"))
    weight_var: float = setting(2.0, "Variance of the weights, times fan-in.", low=0.5, high=4)
    bias_var: float = setting(0.3, "Variance of the biases.", low=0, high=2)
    steps: int = setting(50, "Steps of gradient descent.", low=1, high=200, log=True)
    networks: int = setting(4000, "Number of networks to train.", low=500, high=20_000, log=True)

    def theory(self) -> Answer:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            law = self._law()
        doubts = tuple(str(each.message) for each in told if each.category is UserWarning)
        mean, std = float(law.mean[0]), float(law.std[0])
        wide, spread = float(law.terms[0][0]), float(np.sqrt(law.cov_terms[0][0, 0]))
        at = mean + std * np.linspace(-SIDES, SIDES, 161)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is negative far out is said in words
            density = law.density(at[:, None])[:, 0]
        gauss = normal(at, mean, std)
        order = "to order 1/n"
        pictures = (
            Picture(
                "Distribution of f*",
                (
                    Curve("infinitely wide", at, normal(at, wide, spread), "dashes", 0),
                    Curve("Gaussian", at, gauss, "dashes", 2, group=order),
                    Curve("four cumulants", at, density, "line", 1, group=order),
                ),
                "f*",
                "density",
                x_range=(float(at[0]), float(at[-1])),
            ),
            Picture(
                "Deviation from the Gaussian",
                (Curve("four cumulants − Gaussian", at, density - gauss, "line", 1),),
                "f*",
                "density − Gaussian",
                x_range=(float(at[0]), float(at[-1])),
            ),
        )
        numbers = (
            Number("mean", mean, f"{wide:.4g} at infinite width"),
            Number("standard deviation", std, f"{spread:.4g} at infinite width"),
            Number("skewness", float(law.skewness[0]), "0 for a Gaussian"),
            Number("excess kurtosis", float(law.kurtosis[0]), "0 for a Gaussian"),
            Number(
                "size of the correction",
                law.distance,
                "relative shift of mean or variance; the expansion holds if small",
            ),
        )
        low, high = (float(each[0]) for each in law.positive)
        note = f"The expansion holds for f* from {low:.3g} to {high:.3g}: outside, its density is negative."
        inside = low <= at[0] and at[-1] <= high
        return Answer(pictures, numbers, doubts if inside else (*doubts, note))

    def check(self, watch: Watch) -> Answer:
        theory, found, drawn = self.theory(), np.zeros(0), 0
        net, answer = self._net, theory
        with jax.enable_x64(True):
            batches = -(-self.networks // BATCH)
            for batch in range(batches):
                words = f"training networks {drawn + 1} to {drawn + BATCH}"
                watch(batch / batches, words, answer)
                keys = jax.random.split(jax.random.key(batch), BATCH)
                trained = np.asarray(outputs_of(net, keys, self._lr(), np.array([[self.place]]), self.steps))
                drawn += BATCH
                found = np.concatenate([found, trained[np.isfinite(trained)]])
                answer = self._beside(theory, found, drawn)
        return answer

    def _beside(self, theory: Answer, found: np.ndarray, drawn: int) -> Answer:
        law, difference = theory.pictures
        low, high = law.x_range  # type: ignore[misc]
        counts, edges = np.histogram(found, BINS, (low, high))
        width = edges[1] - edges[0]
        at, scale = (edges[1:] + edges[:-1]) / 2, 1 / (len(found) * width)
        mean, std = (number.value for number in theory.numbers[:2])
        bars, sem = counts * scale, np.sqrt(np.maximum(counts, 1)) * scale
        trained = "trained networks"
        pictures = (
            dataclasses.replace(
                law, parts=(Curve(trained, at, bars, "bars", 5, group=f"{len(found)} of them"), *law.parts)
            ),
            difference.plus(Curve(trained, at, bars - normal(at, mean, std), "dots", 5, sem=sem)),  # type: ignore[arg-type]
        )
        lost = f"{drawn - len(found)} networks diverged and are left out."
        return Answer(
            pictures,
            (*theory.numbers, *_measured(found)),
            theory.notes if drawn == len(found) else (*theory.notes, lost),
        )

    @property
    def _net(self) -> nk.MLP:
        return nk.MLP(
            1, (self.width,), 1, self.activation, weight_var=self.weight_var, bias_var=self.bias_var
        )

    def _lr(self) -> float:
        return rate(self.activation, self.weight_var, self.bias_var)

    def _law(self):
        algorithm = nk.GradientDescent(self._lr(), steps=self.steps)
        return nk.forecast(self._net, X, Y, algorithm, np.array([[self.place]]), theory=nk.FiniteWidth())

    def python(self, checked: bool = False) -> str:
        return program(__name__, _THEORY + _CHECK * checked + _CURVES, **self.values())


def normal(f: np.ndarray, mean: float, std: float) -> np.ndarray:
    return np.exp(-(((f - mean) / std) ** 2) / 2) / (std * math.sqrt(2 * math.pi))


def _measured(found: np.ndarray) -> tuple[Number, ...]:
    """Moments of trained networks, with the standard errors of nearly Gaussian draws."""
    size, mean, std = len(found), float(found.mean()), float(found.std(ddof=1))
    u = (found - mean) / std
    words = f"{size} networks"
    return (
        Number("trained: mean", mean, words, std / size**0.5),
        Number("trained: standard deviation", std, words, std / (2 * size) ** 0.5),
        Number("trained: skewness", float((u**3).mean()), words, (6 / size) ** 0.5),
        Number("trained: excess kurtosis", float((u**4).mean() - 3), words, (24 / size) ** 0.5),
    )


@functools.cache
def rate(activation: str, weight_var: float, bias_var: float) -> float:
    """Half of the rate of a wide network, since kernels of narrow ones scatter."""
    net = nk.MLP(1, (8,), 1, activation, weight_var=weight_var, bias_var=bias_var)
    return 0.5 / float(np.linalg.eigvalsh(nk.kernels.NTK(net)(X))[-1])


@functools.partial(jax.jit, static_argnums=4)
def outputs_of(net, keys, lr, new, steps):
    """The output of each network after training."""

    def one(key):
        run = nk.simulate(net, net.init(key), X, Y, nk.GradientDescent(lr, steps=steps))
        return net(run.params, new)[0, 0]

    return jax.vmap(one)(keys)


_THEORY = """

new = np.array([[{place}]])
net = nk.MLP(1, ({width},), 1, {activation!r}, weight_var={weight_var}, bias_var={bias_var})
lr, steps = rate({activation!r}, {weight_var}, {bias_var}), {steps}

law = nk.forecast(net, X, Y, nk.GradientDescent(lr, steps=steps), new, theory=nk.FiniteWidth())
print("skewness", law.skewness, "excess kurtosis", law.kurtosis)
mean, std = law.mean[0], law.std[0]
at = mean + std * np.linspace(-SIDES, SIDES, 161)
_, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5))
"""
_CHECK = """with jax.enable_x64(True):
    keys = [jax.random.split(jax.random.key(i), BATCH) for i in range(-(-{networks} // BATCH))]
    found = [outputs_of(net, each, lr, new, steps) for each in keys]
found = np.concatenate(found)
found = found[np.isfinite(found)]
counts, edges = np.histogram(found, BINS, (at[0], at[-1]))
middles, scale = (edges[1:] + edges[:-1]) / 2, 1 / (len(found) * (edges[1] - edges[0]))
left.bar(middles, counts * scale, edges[1] - edges[0], alpha=0.5, label="trained networks")
sem = np.sqrt(np.maximum(counts, 1)) * scale
right.errorbar(middles, counts * scale - normal(middles, mean, std), sem, fmt="o", label="trained networks")
"""
_CURVES = """
left.plot(at, normal(at, law.terms[0][0], law.cov_terms[0][0, 0] ** 0.5), "--", color="grey", label="infinitely wide")
left.plot(at, normal(at, mean, std), "--", label="Gaussian")
left.plot(at, law.density(at[:, None])[:, 0], label="four cumulants")
left.set(title="Distribution of f*", xlabel="f*")
right.plot(at, law.density(at[:, None])[:, 0] - normal(at, mean, std), label="four cumulants − Gaussian")
right.set(title="Deviation from the Gaussian", xlabel="f*")
"""
