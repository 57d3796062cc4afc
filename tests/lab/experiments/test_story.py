"""The first page tells what its experiments say."""

import json

import numpy as np
import pytest

from nearkernel.lab import NAMES
from nearkernel.lab.picture import plain
from nearkernel.lab.static_files import static
from nearkernel.lab.story import STORY, thinned


def kept():
    return json.loads(static()["story.json"].plain)


def test_six_scenes_stand_in_the_file_as_they_are_written():
    assert len(STORY) == 6
    for scene, found in zip(STORY, kept(), strict=True):
        assert scene.page in NAMES and scene.experiment
        assert {**scene.about(), "picture": found["picture"]} == found
        assert found["picture"]["title"] == scene.picture and found["picture"]["parts"]


@pytest.mark.slow
@pytest.mark.parametrize("scene", STORY, ids=lambda scene: scene.title)
def test_the_pictures_are_those_of_the_experiments(scene):
    found = next(each for each in kept() if each["title"] == scene.title)["picture"]
    now = plain(thinned(scene.drawn()))
    for one, other in zip(found["parts"], now["parts"], strict=True):
        for key in ("y", "z"):
            if key in one:
                a, b = (np.array(part[key], float) for part in (one, other))
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
