"""Notebooks as pages of the site: `notebooks/name.ipynb` becomes `notebooks/name.md` and its pictures."""

import base64
import json
from pathlib import Path

FOLDER = Path(__file__).parent / "notebooks"


def notebooks() -> dict[str, Path]:
    """The page of each notebook, by its place on the site."""
    return {f"notebooks/{path.stem}.md": path for path in sorted(FOLDER.glob("*.ipynb"))}


def page(path: Path) -> tuple[str, dict[str, bytes]]:
    """The Markdown of a notebook and its pictures, by their places on the site."""
    parts, pictures = [], {}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                name = f"{path.stem}-{len(pictures) + 1}.png"
                pictures[f"notebooks/{name}"] = base64.b64decode("".join(data["image/png"]))
                parts.append(f"![]({name})")
            else:
                text = "".join(output.get("text", data.get("text/plain", "")))
                parts.append(f"```text\n{text.rstrip()}\n```")
    parts[0] += f"\n\nThis page is a [notebook]({path.name}) that you can download and run."
    return "\n\n".join(parts) + "\n", pictures
