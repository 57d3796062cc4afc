"""What the package says of itself on an index: the README, with links that lead somewhere from there.

NEARKERNEL_REPOSITORY is the address under which the files of this version are shown, for instance
`<host>/<owner>/nearkernel/blob/v0.2.0`; the release workflow sets it. Then relative links become absolute, and the
project gets URLs. Without it no address is known: the text of the links stays, and pictures are left out with
their captions.
"""

import os
import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

VARIABLE = "NEARKERNEL_REPOSITORY"
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:)([^)\s]+)\)")
_PICTURE = re.compile(
    r"^!\[[^\]]*\]\([^)]*\)\n\n(?:\*[^*]*\*\n\n)?", re.MULTILINE
)  # with its caption in italics
_URLS = {
    "Documentation": "docs/index.md",
    "Changelog": "CHANGELOG.md",
    "Source": "README.md",
    "Security": "SECURITY.md",
}


class Readme(MetadataHookInterface):
    """Fills `readme` and `urls` of pyproject.toml."""

    def update(self, metadata):
        address = os.environ.get(VARIABLE, "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_an_index(text, address)}
        metadata["urls"] = {name: f"{address}/{path}" for name, path in _URLS.items()} if address else {}


def for_an_index(text: str, address: str) -> str:
    """The README with absolute links, or with none."""

    def moved(link: re.Match) -> str:
        picture, words, target = link.groups()
        if not address:
            return words
        return f"{picture}[{words}]({address}/{target}{'?raw=true' if picture else ''})"

    parts = _FENCED.split(text if address else _PICTURE.sub("", text))
    return "".join(part if part.startswith("```") else _LINK.sub(moved, part) for part in parts)
