"""Large steps on one point, beyond relu: any activation, random features and meta-features."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, at_most, setting, statistical, unlike
from .._claim import generator, sem
from .._drawing import BLUE, GREEN, ORANGE, PURPLE

_RATIOS = np.arange(1.8, 4.8, 0.04)


class CatapultModes(Claim):
    """Every quadratic model on one point has a catapult from lr = 2/kernel on, up to a limit of at most 4/kernel."""

    source = "graduate course: catapults, open problems"
    formula = "g_i' = g_i (1 - lr r c_i),   r' = r - lr r sum g_i^2 + lr^2 r^2/2 sum c_i g_i^2;   ends with lr ntk < 2"

    width: int = setting(
        400, "Neurons, or half the number of random features.", low=100, high=5000, quick=200
    )
    trials: int = setting(16, "Networks of each kind.", low=4, high=200, quick=6)

    def run(self, seed: int) -> Result:
        rows, found = [], {}
        for kind in ("relu", "tanh", "gelu", "random"):
            rng = generator(seed, kind)
            table = np.array([self._phases(_modes(kind, self.width, rng)) for _ in range(self.trials)])
            (onset, limit, _), error = table.mean(axis=0), [sem(column) for column in table.T]
            rows.append(statistical(f"lr ntk at which the loss rises, {kind}", 2.0, onset, error[0], 0.03))
            if kind == "relu":
                rows.append(
                    statistical("lr ntk at which training diverges, relu", 4.0, limit, error[1], 0.03)
                )
            else:
                rows.append(at_most(f"lr ntk at which training diverges, {kind}", 4.0, limit, error[1]))
            if kind in ("tanh", "random"):
                rows.append(
                    unlike(f"the same, not that of relu, {kind}", 4.0, limit, sem=error[1], tolerance=0.03)
                )
            rows.append(at_most(f"lr ntk after a catapult, at the most, {kind}", 2.0, table[:, 2].max()))
            found[kind] = (onset, limit)
        kinds = list(found)
        return Result(
            tuple(rows),
            {
                "kind": np.arange(len(kinds)),
                **{n: np.array([found[k][i] for k in kinds]) for i, n in ((0, "onset"), (1, "limit"))},
            },
        )

    def _phases(self, modes: nk.results.ModesResult) -> tuple[float, float, float]:
        """Where the loss starts to rise, where it diverges first, and the largest lr ntk at the end in between."""
        path = nk.theory.mode_catapult(modes, 0.0, _RATIOS / modes.ntk, 400)
        losses = 0.5 * np.clip(path.z, -1e150, 1e150) ** 2
        names = np.array([nk.theory.phase_of(each) for each in losses.T])
        rises, fails = np.argmax(names != "lazy"), np.argmax(names == "divergent")
        flown = names[:fails] == "catapult"
        end = (_RATIOS * path.ntk[-1] / modes.ntk)[:fails][flown].max()
        return _RATIOS[rises] - 0.02, _RATIOS[fails] - 0.02, end

    def draw(self, axes, result):
        data = result.data
        for at, (name, color) in enumerate(
            zip(("relu", "tanh", "gelu", "random"), (BLUE, ORANGE, GREEN, PURPLE), strict=True)
        ):
            axes.plot([data["onset"][at], data["limit"][at]], [at, at], "o-", color=color, label=name)
        axes.set(
            xlabel="lr · kernel at initialization, from the first rise of the loss to divergence", yticks=[]
        )


def _modes(kind: str, m: int, rng: np.random.Generator) -> nk.results.ModesResult:
    """A two-layer network at x = 1 to second order, or random features and a random symmetric matrix."""
    from scipy.special import ndtr

    if kind == "random":
        matrix = rng.normal(size=(2 * m, 2 * m))
        curvatures = np.linalg.eigvalsh((matrix + matrix.T) / np.sqrt(4 * m)) * m**-0.5
        return nk.results.ModesResult(rng.normal(), rng.normal(size=2 * m) / np.sqrt(2 * m), curvatures)
    u, v = rng.normal(size=(2, m))
    density = np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)
    s, first, second = {
        "relu": (np.maximum(u, 0), 1.0 * (u > 0), 0 * u),
        "tanh": (np.tanh(u), 1 - np.tanh(u) ** 2, -2 * np.tanh(u) * (1 - np.tanh(u) ** 2)),
        "gelu": (u * ndtr(u), ndtr(u) + u * density, density * (2 - u**2)),
    }[kind]
    blocks = np.array([[v * second, first], [first, 0 * u]]).transpose(2, 0, 1) / np.sqrt(m)
    curvatures, vectors = np.linalg.eigh(blocks)
    slopes = np.einsum("mij,mi->mj", vectors, np.stack([v * first, s], axis=1)) / np.sqrt(m)
    return nk.results.ModesResult(float(v @ s) / np.sqrt(m), slopes.ravel(), curvatures.ravel())
