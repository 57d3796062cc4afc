"""Which outputs one network in two hundred exceeds."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, setting, statistical, unlike

_SHARES = np.array([0.005, 0.995])


class OuterQuantiles(Claim):
    """Outer quantiles of trained networks follow from four cumulants; a Gaussian of the same mean and variance misses
    them."""

    source = "talk on the principles of deep learning theory: p(f*), the distribution of trained networks"
    formula = "f(q) = mean + std (z + g3/6 (z^2 - 1) + g4/24 (z^3 - 3 z)), z = Phi^-1(q)"

    networks: int = setting(
        60_000, "Networks that are trained.", low=2000, high=400_000, quick=16_000, log=True
    )
    steps: int = setting(40, "Steps of gradient descent.", low=1, high=200)
    width: int = setting(24, "Width of the hidden layer.", low=24, high=200)

    def run(self, seed: int) -> Result:
        import jax
        import scipy.special

        x, y = np.array([[0.9, -0.4], [-0.3, 1.1]]), np.array([0.8, -0.5])
        x_new, descent = np.array([[-0.8, -0.5]]), nk.GradientDescent(0.25, self.steps)
        net = nk.MLP(2, (self.width,), 1, "gelu", weight_var=2.0, bias_var=0.2)
        law = nk.forecast(net, x, y, descent, x_new, theory=nk.FiniteWidth())
        assert isinstance(law, nk.results.FiniteForecast)
        z = scipy.special.ndtri(_SHARES)
        limits, gauss = law.quantile(_SHARES)[:, 0], law.mean[0] + law.std[0] * z
        curve = np.linspace(-3.2, 3.2, 33)
        outputs = law.mean[0] + law.std[0] * curve

        def shares(params):
            end = nk.simulate(net, params, x, y, descent, nk.Record(every=self.steps))
            f = net(end.params, x_new)[0, 0]
            within = (f >= gauss[0]) & (f < gauss[1])
            events = {"below": f < limits, "between": within, "cdf": f < outputs}
            return {name: event.astype(float) for name, event in events.items()}

        found = nk.measure(shares, net, self.networks, jax.random.key(seed))
        rows = []
        for side, (q, name) in enumerate(zip(_SHARES, ("below", "above"), strict=True)):
            share, error = abs(side - found.mean["below"][side]), found.sem["below"][side]
            rows.append(
                statistical(f"share {name} the quantile of four cumulants", min(q, 1 - q), share, error, 0.1)
            )
        between, error = found.mean["between"], found.sem["between"]
        rows.append(unlike("share outside the quantiles of a Gaussian", 0.01, 1 - between, sem=error))
        data = {"output": outputs, "cdf": found.mean["cdf"], "cdf_sem": found.sem["cdf"]}
        data |= {"theory": law.cdf(outputs), "gaussian": scipy.special.ndtr(curve)}
        return Result(tuple(rows), data)

    def draw(self, axes, result):
        data = result.data
        axes.axhline(0, color="0.6", lw=1, label="Gaussian")
        axes.plot(data["output"], data["theory"] - data["gaussian"], label="four cumulants")
        axes.errorbar(
            data["output"], data["cdf"] - data["gaussian"], 2 * data["cdf_sem"], fmt=".", label="networks"
        )
        axes.set(xlabel="output", ylabel="distribution function, less the Gaussian's")
        axes.legend()
