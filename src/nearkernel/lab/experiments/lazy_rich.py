"""One network, from lazy to rich: what it learns as its features move more."""

import dataclasses
import functools
from typing import NamedTuple

import jax
import numpy as np

import nearkernel as nk

from ..._base.settings import Points, setting
from .. import Answer, Curve, Experiment, Number, Picture, Preset, Watch
from .parts.lazy_rich import CHECK, THEORY
from .parts.program import program

GRID = np.linspace(-2, 2, 41)[:, None]
MIDDLE = 20  # where the grid is 0
STEPS, EVERY = 100, 5  # steps of gradient descent, and how many are between two looks
_NETWORKS, _BATCH = 12, 4
CLOUDS = nk.MeanField(neurons=512, scrambles=2, every=EVERY)


@dataclasses.dataclass(frozen=True)
class LazyRich(Experiment):
    """One wide network can train in two ways. Lazy: its tangent kernel stays fixed, and training is kernel
    regression. Rich: its neurons move to where the data need them, and the kernel moves with them. One number
    decides, the richness. Move it, then play the training steps. Both limits are computed without training a network.
    Then train some: each network is one curve, and all follow the rich limit."""

    title = "From lazy to rich"
    menu = "Lazy–rich"
    formulas = (
        r"z(x) = \frac{1}{\gamma_0 N} \sum_i a_i \, \sigma(h_i(x)), \qquad \eta \to \gamma_0^2 \, \eta",
        r"\frac{d h_i}{dt} = - \gamma_0 \sum_\mu a_i \, \sigma'(h_i(x_\mu)) \, (z_\mu - y_\mu) \, \Phi_{x \mu}, \quad "
        r"\gamma_0 \to 0: \; \Theta \text{ constant}",
    )
    button = f"Train {_NETWORKS} networks"
    movie = "step"
    presets = (
        Preset("Lazy", {"richness": 0.03}, "Both limits coincide, and the kernel stays fixed."),
        Preset(
            "Rich",
            {"richness": 2.0},
            "The kernel has changed: between the points the network learns another function.",
        ),
        Preset(
            "A step",
            {"richness": 2.0, "points": "-1.5,-0.5;-0.8,-0.5;-0.2,-0.5;0.2,0.5;0.8,0.5;1.5,0.5"},
            "A rich network places its neurons where the step is.",
        ),
        Preset(
            "Early",
            {"richness": 2.0, "step": 10},
            "At first lazy and rich networks agree; features come later.",
        ),
    )

    richness: float = setting(
        1.0, "γ₀: how far features move; 0 is a kernel machine.", low=0.03, high=3, log=True
    )
    step: int = setting(
        STEPS, "Training step that is shown, rounded to multiples of 5.", low=EVERY, high=STEPS
    )
    points: Points = setting(
        ((-1.2, 0.2), (-0.5, -0.6), (0.3, 0.7), (1.1, 0.1)),
        "Drag them in the picture, or use arrow keys; at most 8.",
        low=-2,
        high=8,
    )
    activation: str = setting(
        "erf", "Activation of the hidden layer.", choices=("erf", "gelu", "relu", "tanh")
    )
    weight_var: float = setting(2.0, "Variance of the weights, times fan-in.", low=0.5, high=4)
    bias_var: float = setting(0.5, "Variance of the biases.", low=0, high=2)
    width: int = setting(256, "Neurons of the trained networks.", low=32, high=1024, log=True)

    def theory(self) -> Answer:
        x, y = self._data()
        known = _known(self.points, self.richness, self.activation, self.weight_var, self.bias_var)
        law = known.law.at(self._at)
        lazy = nk.forecast(self._net("ntk"), x, y, nk.GradientDescent(known.lr, steps=self._at), GRID)
        grid, steps, wide = GRID[:, 0], np.arange(STEPS + 1), "infinitely wide"
        pictures = (
            Picture(
                "Functions learned",
                (
                    Curve("lazy limit", grid, lazy.mean, "dashes", 2, group=wide),
                    Curve("rich limit", grid, law.mean, "line", 1, group=wide),
                    Curve("data", x[:, 0], y, "points", 0),
                ),
                x_range=(-2, 2),
                y_range=(-2.2, 2.2),
            ),
            Picture(
                "Loss",
                (
                    Curve("lazy limit", steps, known.lazy_loss, "dashes", 2),
                    Curve("rich limit", steps, np.maximum(known.law.loss, 1e-12), "line", 1),
                    Curve("now", [self._at], [max(float(law.loss[-1]), 1e-12)], "dots", 3),
                ),
                "step",
                "loss",
                log_y=True,
                y_range=(1e-4, 10.0),
            ),
            Picture(
                "Tangent kernel of x and 0",
                (
                    Curve("at initialization", grid, known.before, "dashes", 2),
                    Curve(f"after {STEPS} steps", grid, known.after, "line", 1),
                ),
                y="kernel",
                x_range=(-2, 2),
            ),
        )
        notes = () if known.law.ok else (str(known.law.status),)
        return Answer(pictures, self._numbers(known, law, lazy), notes)

    def _numbers(self, known: "_Known", law, lazy) -> tuple[Number, ...]:
        found = nk.regime(self._model(), self._data()[1])
        return (
            Number("regime", found.name, "from the richness and the size of the targets"),
            Number("change of the kernel", known.moved, f"relative to its size, after {STEPS} steps"),
            Number(
                "rich − lazy",
                float(np.abs(law.mean - lazy.mean).max()),
                "largest difference between the two curves",
            ),
            Number("numerical error", float(law.error.max()), "of the rich limit"),
        )

    def check(self, watch: Watch) -> Answer:
        theory, (x, y), found = self.theory(), self._data(), np.zeros((0, len(GRID)))
        model = self._model()
        lr = self.richness**2 * _rate(self._net("ntk"), x)
        answer, rich = theory, theory.pictures[0].parts[1]
        for batch in range(_NETWORKS // _BATCH):
            watch(
                len(found) / _NETWORKS, f"training networks {len(found) + 1} to {len(found) + _BATCH}", answer
            )
            with jax.enable_x64(True):
                keys = jax.random.split(jax.random.key(batch), _BATCH)
                found = np.concatenate([found, np.asarray(trained(model, keys, x, y, lr, self._at))])
            networks = (
                Curve("trained networks", GRID[:, 0], each, "thin", 3, group=f"width {self.width}")
                for each in found
            )
            apart = float(np.sqrt(np.mean((found - rich.y) ** 2)))  # type: ignore[union-attr]
            answer = Answer(
                (theory.pictures[0].plus(*networks), *theory.pictures[1:]),
                (
                    *theory.numbers,
                    Number("trained − rich limit", apart, f"root mean square over {len(found)} networks"),
                ),
                theory.notes,
            )
        return answer

    @property
    def _at(self) -> int:
        """The step of which outputs are kept."""
        return EVERY * round(self.step / EVERY)

    def _data(self) -> tuple[np.ndarray, np.ndarray]:
        x, y = np.array(self.points).T
        return x[:, None], y

    def _net(self, parametrization: str) -> nk.MLP:
        return _net(self.activation, self.weight_var, self.bias_var, parametrization, self.width)

    def _model(self) -> nk.Scaled:
        return nk.Scaled(self._net("mean_field"), 1 / self.richness)

    def python(self, checked: bool = False) -> str:
        values = {
            **self.values(),
            "step": self._at,
            "last": STEPS,
            "batch": _BATCH,
            "batches": _NETWORKS // _BATCH,
        }
        return program(__name__, THEORY + CHECK * checked, **values)


class _Known(NamedTuple):
    """What does not depend on the step that is looked at."""

    law: "nk.results.RichForecast"
    lr: float
    lazy_loss: np.ndarray
    before: np.ndarray
    after: np.ndarray
    moved: float


@functools.lru_cache(maxsize=16)
def _known(points: Points, richness: float, activation: str, weight_var: float, bias_var: float) -> _Known:
    x, y = np.array(points)[:, :1], np.array(points)[:, 1]
    ntk, net = (_net(activation, weight_var, bias_var, name) for name in ("ntk", "mean_field"))
    lr, model = _rate(ntk, x), nk.Scaled(net, 1 / richness)
    law = nk.forecast(model, x, y, nk.GradientDescent(richness**2 * lr, steps=STEPS), GRID, theory=CLOUDS)
    assert isinstance(law, nk.results.RichForecast)
    rates, modes = np.linalg.eigh(nk.kernels.NTK(ntk)(x))
    left = (1 - lr * rates) ** np.arange(STEPS + 1)[:, None] * (modes.T @ y)
    lazy_loss = np.maximum(0.5 * (left**2).sum(axis=1), 1e-12)
    kernels, origin = law.kernels(), np.zeros((1, 1))
    after = kernels.ntk[len(x) :, len(x) + MIDDLE]
    return _Known(law, lr, lazy_loss, nk.kernels.NTK(ntk)(GRID, origin)[:, 0], after, kernels.moved)


def _net(
    activation: str, weight_var: float, bias_var: float, parametrization: str, width: int = 512
) -> nk.MLP:
    return nk.MLP(1, (width,), 1, activation, weight_var, bias_var, parametrization)


def _rate(net: nk.MLP, x: np.ndarray) -> float:
    """Far from unstable, also when the kernel has grown."""
    return 0.5 / float(np.linalg.eigvalsh(nk.kernels.NTK(net)(x))[-1])


@functools.partial(jax.jit, static_argnums=5)
def trained(model, keys, x, y, lr, steps):
    """Outputs on the grid after training."""

    def one(key):
        run = nk.simulate(model, model.init(key), x, y, nk.GradientDescent(lr, steps=steps))
        return model(run.params, GRID)[:, 0]

    return jax.vmap(one)(keys)
