"""Results show themselves: one readable text, a table in notebooks, a picture on the caller's axes."""

import jax
import matplotlib
import numpy as np
import pytest

import nearkernel as nk
from nearkernel._base.result import Result, brief

matplotlib.use("Agg")
X = np.random.default_rng(0).standard_normal((9, 1))
Y = np.sin(2 * X[:, 0])
GRID = np.linspace(-2, 2, 15)[:, None]
NET = nk.MLP(in_dim=1, widths=(16,), activation="tanh", weight_var=1.5, bias_var=0.1)
KERNEL = nk.kernels.RBF(1.0)


def _fourth_power(z, y):
    return ((z - y) ** 4).sum()


def runs():
    """Results that have a picture, by name."""
    params = NET.init(jax.random.key(0))
    run = nk.simulate(NET, params, X, Y, nk.GradientDescent(0.05, 20))
    quadratic = nk.expand(NET, params, degree=2)
    law = nk.theory.marchenko_pastur(0.5)
    hessian = nk.geometry.Hessian(NET, params, X, Y)
    linear = nk.MLP(in_dim=2, widths=(6,), activation="relu")
    mean_field = nk.MLP(in_dim=1, widths=(64,), activation="tanh", parametrization="mean_field")
    return {
        "Solution": nk.solve(KERNEL, X, Y),
        "Solution at a time": nk.solve(KERNEL, X, Y, nk.GradientDescent(0.1, steps=30)),
        "Solution of a ridge": nk.solve(KERNEL, X, np.stack([Y, -Y], axis=1), nk.Ridge(0.1)),
        "MachineSolution": nk.solve(KERNEL, X, Y, nk.Ridge(0.1), solver="cg"),
        "NystromSolution": nk.solve(KERNEL, X, Y, nk.GradientFlow(time=3.0), solver=nk.dynamics.Nystrom(5)),
        "NearlyKernelSolution": nk.solve(quadratic, X, Y, nk.GradientFlow(time=0.1), order=1),
        "FunctionSpaceSolution": nk.solve(KERNEL, X, Y, nk.GradientFlow(time=1.0), loss=_fourth_power),
        "Prediction": nk.solve(quadratic, X, Y, nk.GradientFlow(time=0.1), order=1).predict(GRID),
        "LeaveOneOut": nk.solve(KERNEL, X, Y, nk.Ridge(0.1)).leave_one_out(),
        "WideForecast": nk.forecast(NET, X, Y, nk.GradientFlow(time=5.0), GRID),
        "PosteriorResult": nk.posterior(KERNEL, X, Y, GRID, noise=0.1),
        "RichForecast": nk.forecast(
            mean_field,
            X[:3],
            Y[:3],
            nk.GradientDescent(0.1, 3),
            GRID[:2],
            theory=nk.MeanField(neurons=64, scrambles=2),
        ),
        "Trajectory": run,
        "PhaseDiagramResult": nk.statistics.phase_diagram("erf", [0.5, 1.0, 2.0], [0.0, 0.1]),
        "Propagation": nk.propagate(NET, X),
        "MarchenkoPasturResult": law,
        "Comparison": law.compare(law.sample(50, jax.random.key(0))),
        "Eigenpairs": nk.geometry.top_eigenpairs(hessian, 2),
        "SpectralDensityResult": nk.geometry.spectral_density(hessian, outliers=1, probes=2, steps=8),
        "RegionsResult": nk.geometry.regions(linear, linear.init(jax.random.key(1)), [[-1, 1], [-1, 1]]),
        "Tuned": nk.dynamics.tune(KERNEL, X, Y),
    }


@pytest.fixture(scope="module")
def results():
    return runs()


def test_every_result_has_a_text_a_table_and_a_picture(results):
    import matplotlib.pyplot as plt

    for name, result in results.items():
        assert isinstance(result, Result), name
        text = repr(result)
        assert text.startswith(f"{type(result).__name__}(") and " object at 0x" not in text, name
        assert len(text.splitlines()) < 30 and max(map(len, text.splitlines())) < 200, text
        assert result._repr_html_().startswith("<table><caption>"), name
        figure, axes = plt.subplots()
        assert result.plot(axes) is axes and axes.has_data() and axes.get_xlabel() and axes.get_ylabel(), name
        plt.close(figure)


