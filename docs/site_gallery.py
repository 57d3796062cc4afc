"""The gallery on the site: a grid of thumbnails, and for each figure a page with the code that draws it.

All of it is made of `gallery.md`, which is one page in the repository, and of the files `gallery_*.py`.
"""

import ast
import html
import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parent
_HEADING = re.compile(r"^##+ (.+)$", re.MULTILINE)
_PICTURE = re.compile(r"^!\[.*?\]\(figures/(\w+)\.png\)\n+", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^`(python [\w./ -]+)`\n*", re.MULTILINE)


@dataclass(frozen=True)
class Figure:
    """A section of `gallery.md` with a picture: its heading, the name of the picture, the group that it is in."""

    title: str
    name: str
    group: str
    text: str

    @property
    def anchor(self) -> str:
        return re.sub(r"[^\w\- ]", "", self.title.lower()).replace(" ", "-")

    @property
    def page(self) -> str:
        return f"gallery/{self.name}.md"

    @property
    def thumbnail(self) -> str:
        return f"gallery/{self.name}-small.png"

    def markdown(self) -> str:
        """Its page: picture, explanation, command and code. Links are those of `gallery.md`."""
        picture, command = _PICTURE.search(self.text), _COMMAND.search(self.text)
        shown = _COMMAND.sub("", _PICTURE.sub("", self.text)).strip().replace("](#", "](gallery.md#")
        parts = [
            f"# {self.title}",
            picture[0].strip(),
            shown,
            "## Code {data-search-exclude}",
            f"```\n{command[1]}\n```",
        ]
        if found := source(self.name):
            parts.append(f"In `docs/{found[0]}`:\n\n```python\n{found[1]}\n```")
        return "\n\n".join(parts) + "\n"


def _figures() -> list[Figure]:
    parts = _HEADING.split((DOCS / "gallery.md").read_text("utf-8"))
    found, group = [], ""
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        if picture := _PICTURE.search(text):
            found.append(Figure(title, picture[1], group, text))
        else:
            group = title
    return found


FIGURES = _figures()
BY_ANCHOR = {figure.anchor: figure for figure in FIGURES}


def groups() -> dict[str, list[Figure]]:
    found: dict[str, list[Figure]] = {}
    for figure in FIGURES:
        found.setdefault(figure.group, []).append(figure)
    return found


def grid(markdown: str) -> str:
    """`gallery.md` with a card in place of each section. The anchors of the sections stay."""
    parts = [_HEADING.split(markdown)[0].strip()]
    for group, figures in groups().items():
        cards = [
            f'<a class="card" id="{each.anchor}" href="{each.page.removesuffix(".md")}.html">'
            f'<img src="{each.thumbnail}" alt="" loading="lazy"><span>{html.escape(each.title)}</span></a>'
            for each in figures
        ]
        parts += [f"## {group}", '<div class="cards">\n' + "\n".join(cards) + "\n</div>"]
    return "\n\n".join(parts) + "\n"


def source(name: str) -> tuple[str, str] | None:
    """The file and the code of the function that draws a figure, with what it uses of that file."""
    for path in sorted(DOCS.glob("gallery_*.py")):
        text = path.read_text("utf-8")
        tree = ast.parse(text).body
        defined = {each: node for node in tree for each in _defines(node)}
        if isinstance(defined.get(name), ast.FunctionDef):
            needed, todo = set(), [name]
            while todo:
                node = defined[todo.pop()]
                if node not in needed:
                    needed.add(node)
                    todo += {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} & set(defined)
            return path.name, _code(text, [node for node in tree if node in needed])
    return None


def _defines(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(each.asname or each.name).partition(".")[0] for each in node.names]
    if isinstance(node, ast.Assign):
        return [each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)]
    return []


def _code(text: str, nodes: list[ast.stmt]) -> str:
    """These statements as they stand in the file, definitions apart."""
    lines, code, last = text.splitlines(), "", None
    for node in nodes:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        apart = any(isinstance(each, ast.FunctionDef | ast.ClassDef) for each in (node, last))
        code += "\n\n" * apart + "\n".join(lines[first - 1 : node.end_lineno]) + "\n"
        last = node
    return code.strip()
