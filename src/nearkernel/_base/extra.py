"""Packages that only some uses need. Each belongs to an extra, and a missing one costs one line that names it."""

import contextlib
import importlib.util
from collections.abc import Iterator

# What each extra of pyproject.toml brings, by the names under which it is imported.
EXTRAS = {
    "plot": ("matplotlib", "cycler"),
    "cli": ("typer", "rich", "pyarrow"),
    "lab": ("starlette", "uvicorn", "h11", "anyio", "plotly", "latex2mathml"),
    "scale": ("zarr", "google_crc32c", "dask", "distributed"),
    "torch": ("torch",),
    "optax": ("optax",),
}
_EXTRA = {module: extra for extra, modules in EXTRAS.items() for module in modules}


class MissingExtra(ImportError):
    """A package of an extra is not installed. The message says which, and how to install it."""


@contextlib.contextmanager
def needing(what: str) -> Iterator[None]:
    """Imports that `what` needs, e.g. "plot()"; the first one of an extra that is missing is named."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in _EXTRA:
            raise
        raise _missing(what, module) from None


def require(module: str, what: str) -> None:
    """The same for a package that is read, or imported elsewhere."""
    if importlib.util.find_spec(module) is None:
        raise _missing(what, module)


def _missing(what: str, module: str) -> MissingExtra:
    package = module.replace("_", "-")
    return MissingExtra(f"{what} needs {package}: pip install 'nearkernel[{_EXTRA[module]}]'.", name=module)
