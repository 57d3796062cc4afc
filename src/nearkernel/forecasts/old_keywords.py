"""Keywords of `nk.forecast` before it had theories: they still work, and say what replaces them."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from .._base.check import instance, one_of, refuse_unused, shown
from .._base.warning import warn
from ..kernels.wide.network import NNGP
from ..models.networks.network import AbstractNetwork
from .infinite_width.theory import InfiniteWidth
from .mean_field.theory import MeanField
from .order_half.theory import Kinks
from .order_one.theory import FiniteWidth
from .theory import AbstractTheory

_F = TypeVar("_F", bound=Callable[..., Any])
_OLD = ("order", "neurons", "clouds", "samples", "trained")
_POSITION = 5  # of `order`, which could be given without its name


def replaced(forecast: _F) -> _F:
    """`forecast` that also takes the old keywords, each with a warning that prints its replacement."""

    @functools.wraps(forecast)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        old = {name: kwargs.pop(name) for name in _OLD if name in kwargs}
        if len(args) == _POSITION + 1:
            args, old["order"] = args[:_POSITION], args[_POSITION]
        if not old:
            return forecast(*args, **kwargs)
        if kwargs.get("theory") is not None:
            raise TypeError(
                f"`theory` replaces {_listed(old)}: leave {'it' if len(old) == 1 else 'them'} out."
            )
        if one_of(old.pop("trained", "all"), "trained", ("all", "last")) == "last":
            args, kwargs = _last_layer(args, kwargs, old)
            return forecast(*args, **kwargs)
        theory = _theory(**old)
        _warn(
            _listed(old) if old else "`trained`", "the default" if theory is None else f"`theory={theory!r}`"
        )
        return forecast(*args, **kwargs, theory=theory)

    wrapped.__signature__ = inspect.signature(forecast)  # type: ignore[attr-defined]
    return wrapped  # type: ignore[return-value]


def _theory(
    order: Any = 0, neurons: Any = None, clouds: Any = None, samples: Any = None
) -> AbstractTheory | None:
    """The theory that old keywords stand for; None for the default."""
    if isinstance(order, bool) or order not in (0, 0.5, 1):
        raise ValueError(
            "`order` must be 0 (infinite width), 1 (to order 1/width), or 0.5 (to order width^(-1/2)); "
            f"got {shown(order)}."
        )
    if order == 0:
        refuse_unused("at order 0", neurons=neurons)
    else:
        refuse_unused(f"at order {order:g}", clouds=clouds, samples=samples)
    if order == 1:
        return FiniteWidth() if neurons is None else instance(neurons, "neurons", FiniteWidth)
    if order == 0.5:
        given = {} if neurons is None else dataclasses.asdict(instance(neurons, "neurons", FiniteWidth))
        return Kinks(**{name: value for name, value in given.items() if name != "exact"})
    if clouds is not None:
        refuse_unused("with `clouds`", samples=samples)
        return instance(clouds, "clouds", MeanField)
    return None if samples is None else InfiniteWidth(samples=samples)


def _last_layer(args: tuple, kwargs: dict[str, Any], old: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Arguments with the kernels of training the last layer in the place of the network."""
    if len(old) > ("order" in old) or old.get("order", 0) != 0:
        raise ValueError(f'`trained="last"` cannot be combined with {_listed(old)}.')
    net = args[0] if args else kwargs.get("problem")
    if not isinstance(net, AbstractNetwork):
        raise ValueError('`trained="last"` needs a network: kernels and features have no layers.')
    kernel = NNGP(net)
    _warn('`trained="last"`', "the problem `(nk.kernels.NNGP(net),) * 2`")
    if args:
        return ((kernel, kernel), *args[1:]), kwargs
    return args, {**kwargs, "problem": (kernel, kernel)}


def _listed(names: Any) -> str:
    return " and ".join(f"`{name}`" for name in names)


def _warn(old: str, new: str) -> None:
    warn(f"{old} of nk.forecast is now {new}; the old argument will be removed in 0.5.", DeprecationWarning)
