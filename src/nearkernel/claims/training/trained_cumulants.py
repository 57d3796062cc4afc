"""Trained networks of finite width are not Gaussian."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, setting, statistical, unlike
from .._drawing import ORANGE, Figure

_ENTRIES = {"third": ((0, 0, 0), (0, 1, 1)), "fourth": ((0, 0, 0, 0), (0, 0, 1, 1))}


class TrainedCumulants(Claim):
    """Third and fourth cumulants of trained networks fall as c/n, with a c that is computed without training."""

    source = "talk on the principles of deep learning theory: p(f*), the distribution of trained networks"
    formula = (
        "n k_bcd = T1[ZH, -y] + T1 T1[HH] + Tm[C] + T3, n k_bcde = M M M M V + the same with E[g e] for -y; "
        "two hidden layers, two outputs"
    )

    pairs: int = setting(
        4000, "Pairs of networks that are trained at each width.", low=100, high=20_000, quick=400
    )
    steps: int = setting(10, "Steps of gradient descent.", low=1, high=20)
    smallest: int = setting(
        48, "Smallest width of the last hidden layer; the other is three times as wide.", low=24, high=96
    )

    def run(self, seed: int) -> Result:
        import jax

        x, y = np.array([[1.1, 0.3, -0.5], [-0.4, 0.9, 0.7]]), np.array([[0.9, -0.3], [0.2, 0.7]])
        x_new, descent = np.array([[0.6, -0.8, 0.4]]), nk.GradientDescent(0.3, self.steps)
        widths, found = (self.smallest, 3 * self.smallest), []
        for place, width in enumerate(widths):
            net = nk.MLP(3, (2 * width, width), 2, "erf", weight_var=1.2, bias_var=0.1)
            observable = nk.theory.trained_observables(net, x, y, descent, x_new, cumulants=4)
            found.append(
                nk.measure(observable, net, self.pairs, jax.random.fold_in(jax.random.key(seed), place))
            )
        limit = nk.theory.extrapolated(found, widths)
        theory = nk.forecast(net, x, y, descent, x_new, theory=nk.FiniteWidth())
        assert isinstance(theory, nk.results.FiniteForecast)
        rows, data = [], {"width": np.array([*widths, np.inf])}
        for name, order in (("third", 3), ("fourth", 4)):
            expected = theory.width * theory.cumulants(order).reshape((2,) * order)
            for entry in _ENTRIES[name]:
                said = "".join(str(output) for output in entry)
                value, error = limit.mean[name][entry], limit.sem[name][entry]
                rows.append(
                    statistical(f"n times the cumulant of outputs {said}", expected[entry], value, error)
                )
                data[f"k{said}"] = np.array([*(each.mean[name][entry] for each in found), value])
                data[f"k{said}_sem"] = np.array([*(each.sem[name][entry] for each in found), error])
                data[f"k{said}_theory"] = np.full(3, expected[entry])
        first = rows[0]
        rows.append(unlike("the first of them, if outputs were Gaussian", 0.0, first.measured, sem=first.sem))
        return Result(tuple(rows), data)

    figure = Figure(
        lambda data: 1 / data["width"], "width x cumulant of output 0", xlabel="1/width", xlim=(-0.001, None)
    )
    figure.pair("k000_theory", "k000", "k000_sem", label="third")
    figure.pair("k0000_theory", "k0000", "k0000_sem", label="fourth", color=ORANGE)
