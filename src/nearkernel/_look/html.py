"""Pieces of a page as pure functions: text goes in, escaped HTML comes out."""

from __future__ import annotations

import functools
import importlib.resources
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._base.printable import escape
from .drawing import PAGE_COLORS


class Html(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def _safe(value: Any) -> str:
    """HTML as it is; everything else escaped, lists with commas."""
    if isinstance(value, Html):
        return value
    return escape(", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))


def joined(*parts: Html) -> Html:
    return Html("\n".join(parts))


@functools.cache
def style() -> str:
    """The CSS."""
    return importlib.resources.files(__package__).joinpath("look.css").read_text(encoding="utf-8")


def page(title: str, kicker: str, headline: str, lead: str | Html, *parts: Html) -> Html:
    """A whole page with its style inside: one file, which asks for no other."""
    head = (
        f'<header><p class="kicker">{_safe(kicker)}</p>\n<h1>{_safe(headline)}</h1>\n'
        f'<p class="lead">{_safe(lead)}</p></header>'
    )
    return Html(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_safe(title)}</title>\n<style>\n{style()}</style>\n</head>\n<body>\n<main>\n"
        + joined(Html(head), *parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def section(title: str, *parts: Html) -> Html:
    return joined(Html(f"<h2>{_safe(title)}</h2>"), *parts)


def heading(title: str) -> Html:
    """Of a part of a section."""
    return Html(f"<h3>{_safe(title)}</h3>")


def paragraphs(*texts: str | Html) -> Html:
    return Html("\n".join(f"<p>{_safe(text)}</p>" for text in texts))


def warning(text: str | Html) -> Html:
    """What must not be overlooked."""
    return Html(f'<p class="warning"><b class="bad">Warning.</b> {_safe(text)}</p>')


def table(head: Sequence[Any], rows: Iterable[Sequence[Any]], words: bool = False) -> Html:
    """Names at the left, numbers aligned at the right, or `words` at the left; scrolls sideways where too wide."""
    cells = lambda kind, row: "".join(f"<{kind}>{_safe(cell)}</{kind}>" for cell in row)
    body = "".join(f"<tr>{cells('td', row)}</tr>\n" for row in rows)
    kind = ' class="words"' if words else ""
    return Html(f'<div class="scroll"><table{kind}>\n<tr>{cells("th", head)}</tr>\n{body}</table></div>')


def dot(series: int) -> Html:
    """A spot in the color of a series, 1 to 6."""
    return Html(f'<span class="dot series-{series}"></span>')


def definitions(items: Mapping[Any, Any]) -> Html:
    """Terms and what they are."""
    pairs = "".join(f"<dt>{_safe(key)}</dt><dd>{_safe(value)}</dd>\n" for key, value in items.items())
    return Html(f"<dl>\n{pairs}</dl>")


def code(text: str) -> Html:
    return Html(f"<pre><code>{_safe(text)}</code></pre>")


def figure(title: str, caption: str, *panels: Html, wide: bool = False) -> Html:
    """Panels side by side with one caption below, if there is one; more than one panel takes the whole width."""
    label = f'<svg role="img" aria-label="{_safe(title)}" '
    labeled = "\n".join(panel.replace("<svg ", label, 1) for panel in panels)
    kind = ' class="wide"' if wide or len(panels) > 1 else ""
    words = f"<figcaption><b>{_safe(title)}</b> {_safe(caption)}</figcaption>" if caption else ""
    return Html(f'<figure{kind}>\n<div class="panels">{labeled}</div>\n{words}</figure>\n')


def pictures(*figures: Html) -> Html:
    """Figures in as many columns as fit."""
    return Html(f'<div class="pictures">\n{"".join(figures)}</div>')


def beside(*parts: Html) -> Html:
    """Parts in columns where there is room, one below the other where not."""
    return Html('<div class="beside">\n' + "\n".join(parts) + "</div>")


def inline(svg: str, name: str) -> Html:
    """An SVG drawn by `_look.drawing`, in the colors of the page around it; `name` keeps its ids apart on the page."""
    text = svg[svg.index("<svg") :]
    mark = re.sub(r"\W+", "-", name)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{mark}-', text)
    text = re.sub(r'href="#', f'href="#{mark}-', text)
    text = text.replace("url(#", f"url(#{mark}-")
    return Html(re.sub(r"#[0-9a-f]{6}\b", lambda color: PAGE_COLORS.get(color.group(), color.group()), text))


def reproduce(command: str) -> Html:
    """What to type to get the page again."""
    return section("How to make this again", code(command))


def footer(versions: Mapping[str, str]) -> Html:
    return Html(
        f"<footer>{_safe(' · '.join(f'{name} {number}' for name, number in versions.items()))}</footer>"
    )
