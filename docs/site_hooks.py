"""What the site adds to the pages: files from outside of docs/, pages of figures and notebooks, pictures for the dark
palette, links from names to the API, typeset formulas."""

import html as markup
import io
import posixpath
import re
import sys
from pathlib import Path

from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url
from PIL import Image

from nearkernel._look.mathml import typeset as mathml

sys.path.insert(0, str(Path(__file__).parent))  # so that this file can also be loaded from elsewhere
import site_gallery as gallery
import site_notebooks
import site_pictures

ROOT = Path(__file__).parents[1]
# Files of the repository that the site has too, and where. Pages link to them as they lie in the repository.
OUTSIDE = {
    "src/nearkernel/lab/static/stix-two-math.woff2": "stix-two-math.woff2",
    "src/nearkernel/lab/static/stix-two-math-license.txt": "stix-two-math-license.txt",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "CITATION.cff": "CITATION.cff",
    "benchmarks/README.md": "benchmarks.md",
}
LIGHT = {
    "regime_map"
}  # figures that stay as they are in the dark: there, numbers on colors would be hard to read
_INSIDE = {site: place for place, site in OUTSIDE.items()}
_FENCED = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]+)?")
_IMAGE = re.compile(r'<img\b([^>]*?)\bsrc="([^"]+\.png)"([^>]*)>')
_NAME = re.compile(r"<(a|pre|h\d)\b.*?</\1>|<code>(nk\.)?([A-Za-z_][\w.]*)(\(.*?\))?</code>", re.DOTALL)
_MARKUP = re.compile(r"(<(pre|code|h\d)\b.*?</\2>|<[^>]+>)", re.DOTALL)
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
_INDEX = r"(?:\{([^{}]*)\}|(\([^()]*\)|[+-]?[A-Za-z0-9α-ωΑ-Ω∞]+|[+*]))"  # x_i, x_{ij}, K^(l+1), K^-1
_LOWER = re.compile(rf"((?<![\w\"])[^\W_]{{1,6}}|[)\]⟩‖|'])_{_INDEX}")
_UPPER = re.compile(rf"(?<=[\w)\]⟩‖|>'])\^{_INDEX}")


def on_config(config):
    """Every figure gets its place in the menu, by groups, after the page that shows them all."""
    groups = [{name: [each.page for each in figures]} for name, figures in gallery.groups().items()]
    place = config.nav.index({"Gallery": "gallery.md"})
    config.nav[place] = {"Gallery": [{"All figures": "gallery.md"}, *groups]}
    return config


def on_files(files, config):
    def add(site: str, content: str | bytes) -> None:
        files.append(File.generated(config, site, content=content))

    for place, site in OUTSIDE.items():
        files.append(File.generated(config, site, abs_src_path=str(ROOT / place)))
    pictures = {}
    for site, path in site_notebooks.notebooks().items():
        text, inside = site_notebooks.page(path)
        add(site, text)
        pictures |= inside
    for figure in gallery.FIGURES:
        path = ROOT / f"docs/figures/{figure.name}.png"
        add(figure.page, figure.markdown())
        small = site_pictures.png(site_pictures.thumbnail(Image.open(path)))
        if figure.name in LIGHT:
            add(figure.thumbnail, small)
        else:
            pictures[figure.thumbnail] = small
            add(*_in_the_dark(f"figures/{path.name}", path))
    for site, content in pictures.items():
        add(site, content)
        add(*_in_the_dark(site, io.BytesIO(content)))
    return files


def _in_the_dark(site: str, file) -> tuple[str, bytes]:
    return site.removesuffix(".png") + "-dark.png", site_pictures.png(site_pictures.dark(Image.open(file)))