def test_a_picture_makes_its_own_figure(results):
    import matplotlib.pyplot as plt

    axes = results["WideForecast"].plot()
    assert axes.figure in map(plt.figure, plt.get_fignums())
    plt.close("all")
    with pytest.raises(TypeError, match=r"`axes` must be Matplotlib axes, e.g. plt.gca\(\); got str."):
        results["WideForecast"].plot("new")


def test_values_are_shown_in_a_few_characters():
    assert brief(np.arange(3.0)) == "[0, 1, 2]"
    assert brief(np.zeros((20, 3))) == "float64[20,3] from 0 to 0"
    assert brief(np.array(["a", "b"])) == "<U1[2]"
    assert brief(np.float64(1 / 3)) == "0.33333" and brief(np.inf) == "inf" and brief(True) == "True"
    assert brief((1,)) == "(1,)" and brief(list(range(9))) == "list of 9"
    assert brief({"a": 1.0}) == "{'a': 1}" and brief(brief) == "brief"
    assert brief(nk.Status(nk.StatusKind.finished, "stopped")) == "'stopped'"
    shapes = []
    jax.jit(lambda z: shapes.append(brief(z)) or z)(np.zeros((2, 2), np.float32))
    assert shapes == ["float32[2,2]"]


def test_solutions_share_their_words():
    """`at(time)`, `predict(x_new, time)`, `residual(time)`, `loss(time)`: the same numbers by every solver."""
    flow = nk.GradientFlow(time=2.0)
    direct = nk.solve(KERNEL, X, Y, flow)
    others = [
        nk.solve(KERNEL, X, Y, flow, solver=nk.dynamics.Nystrom(centers=X)),
        nk.solve(KERNEL, X, Y, flow, loss=lambda z, y: 0.5 * ((z - y) ** 2).sum()),
    ]
    for other in others:
        assert isinstance(other, nk.results.AbstractSolution)
        for time in (0.5, 7.0):
            np.testing.assert_allclose(
                other.at(time).predict(GRID).mean, direct.predict(GRID, time).mean, atol=1e-6
            )
            np.testing.assert_allclose(other.residual(time), direct.at(time).residual(), atol=1e-6)
            assert other.loss(time) == pytest.approx(direct.at(time).loss(), abs=1e-6)
    assert direct.at(7.0).algorithm == nk.GradientFlow(time=7.0) and direct.algorithm == flow
    with pytest.raises(ValueError, match="`time` is not defined for Ridge"):
        nk.solve(KERNEL, X, Y, nk.Ridge(0.1)).at(2.0)
    with pytest.raises(
        ValueError, match="`time` is available with solver='direct' and solver='nystrom' only"
    ):
        nk.solve(KERNEL, X, Y, nk.Ridge(0.1), solver="cg").at(2.0)


def test_another_algorithm_uses_the_same_factor():
    found = nk.solve(KERNEL, X, Y, nk.GradientFlow(time=2.0)).at(nk.Ridge(0.3))
    expected = nk.solve(KERNEL, X, Y, nk.Ridge(0.3))
    np.testing.assert_allclose(found.predict(GRID).mean, expected.predict(GRID).mean, atol=1e-9)
    again = expected.at(nk.Ridge(0.01)).predict(GRID).mean
    np.testing.assert_allclose(again, nk.solve(KERNEL, X, Y, nk.Ridge(0.01)).predict(GRID).mean, atol=1e-8)


class Counted(nk.kernels.AbstractKernel):
    """An RBF kernel that counts its matrices."""

    made: list

    def matrix(self, x1, x2):
        self.made.append((len(x1), None if x2 is None else len(x2)))
        return KERNEL.matrix(x1, x2)

    def traced(self, x1, x2):
        return KERNEL.traced(x1, x2)

    def diagonal(self, x):
        return KERNEL.diagonal(x)


def test_times_share_one_kernel_between_new_and_training_inputs():
    kernel = Counted([])
    found = nk.solve(kernel, X, Y, nk.GradientFlow(time=1.0))
    for time in np.linspace(0.1, 5, 25):
        found.predict(GRID, time)
        found.at(time).predict(GRID)
    assert kernel.made.count((15, 9)) == 1 and len(kernel.made) == 2


def test_the_variance_of_a_posterior_is_made_without_the_covariance():
    law = nk.posterior(KERNEL, X, Y, GRID, noise=0.1)
    variance = law.variance
    assert "cov" not in vars(law)
    np.testing.assert_allclose(variance, np.diagonal(law.cov), atol=1e-12)
    np.testing.assert_allclose(law.std, np.sqrt(np.diagonal(law.cov)), atol=1e-8)
