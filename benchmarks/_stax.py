"""The networks of tests/support/architectures.py in neural-tangents.

PYTHON _stax.py ../tests/golden/architectures.npz     # in its environment: the values that tests compare with
"""

import functools
import sys
from pathlib import Path

import jax
import numpy as np
from neural_tangents import stax

FUNCTIONS = {"relu": stax.Relu, "erf": stax.Erf, "gelu": stax.Gelu}


def _weights(options):
    return {
        "W_std": options["weight_var"] ** 0.5,
        "b_std": options["bias_var"] ** 0.5,
        "parameterization": "ntk",
    }


def layer(kind, options, rank, width=64):
    if kind == "activation":
        return FUNCTIONS[options]()
    if kind == "dense":
        return stax.Dense(options.get("width", width), **_weights(options))
    if kind in ("conv", "local"):
        make = stax.Conv if kind == "conv" else stax.ConvLocal
        where = {"strides": options["strides"], "padding": options["padding"]}
        return make(width, options["filter"], **where, **_weights(options))
    if kind == "pool":
        make = stax.AvgPool if options["kind"] == "avg" else stax.SumPool
        more = {"normalize_edges": options["normalize_edges"]} if options["kind"] == "avg" else {}
        return make(tuple(options["filter"]), tuple(options["strides"]), options["padding"], **more)
    if kind == "global":
        return stax.GlobalAvgPool() if options == "avg" else stax.GlobalSumPool()
    if kind == "flatten":
        return stax.Flatten()
    if kind == "norm":
        return stax.LayerNorm(axis=-1 if options == "channel" else tuple(range(1, rank + 2)))
    if kind == "dropout":
        return stax.Dropout(options, mode="train")
    if kind == "attention":
        linear = options["scaling"] == "linear"
        return stax.GlobalSelfAttention(
            width, 2 * width, 2 * width, 2, linear_scaling=linear, W_key_std=options["qk_var"] ** 0.25,
            W_query_std=options["qk_var"] ** 0.25,
            W_value_std=1.0, W_out_std=options["ov_var"] ** 0.5, b_std=options["bias_var"] ** 0.5,
            attention_mechanism=options["mechanism"].upper(),
        )  # fmt: skip
    merge = {
        "sum": stax.FanInSum,
        "product": stax.FanInProd,
        "concat": functools.partial(stax.FanInConcat, axis=-1),
    }[kind]
    branches = [network(b, rank, width) if b else stax.Identity() for b in options]
    return stax.serial(stax.FanOut(len(branches)), stax.parallel(*branches), merge())


def network(layers, rank, width=64):
    """(init_fn, apply_fn, kernel_fn)."""
    return stax.serial(*(layer(kind, options, rank, width) for kind, options in layers))


def golden(path):
    """NNGP and NTK of all architectures, of 4 inputs and with 4 more, into one file."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from support.architectures import GOLDEN

    found = {}
    for seed, (name, (shape, layers)) in enumerate(GOLDEN.items()):
        draw = np.random.default_rng(seed).normal
        x1, x2 = draw(size=(4, *shape)), draw(size=(4, *shape))
        kernel_fn = network(layers, len(shape) - 1)[2]
        for pair, (a, b) in {"own": (x1, None), "cross": (x1, x2)}.items():
            result = kernel_fn(a, b, ("nngp", "ntk"))
            found[f"{name}/{pair}/nngp"], found[f"{name}/{pair}/ntk"] = map(np.asarray, result)
    np.savez_compressed(path, **found)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    golden(sys.argv[1])
