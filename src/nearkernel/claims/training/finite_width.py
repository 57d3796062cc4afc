"""The distribution of trained networks, one order beyond infinite width."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, setting, statistical
from .._drawing import Figure


class FiniteWidth(Claim):
    """Mean and variance of trained networks differ from those of infinitely wide ones by c/n, with a c that is
    computed without training."""

    source = "talk on the principles of deep learning theory: p(f*), the distribution of trained networks"
    formula = "E f* = infinite width + (metric + NTK mean + NTK variance + NTK with outputs + dNTK + ddNTK)/n"

    pairs: int = setting(
        3000, "Pairs of networks that are trained at each width.", low=100, high=10_000, quick=600
    )
    steps: int = setting(6, "Steps of gradient descent.", low=1, high=20)
    smallest: int = setting(
        32, "Smallest width; the others are twice and four times as wide.", low=16, high=64
    )

    def run(self, seed: int) -> Result:
        import jax

        x, y = np.array([[1.3, 0.8, -0.3], [0.4, 1.2, 0.5]]), np.array([1.2, 0.3])
        x_new, descent = np.array([[1.0, -0.5, 0.9]]), nk.GradientDescent(0.23, self.steps)
        widths = self.smallest * np.array([1, 2, 4])
        found = []
        for place, width in enumerate(widths):
            net = nk.MLP(3, (int(width),), 1, "tanh", weight_var=1.5, bias_var=0.15)
            observable = nk.theory.trained_observables(net, x, y, descent, x_new)
            key = jax.random.fold_in(jax.random.key(seed), place)
            found.append(nk.measure(observable, net, self.pairs, key))
        theory = nk.forecast(net, x, y, descent, x_new, theory=nk.FiniteWidth())
        assert isinstance(theory, nk.results.FiniteForecast)
        scale = float(widths[-1])
        expected = {"mean": scale * theory.terms[1][0], "cov": scale * theory.cov_terms[1][0, 0]}
        rows, data = [], {"width": widths.astype(float)}
        for name, said in (("mean", "mean"), ("cov", "variance")):
            values = np.array([np.ravel(each.mean[name])[0] for each in found])
            errors = np.array([np.ravel(each.sem[name])[0] for each in found])
            # A straight line in 1/n through the three, weighted by their errors: its value at infinite width.
            design = np.stack([np.ones(3), 1.0 / widths], axis=1) / errors[:, None]
            cover = np.linalg.inv(design.T @ design)
            limit = cover @ design.T @ (values / errors)
            rows.append(
                statistical(
                    f"n times the correction of the {said}", expected[name], limit[0], cover[0, 0] ** 0.5
                )
            )
            data |= {f"{said}": values, f"{said}_sem": errors, f"{said}_theory": np.full(3, expected[name])}
        return Result(tuple(rows), data)

    figure = Figure(
        lambda data: 1 / data["width"], "width x (mean - infinite width)", xlabel="1/width", xlim=(0, None)
    )
    figure.pair("mean_theory", "mean", "mean_sem")
