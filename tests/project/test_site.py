"""What docs/site_*.py add to the site: pages of figures and notebooks, pictures for the dark palette."""

import ast
import io
import json
import re

import numpy as np
import pytest
from PIL import Image

from support.docs_scripts import DOCS, script

gallery, pictures, notebooks = script("site_gallery"), script("site_pictures"), script("site_notebooks")


def test_every_figure_has_a_card_and_a_page_with_its_code():
    names = [figure.name for figure in gallery.FIGURES]
    assert sorted(names) == sorted(path.stem for path in (DOCS / "figures").iterdir())
    assert len(gallery.BY_ANCHOR) == len(names) and all(gallery.groups())
    grid = gallery.grid((DOCS / "gallery.md").read_text("utf-8"))
    for figure in gallery.FIGURES:
        assert f'id="{figure.anchor}" href="gallery/{figure.name}.html"' in grid
        page = figure.markdown()
        assert page.startswith(f"# {figure.title}\n\n![") and page.count(f"figures/{figure.name}.png)") == 1
        shown = re.search(r"^```\npython .*\n```$", page, re.MULTILINE)
        assert shown and "](#" not in page
        if figure.name not in ("lab", "fine_tuning"):  # a photograph, and a study of several files
            assert f"\ndef {figure.name}() -> plt.Figure:" in page


@pytest.mark.parametrize("name", ["band", "drift", "separation_errors"])
def test_the_code_of_a_figure_is_whole(name):
    file, code = gallery.source(name)
    assert (DOCS / file).exists()
    tree = ast.parse(code)
    defined = {each for node in tree.body for each in gallery._defines(node)}
    top = ast.parse((DOCS / file).read_text("utf-8")).body
    everything = {each for node in top for each in gallery._defines(node)}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert used & everything <= defined and name in defined


def test_dark_pictures_keep_hues_and_reverse_lightness():
    colors = np.array(
        [[255, 255, 255], [0, 0, 0], [0, 114, 178], [213, 94, 0], [0, 158, 115], [127, 39, 4]], dtype=np.uint8
    )
    light = Image.fromarray(colors[None])
    dark = np.asarray(pictures.dark(light).convert("RGB"))[0]
    assert np.abs(dark[0] - [0x1E, 0x21, 0x29]).max() <= 1 and dark[1].min() > 200
    before, after = pictures.oklab(colors[2:] / 255), pictures.oklab(dark[2:] / 255)
    turned = [np.arctan2(*each[:, :0:-1].T) for each in (before, after)]
    assert np.abs(np.angle(np.exp(1j * (turned[1] - turned[0])))).max() < 0.15
    np.testing.assert_allclose(pictures.rgb(pictures.oklab(colors / 255)), colors / 255, atol=1e-12)


def test_pictures_with_transparency_and_thumbnails():
    clear = Image.new("RGBA", (900, 300), (0, 0, 0, 0))
    assert np.all(np.asarray(pictures.on_white(clear).convert("RGB")) == 255)
    small = Image.open(io.BytesIO(pictures.png(pictures.thumbnail(clear))))
    assert small.size == (480, 160) and small.mode == "P"


def test_a_notebook_becomes_a_page(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "words"]},
        {
            "cell_type": "code",
            "source": ["print(1)"],
            "outputs": [
                {"output_type": "stream", "text": ["1\n"]},
                {
                    "output_type": "display_data",
                    "data": {"image/png": "iVBORw==", "text/plain": ["<Figure>"]},
                },
            ],
        },
    ]
    path = tmp_path / "one.ipynb"
    path.write_text(json.dumps({"cells": cells}), "utf-8")
    text, files = notebooks.page(path)
    assert text.startswith("# Title\nwords\n\nThis page is a [notebook](one.ipynb)")
    assert text.endswith("```python\nprint(1)\n```\n\n```text\n1\n```\n\n![](one-1.png)\n")
    assert files == {"notebooks/one-1.png": b"\x89PNG"}


@pytest.mark.parametrize(
    ("typed", "page"),
    [
        ("plot", "how-do-i.html#plot-a-result"),
        ("save model", "how-do-i.html#save-a-model-and-load-it"),
        ("GPU", "how-do-i.html#use-a-gpu"),
        ("float32", "how-do-i.html#compute-in-float32"),
    ],
)
def test_the_search_finds(typed, page):
    """In the index of the site that `make docs` built: a section whose title has all the words."""
    index = DOCS.parent / "site/search/search_index.json"
    if not index.exists():
        pytest.skip("the site is not built: make docs")
    words = typed.lower().split()
    titled = [
        section["location"]
        for section in json.loads(index.read_text("utf-8"))["docs"]
        if all(word in re.findall(r"\w+", section["title"].lower()) for word in words)
    ]
    assert page in titled


def test_indices_are_lowered_and_names_are_not():
    hooks = script("site_hooks")
    text = "<p>n_0, λ_max, x_low, K^(l+1), (n, *in_shape), <code>x_i</code></p>"
    shown = (
        "n<sub>0</sub>, λ<sub>max</sub>, x<sub>low</sub>, K<sup>(l+1)</sup>, (n, *in_shape), <code>x_i</code>"
    )
    assert hooks.with_indices(text) == f"<p>{shown}</p>"


def test_signs_of_docstrings_are_single_characters_outside_of_code():
    literal = script("site_signatures").literal
    assert literal("`a -> b` >= 0: (n,) -> (m,), <f, g> <= 1") == "`a -> b` ≥ 0: (n,) → (m,), &lt;f, g> ≤ 1"
