"""What depth does to signals: ordered, chaotic, and the line between."""

import dataclasses

import numpy as np

import nearkernel as nk

from ..._base.settings import setting
from ...activations.formula import LONGEST, formula, is_formula
from .. import Answer, Curve, Experiment, Heat, Number, Picture, Preset, Watch
from .parts.program import program
from .parts.signals import (
    ALIKE,
    BIAS_VARS,
    NETWORKS,
    SQUARES,
    WEIGHT_VARS,
    Known,
    drawn_layers,
    flow,
    known_of,
)


@dataclasses.dataclass(frozen=True)
class Criticality(Experiment):
    """Each layer of a wide random network multiplies the size of signals, the differences between them and the
    gradients by a factor. In the ordered phase (blue) all inputs become alike and gradients vanish. In the chaotic
    phase (orange) nearby inputs separate and gradients explode. Move the two variances across the line and watch the
    correlations settle elsewhere. At the critical point even the size of signals is preserved. Any activation works:
    type a name or a formula, like tanh(z) + 0.1*z^2."""

    title = "Criticality"
    formulas = (
        r"K^{l+1} = C_b + C_W \, E[\sigma(z)^2], \quad z \sim N(0, K^l)",
        r"\chi = C_W \, E[\sigma'(z)^2], \qquad \text{ordered if } \chi < 1, \quad \text{chaotic if } \chi > 1",
    )
    button = "Draw 100 networks"
    movie = "weight_var"
    presets = (
        Preset(
            "Ordered",
            {"weight_var": 0.8},
            "Two inputs become the same within a few layers, and gradients vanish.",
        ),
        Preset("Chaotic", {"weight_var": 3.5}, "Nearby inputs separate, and gradients explode."),
        Preset(
            "Critical relu",
            {"activation": "relu", "weight_var": 2.0, "bias_var": 0.0, "depth": 40},
            "He initialization: signals keep their size at any depth.",
        ),
        Preset(
            "Any formula",
            {"activation": "tanh(z) + 0.1*z^2", "weight_var": 1.2},
            "The formula is parsed, never executed; its critical point is computed.",
        ),
    )

    activation: str = setting("tanh", "A name, like gelu, or a formula in z.", high=LONGEST)
    weight_var: float = setting(1.8, "Variance of the weights, times fan-in: C_W.", low=0.1, high=5.0)
    bias_var: float = setting(0.05, "Variance of the biases: C_b.", low=0.0, high=1.0)
    depth: int = setting(20, "Number of layers.", low=2, high=40)
    width: int = setting(50, "Neurons per layer of the networks that are drawn.", low=10, high=300, log=True)

    def theory(self) -> Answer:
        known = known_of(self.activation)
        point = nk.statistics.phase_diagram(known.function, [self.weight_var], [self.bias_var])
        pictures = (self._diagram(known), *self._over_depth(known, point))
        return Answer(pictures, self._numbers(known, point), () if known.at.ok else (known.at.message,))

    def check(self, watch: Watch) -> Answer:
        theory = shown = self.theory()
        function, known = known_of(self.activation).function, 0
        for share, drawn in drawn_layers(function, self.weight_var, self.bias_var, self.depth, self.width):
            new = len(drawn) > known
            if new:
                shown = dataclasses.replace(theory, pictures=self._compared(theory.pictures, drawn))
            known = len(drawn)
            watch(share, f"network {known} of {NETWORKS}", shown if new else None)
        return shown

    def _compared(self, pictures: tuple[Picture, ...], drawn: np.ndarray) -> tuple[Picture, ...]:
        with np.errstate(all="ignore"):
            mean, sem = drawn.mean(axis=0), drawn.std(axis=0, ddof=1) / len(drawn) ** 0.5
        parts: list[list[Curve]] = [[], [], [], []]
        columns = iter(range(6))
        for at, picture in enumerate(pictures[1:], start=1):
            for curve in picture.parts:
                if isinstance(curve, Curve) and curve.kind == "line":
                    i = next(columns)
                    error = np.where(np.isfinite(sem[:, i]), sem[:, i], np.nan)
                    parts[at].append(
                        Curve(f"{curve.name}, drawn", curve.x, mean[:, i], "dots", curve.series, sem=error)
                    )
        return tuple(picture.plus(*own) for picture, own in zip(pictures, parts, strict=True))

    def _diagram(self, known: Known) -> Picture:
        parts: list[Heat | Curve] = [Heat("ln χ", WEIGHT_VARS, BIAS_VARS, known.heat, diverging=True)]
        if len(known.line):
            parts.append(Curve("χ = 1", known.line[:, 0], known.line[:, 1], "line", 0))
        if known.at.ok:
            parts.append(Curve("critical point", [known.at.weight_var], [known.at.bias_var], "dots", 3))
        parts.append(Curve("here", [self.weight_var], [self.bias_var], "dots", 2))
        return Picture(
            "Phases", tuple(parts), "weight variance", "bias variance", x_range=(0.1, 5), y_range=(-0.02, 1)
        )

    def _over_depth(self, known: Known, point: nk.results.PhaseDiagramResult) -> tuple[Picture, ...]:
        kernels, correlations, growth = flow(
            known.function, known.most, self.weight_var, self.bias_var, self.depth
        )
        layers, ends = np.arange(1, self.depth + 1), [1, self.depth]
        sizes = [
            Curve(f"from {square:g}", layers, kernels[:, i], "line", 1 + i)
            for i, square in enumerate(SQUARES)
        ]
        angles = [
            Curve(f"from {alike:g}", layers, correlations[:, i], "line", 1 + i)
            for i, alike in enumerate(ALIKE)
        ]
        end, alike = float(point.kernel[0, 0]), float(point.correlation[0, 0])
        if 0 < end < known.most:
            sizes.append(Curve("fixed point", ends, [end, end], "dashes", 0))
        if np.isfinite(alike):
            angles.append(Curve("fixed point", ends, [alike, alike], "dashes", 0))
        return (
            Picture(
                "Size of signals", tuple(sizes), "layer", "mean square", log_y=True, y_range=(1e-3, 1e2)
            ),
            Picture(
                "Correlation of two inputs", tuple(angles), "layer", "correlation", y_range=(-0.15, 1.05)
            ),
            Picture(
                "Growth of a small change, and of gradients",
                (Curve("squared", layers, growth, "line", 1),),
                "layer", "squared, relative to layer 1", log_y=True, y_range=(1e-4, 1e4),
            ),
        )  # fmt: skip

    def _numbers(self, known: Known, point: nk.results.PhaseDiagramResult) -> tuple[Number, ...]:
        here = (
            Number("phase", str(point.phase[0, 0]), "of deep networks with these variances"),
            Number(
                "χ",
                float(point.chi_perp[0, 0]),
                "factor by which a deep layer multiplies squared differences",
            ),
            Number("mean square in deep layers", _said(point.kernel), "for an input of mean square 1"),
            Number("correlation in deep layers", _said(point.correlation), "of two inputs"),
            Number(
                "correlation length",
                _said(point.depth_scale),
                "layers over which the angle between inputs is remembered",
            ),
        )
        if not known.at.ok:
            return (*here, Number("critical point", "none"))
        return (
            *here,
            Number("critical weight variance", known.at.weight_var),
            Number("critical bias variance", known.at.bias_var),
            Number(
                "critical mean square",
                _said(known.at.fixed_point),
                "size of signals that is preserved; none if every size is",
            ),
            Number("universality class", known.at.universality, "how signals behave at the critical point"),
        )

    def python(self, checked: bool = False) -> str:
        known = known_of(self.activation)
        values = {**self.values(), "function": _typed(self.activation.strip()), "most": float(known.most)}
        return program(__name__, _THEORY + _CHECK * checked, **values)


