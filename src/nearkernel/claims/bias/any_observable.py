"""Observables of one's own where SGD is stationary."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, Row, setting, statistical
from .._claim import generator
from .._drawing import BLUE, GRAY


class AnyObservable(Claim):
    """Where SGD is stationary, any observable has the same mean before and after a step."""

    source = "graduate course: SGD, fluctuation and dissipation"
    formula = "<E_B O(theta - lr g_B) - O(theta)> = 0 for |theta|^2, the loss, a fourth power, a cosine"

    steps: int = setting(100_000, "Steps of SGD.", low=10_000, high=1_000_000, quick=30_000)

    def run(self, seed: int) -> Result:
        import jax
        import jax.numpy as jnp

        rng = generator(seed, "data")
        x = rng.normal(size=(8, 2))
        y = x @ rng.normal(size=2) + rng.normal(size=8)
        model = nk.FeatureModel(lambda x: x, in_dim=2)
        lr = 0.3 / np.linalg.eigvalsh(x.T @ x)[-1]
        sgd, start = nk.SGD(lr, 2, self.steps), model.init()
        flat = lambda p: jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(p)])
        observables = {
            "|theta|^2": lambda p: jnp.sum(flat(p) ** 2),
            "|z - y|^2": lambda p: 0.5 * jnp.sum((model(p, jnp.asarray(x))[:, 0] - y) ** 2),
            "theta_1^4": lambda p: flat(p)[0] ** 4,
            "cos(theta_1 + theta_2)": lambda p: jnp.cos(jnp.sum(flat(p))),
        }
        changes = {name: nk.theory.step_change(o, model, start, x, y, sgd) for name, o in observables.items()}
        record = nk.Record({**changes, **{f"size of {n}": o for n, o in observables.items()}}, every=20)
        history = nk.simulate(model, start, x, y, sgd, record, key=jax.random.key(seed)).history
        rows: list[Row] = []
        means, errors = [], []
        for name in observables:
            late = np.asarray(history[name])[len(history[name]) // 10 :]
            blocks = late[: len(late) // 30 * 30].reshape(30, -1).mean(axis=1)
            error = blocks.std(ddof=1) / np.sqrt(30)
            rows.append(statistical(f"mean change of {name} in a step", 0.0, blocks.mean(), error))
            spread = np.std(np.asarray(history[f"size of {name}"]))
            means.append(blocks.mean() / spread)
            errors.append(error / spread)
        return Result(
            tuple(rows), {"observable": np.arange(4), "change": np.array(means), "sem": np.array(errors)}
        )

    def draw(self, axes, result):
        data = result.data
        axes.errorbar(
            data["observable"], data["change"], data["sem"], fmt="o", color=BLUE, capsize=2, label="measured"
        )
        axes.axhline(0, color=GRAY, ls="--", lw=1)
        axes.set(ylabel="mean change in a step / spread", xticks=[])
