"""Trees of parameters: do they belong to a model, and are their numbers fit to compute with?"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from .._base.check import numeric, positive, shown
from .._run.precision import is_traced
from .base import AbstractModel, Params, in_working_precision, require_model
from .networks.scaled import of_centered


def require_params(model: AbstractModel, params: Params, name: str = "params") -> None:
    """Raises unless `params` is a tree of real numbers, in the structure and the shapes that `model` needs.

    Lists and tuples may stand for each other. A model that does not know its parameters beforehand takes any tree.
    """
    found = _by_path(params)
    if not found:
        raise TypeError(
            f"`{name}` must be a tree of arrays, e.g. `model.init(key)`; got {shown(params)}, which contains none."
        )
    kind, expected = type(model).__name__, model.parameter_shapes()
    if expected is not None:
        needed = _by_path(expected)
        for path in needed:
            if path not in found:
                raise ValueError(
                    f"`{name}` must have the structure of `model.init(key)`; {kind} needs `{name}{path}`."
                )
        for path in found:
            if path not in needed:
                raise ValueError(
                    f"`{name}` must have the structure of `model.init(key)`; {kind} does not use `{name}{path}`."
                )
        for path, leaf in found.items():
            if np.shape(leaf) != needed[path].shape:
                raise ValueError(
                    f"`{name}{path}` must have shape {needed[path].shape} for this {kind}; got {np.shape(leaf)}."
                )
    for path, leaf in found.items():
        _require_numbers(leaf, name + path)


def checked_params(model: AbstractModel, params: Params, name: str = "params") -> Params:
    """`params` in the structure of the model's own, after `require_params` and with all numbers finite.

    Arrays traced by the caller are not looked at.
    """
    require_model(model)
    require_params(model, params, name)
    for path, leaf in _by_path(params).items():
        if not is_traced(leaf):
            numeric(leaf, name + path, "did training diverge?")
    expected = model.parameter_shapes()
    return params if expected is None else _like(expected, params)


def _like(tree: Any, other: Any) -> Any:
    """`other`, whose leaves are at the same paths, in the structure of `tree`."""
    found = _by_path(other)
    return jax.tree.unflatten(jax.tree.structure(tree), [found[path] for path in _by_path(tree)])


def floating_params(model: AbstractModel, params: Params, name: str = "params") -> Params:
    """`checked_params` in the working precision, refused unless all are of floating point: what derivatives need."""
    require_model(model)
    leaves = jax.tree.leaves(params)
    kinds = [getattr(leaf, "dtype", type(leaf)) for leaf in leaves]
    if not kinds or not all(kind is float or jnp.issubdtype(kind, jnp.floating) for kind in kinds):
        raise TypeError(
            f"`{name}` must be a tree of floating-point arrays; it has no arrays, or other values among them."
        )
    return in_working_precision(checked_params(model, params, name))


def checked_factors(factors: Any, params: Params, name: str = "lr_factors") -> Any:
    """`factors` if it is a tree like `params` of finite numbers >= 0, one for each array or for each entry."""
    found, arrays = _by_path(factors), _by_path(params)
    if set(found) != set(arrays):
        wrong = sorted(set(arrays) ^ set(found))[0]
        raise ValueError(
            f"`{name}` must be one number or a tree like `params`, e.g. `net.lr_factors()`; `{name}{wrong}` is "
            f"{'missing' if wrong in arrays else 'not a parameter'}."
        )
    for path, factor in found.items():
        if is_traced(factor):
            continue
        values = numeric(factor, name + path)
        if values.shape not in ((), np.shape(arrays[path])):
            raise ValueError(
                f"`{name}{path}` must be one number or have shape {np.shape(arrays[path])}; got {values.shape}."
            )
        if values.min(initial=0.0) < 0:
            raise ValueError(f"`{name}{path}` must be at least 0; got {values.min():g}.")
    return _like(params, factors)


def training_factors(model: AbstractModel, params: Params, given: Any = None, optimizer: str = "sgd") -> Any:
    """The learning-rate factors of training, a tree like `params`; None if all are 1.

    `given` is None for the model's own with this `optimizer`, one number for all parameters, or a tree; a tree like
    the inner parameters of a centered `nk.Scaled` is enough.
    """
    arrays = _by_path(params)
    if given is None:
        own = _by_path(model.own_factors(optimizer))  # a layer that does not know its factors has 1
        given = jax.tree.unflatten(jax.tree.structure(params), [own.get(path, 1.0) for path in arrays])
    elif jax.tree_util.all_leaves([given]) and np.ndim(given) == 0:
        factor = positive(given, "lr_factors")
        given = jax.tree.map(lambda _: factor, params)
    else:
        inner = isinstance(params, dict) and set(params) == {"params", "start"}
        if inner and set(_by_path(given)) == set(_by_path(params["params"])):
            given = of_centered(given)
        given = checked_factors(given, params)
    plain = all(not is_traced(leaf) and np.all(np.asarray(leaf) == 1) for leaf in jax.tree.leaves(given))
    return None if plain else given


def root_factors(factors: Any, params: Params) -> jax.Array | None:
    """The root of the learning-rate factor of each parameter, (P,); None if all are 1.

    Training with factors is plain training of parameters that are divided by these roots.
    """
    if factors is None:
        return None
    spread = jax.tree.map(lambda factor, leaf: jnp.broadcast_to(factor, jnp.shape(leaf)), factors, params)
    return jnp.sqrt(ravel_pytree(spread)[0])


def _require_numbers(leaf: Any, name: str) -> None:
    dtype = leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype
    if isinstance(leaf, np.ma.MaskedArray) or not (
        jnp.issubdtype(dtype, jnp.floating) or jnp.issubdtype(dtype, jnp.integer)
    ):
        numeric(leaf, name)  # says what is wrong with it
        raise TypeError(f"`{name}` must hold real numbers; got {shown(leaf)} of type {dtype}.")


def _by_path(tree: Any) -> dict[str, Any]:
    """Leaves by where they are, such as "[0]['weight']"."""
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]}
