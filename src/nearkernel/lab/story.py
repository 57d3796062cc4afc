"""The first page: six pictures from random networks to networks that learn features, each from its experiment.

python -m nearkernel.lab.story      # computes the pictures again, and writes static/story.json
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from .experiment import Experiment
from .experiment_list import find
from .picture import Curve, Picture, plain

PATH = Path(__file__).parent / "static" / "story.json"


@dataclasses.dataclass(frozen=True)
class Scene:
    """One picture of an experiment at chosen settings, and what it says. `checked` ones are trained, too."""

    title: str
    page: str
    settings: Mapping[str, object]
    picture: str
    words: str
    checked: bool = False

    @property
    def experiment(self) -> Experiment:
        return find(self.page).with_settings(self.settings)

    def query(self) -> str:
        """The settings as the address of the page has them."""
        from urllib.parse import urlencode

        known = {each.name: each for each in find(self.page).settings()}
        return urlencode(
            {name: known[name].typed(known[name].checked(value)) for name, value in self.settings.items()}
        )

    def about(self) -> dict[str, object]:
        return {"title": self.title, "page": self.page, "query": self.query(), "words": self.words}

    def drawn(self) -> Picture:
        from .experiment import Watch

        answer = self.experiment.check(Watch()) if self.checked else self.experiment.theory()
        return next(picture for picture in answer.pictures if picture.title == self.picture)


STORY = (
    Scene(
        "Random networks have phases",
        "criticality",
        {"weight_var": 1.8},
        "Phases",
        "Draw the weights at random. Two variances decide whether signals die out or explode with depth. On the line "
        "between order and chaos, deep networks can be trained.",
    ),
    Scene(
        "Together they are a Gaussian process",
        "circle",
        {"time": 0.001, "networks": 20},
        "Outputs",
        "Before training, the outputs of wide networks are Gaussian around zero: the band covers 95% of them. Their "
        "covariance is a kernel.",
        checked=True,
    ),
    Scene(
        "Trained, they are kernel machines",
        "circle",
        {"time": 100.0},
        "Outputs",
        "Gradient descent pulls the band through the points. The tangent kernel stays fixed, so the result is known "
        "before any network is trained.",
    ),
    Scene(
        "Finite width is not quite Gaussian",
        "finite-width",
        {"width": 12, "networks": 20_000},
        "Deviation from the Gaussian",
        "Outputs of narrow networks lean to one side and have heavier tails, by amounts of order 1/width that theory "
        "computes. Dots: 20,000 trained networks.",
        checked=True,
    ),
    Scene(
        "Features are learned, a little",
        "quadratic",
        {},
        "Prediction",
        "A nearly-kernel adds what a fixed kernel leaves out: the kernel moves while the model learns. Each order "
        "brings the prediction closer to the trained model.",
    ),
    Scene(
        "Features are learned, a lot",
        "lazy-rich",
        {"richness": 2.0},
        "Tangent kernel of x and 0",
        "In the rich regime neurons move to where the data need them, and training changes the kernel. That limit is "
        "computed, too, to all orders.",
    ),
)


def thinned(picture: Picture) -> Picture:
    """With at most 61 points per curve: it is shown small."""
    parts = []
    for part in picture.parts:
        if isinstance(part, Curve) and len(part.x) > 61:
            kept = np.linspace(0, len(part.x) - 1, 61).round().astype(int)  # both ends among them
            some = lambda values, kept=kept: np.asarray(values)[kept]
            band = None if part.band is None else (some(part.band[0]), some(part.band[1]))
            part = dataclasses.replace(part, x=some(part.x), y=some(part.y), band=band)
        parts.append(part)
    return dataclasses.replace(picture, parts=tuple(parts))


def made() -> list[dict[str, object]]:
    """The story as the page reads it."""
    return [{**scene.about(), "picture": plain(thinned(scene.drawn()))} for scene in STORY]


if __name__ == "__main__":
    PATH.write_text(json.dumps(made(), separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"Wrote {PATH}.")