def _typed(activation: str) -> str:
    """How a program says an activation."""
    return f"lambda z: {formula(activation).source}" if is_formula(activation) else repr(activation)


def _said(value: np.ndarray | float) -> float | str:
    number = float(np.squeeze(value))
    return number if np.isfinite(number) else "none" if np.isnan(number) else "infinite"


_THEORY = """
weight_var, bias_var, depth, width, most = {weight_var}, {bias_var}, {depth}, {width}, {most}
function = nk.activations.get({function})
critical = nk.critical(function)
phases = nk.statistics.phase_diagram(function, WEIGHT_VARS, BIAS_VARS)
end = nk.statistics.phase_diagram(function, [weight_var], [bias_var])
print(critical.message, "Here:", end.phase[0, 0])
kernels, correlations, growths = flow(function, most, weight_var, bias_var, depth)

_, ((one, two), (three, four)) = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
heat = np.log(np.clip(phases.chi_perp.T, np.exp(-1), np.exp(1)))
one.pcolormesh(WEIGHT_VARS, BIAS_VARS, heat, cmap="RdBu_r", vmin=-1, vmax=1)
one.plot(*phases.critical_line.T, color="grey", label="χ = 1")
one.plot([critical.weight_var], [critical.bias_var], "o", label="critical point")
one.plot([weight_var], [bias_var], "o", label="here")
one.set(title="Phases", xlabel="weight_var", ylabel="bias_var", xlim=(0.1, 5), ylim=(-0.02, 1))

layers = np.arange(1, depth + 1)
for i in range(3):
    two.plot(layers, kernels[:, i], color=f"C{{i}}", label=f"from {{SQUARES[i]:g}}")
two.plot([1, depth], [end.kernel[0, 0]] * 2, "--", color="grey", label="fixed point")
two.set(title="Size of signals", xlabel="layer", yscale="log")
for i in range(2):
    three.plot(layers, correlations[:, i], color=f"C{{i}}", label=f"from {{ALIKE[i]:g}}")
three.plot([1, depth], [end.correlation[0, 0]] * 2, "--", color="grey", label="fixed point")
three.set(title="Correlation of two inputs", xlabel="layer")
four.semilogy(layers, growths, label="squared")
four.set(title="Growth of a small change, and of gradients", xlabel="layer")
"""
_CHECK = """
*_, (_, drawn) = drawn_layers(function, weight_var, bias_var, depth, width)
with np.errstate(all="ignore"):
    mean, sem = drawn.mean(axis=0), drawn.std(axis=0, ddof=1) / 10
names = [f"from {{each:g}}" for each in (*SQUARES, *ALIKE)] + ["squared"]
for i, axes in enumerate((two, two, two, three, three, four)):
    axes.plot(layers, mean[:, i], "o", ms=4, color=f"C{{(0, 1, 2, 0, 1, 0)[i]}}", label=f"{{names[i]}}, drawn")
    axes.errorbar(layers, mean[:, i], sem[:, i], fmt="none", ecolor="gray")
"""
