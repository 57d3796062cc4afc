"""Bad values for every kind of argument: each must cost one clear line, or give a finite answer."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

import nearkernel as nk
from public_calls._good import KEY, NET, RBF, phi

Values = dict[str, Any]


def masked(good: Any) -> Any:
    found = np.ma.array(np.array(good, dtype=float))
    found[(0,) * found.ndim] = np.ma.masked
    return found


def _with(good: Any, value: float) -> np.ndarray:
    found = np.array(good, dtype=float)
    found[(0,) * found.ndim] = value
    return found


def _array(good: Any) -> Values:
    good = np.asarray(good)
    return {
        "masked": masked(good),
        "nan": _with(good, np.nan),
        "infinite": _with(good, np.inf),
        "complex": good + 1j,
        "text": good.astype(str),
        "objects": np.full(good.shape, None, dtype=object),
        "None": None,
        "a word": "abc",
        "a dictionary": {"a": 1},
        "too large": good * 1e200 + 1e200,
        "beyond floats": [10**400] * max(good.size, 1),
        "a class": np.ndarray,
        "a network": NET,
        "a key": KEY,
    }


def _inputs(good: Any) -> Values:
    good = np.asarray(good)
    return {
        **_array(good),
        "one row": good[0],
        "three axes": good[None],
        "no rows": good[:0],
        "no columns": good[:, :0],
        "ragged": [list(good[0]), list(good[0])[:1]],
        "a number": 1.0,
        "sparse": scipy.sparse.csr_matrix(good),
        "dates": good.astype("datetime64[s]"),
        "masked rows": [masked(row) for row in good],
    }


def _targets(good: Any) -> Values:
    good = np.asarray(good)
    return {
        **_array(good),
        "short": good[:-1],
        "three axes": good[..., None, None],
        "none": good[:0],
        "a number": 1.0,
    }


def _vector(good: Any) -> Values:
    good = np.asarray(good)
    return {**_array(good), "two axes": good[None], "none": good[:0]}


def _probabilities(good: Any) -> Values:
    return {
        **_targets(good),
        "negative": -5.0 * np.ones_like(good),
        "sum 3": 3 * good,
        "one column": good[:, :1],
    }


_NO_NUMBER: Values = {
    "nan": np.nan,
    "text": "abc",
    "complex": 1j,
    "an array": np.ones((2, 2)),
    "beyond floats": 10**400,
    "a truth value": True,
    "a list": [1],
    "masked": np.ma.masked,
    "a class": float,
    "an object": object(),
}


def _steps(good: int) -> Values:
    return {**_NO_NUMBER, "negative": -1, "a half": 1.5, "infinite": np.inf}


def _whole(good: int) -> Values:
    return {**_steps(good), "more than fits": 10**15}


def _positive(good: float) -> Values:
    return {**_NO_NUMBER, "negative": -1.0, "infinite": np.inf, "too large": 1e308}


def _key(good: Any) -> Values:
    return {
        "text": "a",
        "a fraction": 1.5,
        "None": None,
        "a truth value": True,
        "several": jax.random.split(KEY, 3),
        "raw, several": np.zeros((3, 2), np.uint32),
        "not raw": np.zeros(3),
        "too large": 2**70,
        "negative": -1,
        "a list": [0, 1],
        "an object": object(),
    }


def _leaf(tree: Any, change: Callable) -> Any:
    """The tree with its first array changed."""
    leaves, structure = jax.tree.flatten(tree)
    return jax.tree.unflatten(structure, [change(leaves[0]), *leaves[1:]])


def _tree(good: Any) -> Values:
    some, more = (
        (good[:1], [*good, good[0]])
        if isinstance(good, list)
        else (dict([*good.items()][:1]), {**good, "z": 1.0})
    )
    return {
        "None": None,
        "text": "abc",
        "a dictionary": {"a": 1.0},
        "a number": 3.0,
        "one part": some,
        "one more": more,
        "shape": _leaf(good, lambda a: np.ones((2, 2))),
        "masked": _leaf(good, masked),
        "complex": _leaf(good, lambda a: np.asarray(a) * 1j),
        "text inside": _leaf(good, lambda a: np.asarray(a).astype(str)),
        "None inside": _leaf(good, lambda a: None),
        "a network": NET,
        "an array": np.ones(5),
    }


def _params(good: Any) -> Values:
    return {**_tree(good), "nan": _leaf(good, lambda a: np.asarray(a) * np.nan)}


def _factors(good: Any) -> Values:
    wrong = {name: value for name, value in _tree(good).items() if name != "None"}
    return {**wrong, "negative": jax.tree.map(lambda a: -1.0, good), "nan": _leaf(good, lambda a: np.nan)}


def _feature_params(good: np.ndarray) -> Values:
    wrong = {
        "None": None,
        "text": "abc",
        "a dictionary": {"a": 1.0},
        "a number": 3.0,
        "shape": np.ones((2, 2)),
    }
    return {
        **wrong,
        "masked": masked(good),
        "complex": good * 1j,
        "text inside": good.astype(str),
        "axes": good[None],
    }


def _not_a_model(good: Any) -> Values:
    return {"None": None, "text": "relu", "a number": 3, "a function": lambda p, x: x, "a class": nk.MLP}


def _not_a_net(good: Any) -> Values:
    return {**_not_a_model(good), "features": nk.FeatureModel(phi)}


def _kernel_object(good: Any) -> Values:
    return {
        "text": "rbf",
        "a number": 3,
        "a class": nk.kernels.RBF,
        "other inputs": nk.kernels.NTK(nk.MLP(5)),
        "overflows": RBF * 1e150 * 1e150 * 1e100,
        "underflows": RBF * 1e-150 * 1e-150 * 1e-20,
        "nan": nk.kernels.FeatureKernel(lambda x: x * jnp.nan),
        "zero": 0.0 * RBF,
    }


def _kernel(good: Any) -> Values:
    return {
        **_kernel_object(good),
        "None": None,
        "a function of nan": lambda a, b: np.full((len(a), len(b)), np.nan),
        "a function of shape": lambda a, b: np.ones(3),
        "a function of text": lambda a, b: "x",
    }


def _activation(good: Any) -> Values:
    return {
        "unknown": "rellu",
        "None": None,
        "a number": 3,
        "nan": lambda z: z * jnp.nan,
        "shape": lambda z: z[:1],
        "NumPy": lambda z: np.sin(np.asarray(z)),
        "a class": jnp.ndarray,
        "infinite slope": "leaky_relu(1e999)",
        "huge slope": "leaky_relu(1e200)",
        "degree 0": "monomial(0)",
        "empty": "",
        "text": lambda z: "a",
        "complex": lambda z: z * 1j,
    }


def _features(good: Any) -> Values:
    return {
        "None": None,
        "a number": 3,
        "text": "a",
        "nan": lambda x, *u: phi(x) * jnp.nan,
        "infinite": lambda x, *u: phi(x) * jnp.inf,
        "shape": lambda x, *u: jnp.ones((2, 2, 2)),
        "returns text": lambda x, *u: "a",
        "returns None": lambda x, *u: None,
    }


def _function(good: Any) -> Values:
    return {"a number": 3, "text": "a"}


def _observable(good: Any) -> Values:
    return {**_function(good), "returns None": lambda *a: None, "returns text": lambda *a: "s"}


def _widths(good: Any) -> Values:
    return {
        "a dictionary": {4: 1, 5: 2},
        "a set": {4, 5},
        "text": "44",
        "a number": 3,
        "zero": (0, 4),
        "a half": (2.5, 3),
        "None": None,
        "nested": ((3,), (4,)),
        "texts": ("4", "5"),
        "negative": (-1, 3),
        "a matrix": np.ones((2, 2)),
        "truth values": (True, True),
        "beyond floats": (10**400, 3),
        "infinite": (np.inf, 2),
    }


def _memory(good: Any) -> Values:
    sizes = {
        "unit": "4 parsecs",
        "negative": -1,
        "zero": 0,
        "nan": np.nan,
        "infinite": np.inf,
        "list": [1],
        "bool": True,
    }
    return {**sizes, "empty": "", "minus": "-1MiB", "beyond floats": "9" * 400 + "GiB"}


def _labels(good: np.ndarray) -> Values:
    return {
        "one class": np.zeros(len(good)),
        "short": good[:-1],
        "nan": _with(good, np.nan),
        "masked": masked(good),
        "None": None,
        "text": "abc",
        "two columns": np.stack([good, good], axis=1) * 7,
        "three axes": good[:, None, None],
        "none": good[:0],
        "objects": np.full(len(good), None, dtype=object),
        "a dictionary": {"a": 1},
        "a number": 1,
    }


def _algorithm(good: Any) -> Values:
    return {"text": "gd", "a class": nk.GradientDescent, "a number": 3}


def _layers(good: Any) -> Values:
    return {
        "None": None,
        "a number": 3,
        "text": "Dense",
        "a layer": nk.layers.Dense(3),
        "a dictionary": {"a": nk.layers.Dense(3)},
        "a set": {1, 2},
        "a number inside": [*good, 3],
        "a class inside": [nk.layers.Dense, *good],
        "None inside": [*good, None],
        "a list inside": [good],
        "a convolution inside": [nk.layers.Conv(2, (3, 3, 3)), *good],
        "an array": np.ones(3),
    }


def _branches(good: Any) -> Values:
    values = {f"branch: {name}": [value, *good] for name, value in _layers(good[0]).items()}
    return {**_layers(good), **values, "none": []}


KINDS: dict[str, Callable[[Any], Values]] = {
    "inputs": _inputs,
    "targets": _targets,
    "probabilities": _probabilities,
    "vector": _vector,
    "array": _array,
    "complex array": lambda good: {
        "None": None,
        "text": "a",
        "nan": np.nan,
        "masked": masked(1.0),
        "dict": {"a": 1},
    },
    "whole": _whole,
    "steps": _steps,
    "positive": _positive,
    "number": lambda good: {**_NO_NUMBER, "too large": 1e308},
    "key": _key,
    "params": _params,
    "call params": _tree,
    "diagonal params": _tree,
    "feature params": _feature_params,
    "factors": _factors,
    "net": _not_a_net,
    "model": _not_a_model,
    "kernel": _kernel,
    "kernel object": _kernel_object,
    "activation": _activation,
    "activation object": lambda good: {"a name": "relu", "None": None, "a number": 3, "a function": jnp.tanh},
    "features": _features,
    "function": _function,
    "observable": _observable,
    "choice": lambda good: {
        "unknown": "x",
        "None": None,
        "a number": 3,
        "a list": ["a"],
        "an array": np.ones(2),
    },
    "widths": _widths,
    "sizes": lambda good: {name: value for name, value in _widths(good).items() if name != "a number"},
    "layers": _layers,
    "branches": _branches,
    "truth": lambda good: {
        "None": None,
        "a number": 3,
        "text": "yes",
        "an array": np.ones((2, 2)),
        "a list": [],
    },
    "optional key": lambda good: {name: value for name, value in _key(good).items() if name != "None"},
    "name": lambda good: {"None": None, "a number": 3, "empty": " ", "a list": ["a"]},
    "memory": _memory,
    "labels": _labels,
    "algorithm": _algorithm,
    "record": lambda good: {"text": "loss", "a number": 3, "a dictionary": {"a": 1}, "a class": nk.Record},
    "dictionary": lambda good: {
        "None": None,
        "a number": 3,
        "a list": [1],
        "values": {"a": 1},
        "text": {(1, 1): "a"},
    },
    "target": lambda good: {"None": None, "a number": 3, "a function": lambda z: z},
    "estimates": lambda good: {"None": None, "a number": 3, "a list": [1, 2], "one": good[:1], "empty": []},
    "operator": lambda good: {
        "None": None,
        "a number": 3,
        "an array": np.eye(3),
        "a class": nk.geometry.Hessian,
    },
}
