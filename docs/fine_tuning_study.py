"""How often `nk.inspect` is right: networks trained from scratch and fine-tuned, against its predictions.

    python docs/fine_tuning_study.py            # about twenty minutes on two cores; needs PyTorch
    python docs/fine_tuning_study.py --price    # minutes: two seeds, only what several linearizations cost and gain

Writes tables of docs/guides/before-you-fine-tune.md; without --price also docs/figures/fine_tuning.png.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from fine_tuning_networks import ARCHITECTURES, CLASSES, TRAIN, digits, head_of, network, task
from fine_tuning_report import write, write_price
from fine_tuning_runs import pretrained, trainers
from scipy.stats import spearmanr

import nearkernel as nk
from nearkernel.dynamics import CrossEntropy, Squared
from nearkernel.dynamics.inspection.inspect import halfway

SEEDS, FRESH, STEPS, PIECES = 5, 2, 100, 6  # seeds that the promised errors were chosen by, and others
PRICE_SEEDS = 2
LOSSES = {"squared": Squared(), "cross_entropy": CrossEntropy()}


def parameters(name, seed):
    return {key: tensor.detach().double().numpy() for key, tensor in network(name, seed).named_parameters()}


def studied(name, loss, seeds):
    """Rows of results for one architecture and one loss."""
    function = LOSSES[loss]
    (early, labels), _ = digits()
    model, params = nk.from_torch(network(name, 0), early[:2])
    before = pretrained(model, jnp.asarray(early), jnp.asarray(np.eye(CLASSES)[labels]), function)
    train = trainers(model, function, STEPS)
    for seed in seeds:
        rows, y = task(seed)
        scratch = {key: jnp.asarray(value) for key, value in parameters(name, seed).items() if key in params}
        tuned = dict(before(scratch, jax.random.key(seed)))
        fresh = parameters(name, 100 + seed)
        tuned |= {key: jnp.asarray(fresh[key]) for key in head_of(tuned)}
        for start, theta in (("from scratch", scratch), ("fine-tuned", tuned)):
            yield {"network": name, "loss": loss, "seed": seed, "start": start} | compared(
                model, theta, rows, y, loss, train, jax.random.key(seed)
            )


def compared(model, params, rows, y, loss, train, key):
    x, x_new, targets = rows[:TRAIN], rows[TRAIN:], y[:TRAIN]
    started = time.perf_counter()
    one = nk.inspect(model, params, x, targets, x_new, loss=loss, steps=STEPS)
    middle = time.perf_counter()
    several = nk.inspect(model, params, x, targets, x_new, one.algorithm, loss=loss, pieces=PIECES)
    ended = time.perf_counter()
    z0 = np.asarray(model(params, rows))
    runs = {
        name: np.asarray(run(params, rows, targets, one.algorithm.lr, key)) for name, run in train.items()
    }
    seconds = time.perf_counter() - ended
    found = {"seconds": [middle - started, ended - middle, seconds], "step": one.training_seconds / STEPS}
    for label, inspection in (("one", one), ("several", several)):
        found[label] = judged(inspection, z0, runs, targets, LOSSES[loss])
    found["early"] = float(loss_error(one, runs["descent"], targets, LOSSES[loss])[one.moments <= 5].max())
    return found


def loss_error(inspection, outputs, y, loss):
    true = np.array([loss(jnp.asarray(outputs[t - 1, :TRAIN]), y) for t in inspection.moments])
    return np.abs(inspection.loss - true) / inspection.loss_before


def judged(inspection, z0, runs, y, loss):
    """Predictions beside what training did, by default on images that were not trained on."""
    moments = inspection.moments
    apart = lambda z, predicted: float(
        np.linalg.norm(z[TRAIN:] - predicted) / max(np.linalg.norm(z[TRAIN:] - z0[TRAIN:]), 1e-300)
    )
    descent = runs["descent"]
    end = inspection.prediction
    adam = np.array([float(loss(jnp.asarray(z[:TRAIN]), y)) for z in runs["adam"]])
    reached = int(np.argmin(np.abs(adam - inspection.loss[-1])))
    slow = true_halfway(descent[moments - 1, :TRAIN], z0[:TRAIN], y, moments, loss)
    both = np.isfinite(slow) & np.isfinite(inspection.halfway)
    rank = float(spearmanr(slow[both], inspection.halfway[both])[0]) if both.sum() > 5 else float("nan")
    return {
        "check": inspection.check.tolist(),
        "moments": moments.tolist(),
        "loss_error": loss_error(inspection, descent, y, loss).tolist(),
        "error": [apart(descent[t - 1], z) for t, z in zip(moments, inspection.predictions, strict=True)],
        "labels": float((descent[-1, TRAIN:].argmax(1) == end.argmax(1)).mean()),
        "sgd": apart(runs["sgd"], end),
        "sgd_labels": float((runs["sgd"][TRAIN:].argmax(1) == end.argmax(1)).mean()),
        "adam": apart(runs["adam"][reached], end),
        "adam_labels": float((runs["adam"][reached, TRAIN:].argmax(1) == end.argmax(1)).mean()),
        "halfway": rank,
        "expanded": len(inspection.expanded_at),
        "unstable": inspection.unstable_at,
    }


def true_halfway(outputs, z0, y, moments, loss):
    force = np.asarray(jax.grad(loss)(jnp.asarray(z0), jnp.asarray(y)))
    return halfway(loss, y, force, moments, outputs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="networks with this in their name")
    parser.add_argument(
        "--seeds", type=int, nargs=2, default=(0, SEEDS + FRESH), help="the first, and the last plus one"
    )
    parser.add_argument("--price", action="store_true", help="two seeds, and only the table of prices")
    parser.add_argument("--raw", type=Path, help="keep all results in this file, and go on with those it has")
    arguments = parser.parse_args()
    seeds = (0, PRICE_SEEDS) if arguments.price else arguments.seeds
    rows = json.loads(arguments.raw.read_text()) if arguments.raw and arguments.raw.exists() else []
    done = {(row["network"], row["loss"], row["seed"]) for row in rows}
    with jax.enable_x64(True):
        for name in ARCHITECTURES:
            for loss in LOSSES if arguments.only in name else ():
                began = time.perf_counter()
                left = [seed for seed in range(*seeds) if (name, loss, seed) not in done]
                if not left:
                    continue
                rows.extend(studied(name, loss, left))
                print(f"{name}, {loss}: {time.perf_counter() - began:.0f} s", flush=True)
                if arguments.raw:
                    arguments.raw.write_text(json.dumps(rows))
    if arguments.only:
        return
    if not arguments.price:
        write(rows, SEEDS, STEPS, PIECES)
    write_price([row for row in rows if row["seed"] < PRICE_SEEDS], STEPS, PIECES)


if __name__ == "__main__":
    main()
