"""Every public argument, with bad values of its kind: one clear line that names an argument, or a finite answer."""

import random
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.models.layers.base import LayerError
from public_calls import CALLS
from public_calls._good import X_NEW
from support.bad_values import KINDS

# Abstract classes, names without arguments, and names that need other libraries, files or clusters.
NOT_CALLED = set(
    """
    AbstractActivation AbstractAlgorithm AbstractKernel AbstractLayer AbstractLoss AbstractModel
    AbstractNetwork AbstractTheory AbstractWideLayer BlockFlow CNN CrossEntropy Direct DirectOptimization Flatten
    GlobalAvgPool GlobalSumPool Identity Linear LipschitzExtension Mercer OneStepNetwork Region
    ResMLP SpectralAlgorithm Squared TimedAlgorithm Transformer build from_network from_torch
    measure_rates Needs Problem names on_cluster open_store plan to_torch torch_operations
    """.split()
)
ROOMS = (
    "activations", "models", "layers", "kernels", "scale", "dynamics", "statistics", "forecasts", "geometry", "theory",
)  # fmt: skip


def test_every_public_name_is_called_or_known_not_to_be():
    rooms = {name: room for room in ROOMS for name in dir(getattr(nk, room))}
    public = set(rooms)
    called = {
        call.name.split(".")[-1 if call.name.startswith(("activations.", "nk.")) else 0] for call in CALLS
    }
    called = {name.split(",")[0].split("(")[0].split(" ")[0] for name in called}
    new, gone = public - called - NOT_CALLED, NOT_CALLED - public
    assert not new, forgotten({name: rooms[name] for name in new})
    assert not gone, (
        f"take {sorted(gone)} out of NOT_CALLED in tests/public_calls/test_bad_inputs.py: no longer public."
    )


def forgotten(rooms: dict[str, str]) -> str:
    """What a contributor should do about public names that are not called, from the room of each."""
    lines = [f"- nk.{room}.{name}: {ledger(room)}" for name, room in sorted(rooms.items())]
    return "\n".join(
        [
            "Public names whose arguments no test tries. Add a Call(name, function, arguments) with good values:",
            *lines,
            "A record that users only read, or a class without arguments, belongs to NOT_CALLED in this file.",
        ]
    )


def ledger(room: str) -> str:
    """The file that lists the calls of a room."""
    guests = {"activations": "models", "scale": "kernels", "forecasts": "statistics", "theory": "<subject>"}
    file = guests.get(room, room)
    return f"tests/public_calls/{file}.py"


def test_contributors_are_told_where_a_new_name_belongs():
    said = forgotten({"Scale": "layers", "IteratedRidge": "dynamics"})
    assert "- nk.layers.Scale: tests/public_calls/layers.py\n" in said
    assert "- nk.dynamics.IteratedRidge: tests/public_calls/dynamics.py\n" in said
    assert all((Path(__file__).parents[2] / ledger(room)).exists() for room in ROOMS if room != "theory")


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_a_bad_argument_costs_one_line_or_is_answered(call):
    unclear = []
    for argument, (kind, good) in call.arguments.items():
        for value, bad in KINDS[kind](good).items():
            outcome = _outcome(call, {**call.good(), argument: bad})
            if outcome:
                unclear.append(f"{argument} = {value}: {outcome}")
    assert not unclear, "\n".join(unclear)


def _outcome(call, arguments) -> str:
    """What is wrong with the answer to these arguments, if anything."""
    before = random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = call.function(**arguments)
            if not _is_finite(found):
                return f"not finite: {found}"
    except (ValueError, TypeError) as error:
        if type(error) not in (ValueError, TypeError, LayerError):
            return f"{type(error).__name__}: {error}"
        if "\n" in str(error) or "`" not in str(error):
            return f"unclear: {error}"
    except MemoryError as error:
        if "free" not in str(error):
            return f"MemoryError: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if random.getstate() != before[0] or not np.array_equal(np.random.get_state()[1], before[1]):  # noqa: NPY002
        return "changed a global random state"
    return ""


def _is_finite(found) -> bool:
    if getattr(found, "ok", True) is False or getattr(found, "name", "") == "divergent":
        return True  # divergence is a result
    if isinstance(found, nk.dynamics.AbstractAlgorithm):
        return True
    if callable(getattr(found, "predict", None)):
        return _is_finite(found.predict(X_NEW).mean)
    return all(
        np.isfinite(np.asarray(leaf)).all()
        for leaf in jax.tree.leaves(found)
        if np.asarray(leaf).dtype.kind in "fc" and np.asarray(leaf).size
    )
