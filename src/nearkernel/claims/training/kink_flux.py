"""Trained relu networks: a correction of order n^(-1/2), by neurons that are driven through their kink."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, setting, statistical, unlike
from .._drawing import Figure


class KinkFlux(Claim):
    """Trained relu networks differ from infinite width by c/sqrt(n), not c/n: c is a flux of neurons through kinks."""

    source = "talk on the principles of deep learning theory: p(f*), for activations with a kink"
    formula = "E f* = infinite width + c n^(-1/2),   dx = -(F_a + theta_aa xi_a e_a s'(x)) dt near u_a = 0"

    pairs: int = setting(
        6000, "Pairs of networks that are trained at each width.", low=100, high=50_000, quick=2000
    )
    steps: int = setting(25, "Steps of gradient descent.", low=1, high=200)

    def run(self, seed: int) -> Result:
        import jax
        import jax.numpy as jnp

        x, y = np.array([[1.2, 0.5, 0.2], [0.5, 1.1, -0.3]]), np.array([1.3, -0.4])
        x_new, descent = np.array([[1.1, -0.4, 0.8]]), nk.GradientDescent(0.3, self.steps)
        record, roots, found = nk.Record(every=self.steps), (8, 16), []
        for root in roots:
            net = nk.MLP(3, (root * root,), 1, "relu", weight_var=1.6, bias_var=0.1)
            middle = nk.forecast(net, x, y, descent, x_new).mean[0]

            def trained(params, net=net, middle=middle):
                end = nk.simulate(net, params, jnp.asarray(x), jnp.asarray(y), descent, record)
                return net(end.params, jnp.asarray(x_new))[0, 0] - middle

            def both(params, trained=trained, root=root):
                """With a last layer of either sign: what is odd in it goes."""
                other = [*params[:-1], jax.tree.map(jnp.negative, params[-1])]
                return root * (trained(params) + trained(other)) / 2

            found.append(nk.measure(both, net, self.pairs, jax.random.fold_in(jax.random.key(seed), root)))
        many = nk.Kinks(tolerance=0.002, most=2**14, seed=seed)
        wide = nk.MLP(3, (10**8,), 1, "relu", weight_var=1.6, bias_var=0.1)  # the limit
        law = nk.forecast(wide, x, y, descent, x_new, theory=many)
        assert isinstance(law, nk.results.KinkForecast)
        theory, error = 1e4 * law.terms[1][0], 1e4 * law.error.mean[0]
        limit = nk.theory.extrapolated(found, roots)
        values, sems = (np.array([float(getattr(each, part)) for each in found]) for part in ("mean", "sem"))
        name, spread = "sqrt(n) times the shift of the mean", float(np.hypot(limit.sem, error))
        half = float(np.hypot(sems[0] / 2, sems[1]))
        rows = (
            statistical(f"{name}, n to infinity", theory, float(limit.mean), spread),
            unlike(f"{name}, n = 256, if it fell as 1/n from n = 64", values[0] / 2, values[1], sem=half),
        )
        data = {"width": np.square(roots).astype(float), "measured": values, "sem": sems}
        return Result(rows, data | {"theory": np.full(len(roots), theory)})

    figure = Figure(
        lambda data: data["width"] ** (-0.5),
        "sqrt(width) x (mean - infinite width)",
        xlabel="1/sqrt(width)",
        xlim=(0, None),
    )
    figure.pair()
