"""Predict what a neural network does after training, without training it, and check it against real training."""

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
    from ._api import *  # noqa: F403

__version__ = "0.2.0"


_ROOMS = (
    "activations", "claims", "dynamics", "estimators", "geometry", "kernels", "layers", "models", "scale", "statistics",
)  # fmt: skip


def __getattr__(name: str) -> _typing.Any:
    """Everything is imported when it is first used, so that the command line answers at once."""
    if name == "__all__":  # asked for by `from nearkernel import *`
        return list(_offered())
    if name in _ROOMS:
        return _importlib.import_module(f".{name}", __name__)
    if name == "phase":
        from ._base.rooms import moved

        return moved(__name__, {"phase": "learning_rate_phase"})(name)
    if not name.startswith("_"):
        globals().update(_offered())
        if name in globals():
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}.{_hint(name)}")


def _hint(name: str) -> str:
    """What may have been meant; private names are asked for by Python itself, and answered without any import."""
    if name.startswith("_"):
        return ""
    from ._base.check import nearest

    return nearest(name, sorted({*_offered(), *_ROOMS}))


def __dir__() -> list[str]:
    return sorted({*globals(), *_offered(), *_ROOMS})


def _offered() -> dict[str, _typing.Any]:
    api = _importlib.import_module("._api", __name__)
    return {name: value for name, value in vars(api).items() if not name.startswith("_")}
