"""A walk with two step lengths, the simplest noise that depends on the place."""

import numpy as np

import nearkernel as nk

from .. import Claim, Erratum, Result, exact, refuted, setting, statistical
from .._claim import generator, sem
from .._drawing import GRAY, ORANGE, pair


class RandomWalk(Claim):
    """A walk that steps by 1 on one half of a circle and by 2 on the other spends 4/5 of its time on the slow
    half."""

    source = "graduate course: implicit bias of SGD"
    formula = "density ~ 1/step^2, so the slow half has (1/1) / (1/1 + 1/4) = 4/5"
    erratum = Erratum(
        "graduate course, line 1950",
        "the slow half has the share sqrt(2)/(1 + sqrt(2)) = 0.586",
        "away from the boundary, as line 1951 says",
        "slow half away from the boundary, as in line 1950",
    )

    sites: int = setting(800, "Sites on the circle.", low=40, high=2000, quick=400)
    walkers: int = setting(20_000, "Walkers that are simulated.", low=100, high=200_000, quick=4000)

    def run(self, seed: int) -> Result:
        sites = self.sites // 2 * 2
        steps = np.where(np.arange(sites) < sites // 2, 1, 2)
        density = nk.theory.walk_density(steps)
        rng = generator(seed, "walk")
        small = 80  # a circle that is mixed after some thousand steps
        place = rng.integers(0, small, self.walkers)
        for _ in range(3000):
            stride = np.where(place < small // 2, 1, 2)
            place = (place + stride * rng.choice((-1, 1), self.walkers)) % small
        slow = place < small // 2
        law = nk.theory.walk_density(np.where(np.arange(small) < small // 2, 1, 2))
        away = (np.arange(small) % 40 >= 10) & (np.arange(small) % 40 < 30)  # from both ends of a half
        expected, far = law[: small // 2].sum(), law[: small // 2] @ away[: small // 2] / (law @ away)
        inside, printed = slow[away[place]], 2**0.5 / (1 + 2**0.5)
        rows = (
            exact("slow half, stationary law of the lattice", 4 / 5, density[: sites // 2].sum(), 4 / sites),
            statistical(f"slow half, walkers on {small} sites", expected, slow.mean(), sem(slow)),
            refuted("slow half, as in line 1950", printed, slow.mean(), sem=sem(slow)),
            statistical("slow half away from the boundary", far, inside.mean(), sem(inside)),
            refuted(
                "slow half away from the boundary, as in line 1950", printed, inside.mean(), sem=sem(inside)
            ),
        )
        bins = np.arange(0, small + 1, 4)
        share = np.histogram(place, bins)[0] / self.walkers
        law = law.reshape(-1, 4).sum(axis=1)
        error = np.sqrt(law * (1 - law) / self.walkers)
        return Result(rows, {"site": bins[:-1] + 1.5, "theory": law, "measured": share, "sem": error})

    def draw(self, axes, result):
        data = result.data
        pair(axes, data["site"], data["theory"], data["measured"], data["sem"])
        printed = 2**0.5 / (1 + 2**0.5) * 4 / 40
        axes.plot([0, 40], [printed, printed], color=ORANGE, ls="--", label="line 1950")
        axes.axvline(40, color=GRAY, lw=0.8)
        axes.set(
            xlabel="site (steps of 1 left, of 2 right)", ylabel="share of walkers in 4 sites", ylim=(0, None)
        )