def on_page_markdown(markdown, page, config, files):
    """Links between files of the repository become links between pages of the site."""
    here = page.file.src_uri
    if here == "gallery.md":
        markdown = gallery.grid(markdown)
    written = "docs/gallery.md" if here.startswith("gallery/") else _INSIDE.get(here, f"docs/{here}")

    def moved(link: re.Match) -> str:
        target, anchor = (
            posixpath.normpath(posixpath.join(posixpath.dirname(written), link[1])),
            link[2] or "",
        )
        site = OUTSIDE.get(target, target.removeprefix("docs/"))
        if site == "gallery.md" and anchor[1:] in gallery.BY_ANCHOR:
            site, anchor = gallery.BY_ANCHOR[anchor[1:]].page, ""
        if site.endswith(".ipynb") and here not in site_notebooks.notebooks():
            site = site.removesuffix("ipynb") + "md"
        return "](" + posixpath.relpath(site, posixpath.dirname(here) or ".") + anchor

    parts = _FENCED.split(markdown)
    return "".join(part if part.startswith("```") else _LINK.sub(moved, part) for part in parts)


def documented() -> dict[str, str]:
    """Where each public name is documented: its page, by the name after `nk.`."""
    found = {}
    for page in sorted((ROOT / "docs/api").glob("*.md")):
        for name in re.findall(r"^::: nearkernel\.([\w.]+)$", page.read_text("utf-8"), re.MULTILINE):
            found[name] = f"api/{page.stem}.html#nearkernel.{name}"
    top = (ROOT / "src/nearkernel/__init__.py").read_text("utf-8")
    for name in re.findall(r"^    from \.\S+ import \w+ as (\w+)$", top, re.MULTILINE):
        for full in [full for full in found if full.endswith(f".{name}")]:
            found.setdefault(name, found[full])
    return found


NAMES = documented()


def on_page_content(html, page, config, files):
    pictures = {file.src_uri for file in files if file.src_uri.endswith("-dark.png")}
    html = _IMAGE.sub(lambda image: for_both_palettes(image, page, pictures), html)
    return _NAME.sub(lambda code: linked(code, page), with_indices(_FORMULA.sub(typeset, html)))


def for_both_palettes(image: re.Match, page, pictures: set[str]) -> str:
    """A picture that has a twin for the dark palette, with it; the theme shows one of the two."""
    before, source, after = image.groups()
    dark = source.removesuffix(".png") + "-dark.png"
    if posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), dark)) not in pictures:
        return image[0]
    return "".join(
        f'<img{before}src="{each}"{after}>' for each in (f"{source}#only-light", f"{dark}#only-dark")
    )


def typeset(formula: re.Match) -> str:
    """`$...$` and `$$...$$` as MathML, which browsers show by themselves: no script and no font is loaded."""
    latex, display = markup.unescape(formula[2]).strip(), "inline" if formula[1] == "span" else "block"
    return mathml(latex, display)


def linked(code: re.Match, page) -> str:
    """A name in the text, `nk.solve`, leads to its place in the API; within a room of the API also `Solution`."""
    _, top, name, _ = code.groups()
    room = re.fullmatch(r"api/(\w+)\.md", page.file.src_uri)
    target = NAMES.get(name if top else f"{room[1]}.{name}" if room else "")
    return f'<a href="{get_relative_url(target, page.url)}">{code[0]}</a>' if target else code[0]


def _lowered(symbol: re.Match) -> str:
    base, index = symbol[1], symbol[2] or symbol[3]
    is_name = min(len(base), len(index)) > 1 and f"{base}{index}".isalpha()
    return symbol[0] if is_name else f"{base}<sub>{index}</sub>"


def with_indices(html: str) -> str:
    """x_i and K^(l+1) of the text, not of code, as they are written by hand; `in_shape`, of two words, is a name."""
    parts = _MARKUP.split(html)  # text, markup, its tag, text, ...
    for i in range(0, len(parts), 3):
        lowered = _LOWER.sub(_lowered, parts[i])
        parts[i] = _UPPER.sub(lambda m: f"<sup>{m[1] or m[2]}</sup>", lowered)
    del parts[2::3]
    return "".join(parts)
