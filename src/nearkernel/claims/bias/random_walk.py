"""A walk with two step lengths, the simplest noise that depends on the place."""

import dataclasses

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, refuted, setting, statistical
from .._claim import generator, sem
from .._drawing import GREY, ORANGE, pair


@dataclasses.dataclass(frozen=True)
class RandomWalk(Claim):
    """A walk that steps by 1 on one half of a circle and by 2 on the other spends 4/5 of its time on the slow
    half."""

    source = "graduate course: implicit bias of SGD"
    formula = "density ~ 1/step^2, so the slow half has (1/1) / (1/1 + 1/4) = 4/5"
    erratum = "The notes say sqrt(2)/(1 + sqrt(2)) = 0.586."

    sites: int = setting(800, "Sites on the circle.", low=40, high=2000, quick=400)
    walkers: int = setting(20_000, "Walkers that are simulated.", low=100, high=200_000, quick=4000)

    def run(self, seed: int) -> Result:
        sites = self.sites // 2 * 2
        steps = np.where(np.arange(sites) < sites // 2, 1, 2)
        density = nk.dynamics.walk_density(steps)
        rng = generator(seed, "walk")
        small = 80  # a circle that is mixed after some thousand steps
        place = rng.integers(0, small, self.walkers)
        for _ in range(3000):
            stride = np.where(place < small // 2, 1, 2)
            place = (place + stride * rng.choice((-1, 1), self.walkers)) % small
        slow = place < small // 2
        expected = nk.dynamics.walk_density(np.where(np.arange(small) < small // 2, 1, 2))[: small // 2].sum()
        rows = (
            exact("slow half, stationary law of the lattice", 4 / 5, density[: sites // 2].sum(), 4 / sites),
            statistical(f"slow half, walkers on {small} sites", expected, slow.mean(), sem(slow)),
            refuted("slow half, as printed", 2**0.5 / (1 + 2**0.5), slow.mean(), sem=sem(slow)),
        )
        bins = np.arange(0, small + 1, 4)
        share = np.histogram(place, bins)[0] / self.walkers
        law = (
            nk.dynamics.walk_density(np.where(np.arange(small) < small // 2, 1, 2)).reshape(-1, 4).sum(axis=1)
        )
        error = np.sqrt(law * (1 - law) / self.walkers)
        return Result(rows, {"site": bins[:-1] + 1.5, "theory": law, "measured": share, "sem": error})

    def draw(self, axes, result):
        data = result.data
        pair(axes, data["site"], data["theory"], data["measured"], data["sem"])
        printed = 2**0.5 / (1 + 2**0.5) * 4 / 40
        axes.plot([0, 40], [printed, printed], color=ORANGE, ls="--", label="as printed")
        axes.axvline(40, color=GREY, lw=0.8)
        axes.set(
            xlabel="site (steps of 1 left, of 2 right)", ylabel="share of walkers in 4 sites", ylim=(0, None)
        )
