"""What a result was made with."""

import importlib.metadata
import platform

from .. import __version__

_PACKAGES = ("jax", "numpy", "scipy", "scikit-learn")


def versions() -> dict[str, str]:
    others = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"nearkernel": __version__, "python": platform.python_version(), **others}
