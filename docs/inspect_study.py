"""What else a linearization tells: other heads, rows left out, and one order more, against networks that are trained.

    python docs/inspect_study.py        # minutes; needs PyTorch

Writes the second table of docs/guides/before-you-fine-tune.md.
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from fine_tuning_networks import ARCHITECTURES, CLASSES, TRAIN, digits, head_of, network, task
from fine_tuning_report import replace
from fine_tuning_runs import pretrained
from fine_tuning_study import parameters
from scipy.stats import spearmanr

import nearkernel as nk
from nearkernel.dynamics import Squared
from nearkernel.theory import has_kinks

SEEDS, HEADS, LEFT_OUT, STEPS, PIECES = 2, 8, 10, 100, 6
NETWORKS = [
    name for name in ARCHITECTURES if not name.startswith("transformer")
]  # convolutions and dense layers


def trainer(model):
    """Outputs at all rows after gradient descent on those training rows whose weight is 1."""

    @jax.jit
    def run(params, rows, y, weights, rate):
        loss = lambda p: 0.5 * jnp.sum(weights[:, None] * (model(p, rows[:TRAIN]) - y) ** 2)
        step = lambda p, _: (jax.tree.map(lambda a, g: a - rate * g, p, jax.grad(loss)(p)), None)
        return model(jax.lax.scan(step, params, None, STEPS)[0], rows)

    return lambda *arguments: np.asarray(run(*arguments))


class Linear:
    """The linearized network on `rows`: one kernel, then any subset of the training rows at no cost."""

    def __init__(self, model, params, rows):
        self.start = np.asarray(model(params, rows))
        self.kernel = nk.kernels.EmpiricalNTK(model, params).full(rows)[:, :, :TRAIN]
        self.rate = 1 / np.linalg.eigvalsh(self._flat(np.arange(TRAIN)))[-1]

    def _flat(self, kept):
        part = self.kernel[kept][:, :, kept]
        return part.reshape(len(kept) * CLASSES, -1)

    def trained(self, y, rate, kept):
        lam, vectors = np.linalg.eigh(self._flat(kept))
        lam = np.maximum(lam, 1e-12 * lam[-1])
        force = vectors.T @ (y[kept] - self.start[kept]).ravel()
        moved = vectors @ ((1 - (1 - rate * lam) ** STEPS) / lam * force)
        return self.start + (self.kernel[:, :, kept].reshape(len(self.start) * CLASSES, -1) @ moved).reshape(
            -1, CLASSES
        )


def studied(name):
    (early, labels), _ = digits()
    model, params = nk.from_torch(network(name, 0), early[:2])
    before = pretrained(model, jnp.asarray(early), jnp.asarray(np.eye(CLASSES)[labels]), Squared())
    train, everything = trainer(model), np.ones(TRAIN)
    for seed in range(SEEDS):
        rows, y = task(seed)
        y = y[:TRAIN]
        tuned = dict(
            before(
                {k: jnp.asarray(v) for k, v in parameters(name, seed).items() if k in params},
                jax.random.key(seed),
            )
        )
        starts = []
        for head in range(HEADS):
            fresh = parameters(name, 100 + HEADS * seed + head)
            starts.append(tuned | {key: jnp.asarray(fresh[key]) for key in head_of(tuned)})
        first = Linear(model, starts[0], rows)
        rate = first.rate
        whole = train(starts[0], rows, y, everything, rate)
        found = {"name": name, "moved": np.linalg.norm(whole[TRAIN:] - first.start[TRAIN:])}
        found |= left_out(first, train, starts[0], rows, y, rate, whole)
        found |= over_heads(model, train, starts, rows, y, rate)
        found |= orders(model, starts[0], rows, y, rate, whole[TRAIN:], found["moved"])
        yield found


def left_out(linear, train, params, rows, y, rate, whole):
    """Change of the outputs at new images when a training image is left out: predicted and real."""
    predicted, real = [], []
    base = linear.trained(y, rate, np.arange(TRAIN))
    for i in np.linspace(0, TRAIN - 1, LEFT_OUT).astype(int):
        kept = np.delete(np.arange(TRAIN), i)
        predicted.append((linear.trained(y, rate, kept) - base)[TRAIN:])
        real.append((train(params, rows, y, (np.arange(TRAIN) != i) * 1.0, rate) - whole)[TRAIN:])
    predicted, real = np.array(predicted), np.array(real)
    sizes = [np.linalg.norm(each.reshape(LEFT_OUT, -1), axis=1) for each in (predicted, real)]
    most = [np.abs(each).sum(axis=2).argmax(axis=0) for each in (predicted, real)]
    return {
        "influence": float(np.corrcoef(predicted.ravel(), real.ravel())[0, 1]),
        "influence_error": float(np.linalg.norm(predicted - real) / np.linalg.norm(real)),
        "influence_rank": float(spearmanr(*sizes)[0]),
        "influence_most": float((most[0] == most[1]).mean()),
    }


def over_heads(model, train, starts, rows, y, rate):
    """The standard deviation over heads of outputs at new images: predicted and real."""
    predicted, real = [], []
    for params in starts:
        predicted.append(Linear(model, params, rows).trained(y, rate, np.arange(TRAIN))[TRAIN:])
        real.append(train(params, rows, y, np.ones(TRAIN), rate)[TRAIN:])
    spreads = [np.std(each, axis=0, ddof=1) for each in (predicted, real)]
    return {
        "heads_ratio": float(np.sqrt((spreads[0] ** 2).mean() / (spreads[1] ** 2).mean())),
        "heads": float(np.corrcoef(spreads[0].ravel(), spreads[1].ravel())[0, 1]),
    }


def orders(model, params, rows, y, rate, trained, moved):
    """Errors of the outputs: linearized once, to first order beyond, linearized several times."""
    x, new, descent = rows[:TRAIN], rows[TRAIN:], nk.GradientDescent(rate, STEPS)
    once = nk.inspect(model, params, x, y, new, descent)
    several = nk.inspect(model, params, x, y, new, descent, pieces=PIECES)
    off = lambda z: float(np.linalg.norm(z - trained) / moved)
    found = {
        "check": float(once.check[-1]),
        "order 0": off(once.prediction),
        "pieces": off(several.prediction),
    }
    if not has_kinks(model):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the error itself is what is asked for
            solution = nk.solve(nk.expand(model, params, degree=2), x, y, descent, order=1)
            found["order 1"] = off(solution.predict(new).mean)
    return found


def table(rows):
    head = (
        "network",
        "self-check",
        "order 0",
        "order 1",
        f"up to {PIECES} pieces",
        "heads: ratio, correlation",
    )
    head += ("left out: correlation", "error", "rank", "same image most")
    lines = ["", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for name in NETWORKS:
        mean = lambda key, name=name: np.mean([row[key] for row in rows if row["name"] == name])
        kinked = any("order 1" not in row for row in rows if row["name"] == name)
        percent = lambda key, mean=mean: f"{100 * mean(key):.0f} %"
        cells = (
            name, f"{mean('check'):.2f}", percent("order 0"), "kinks" if kinked else percent("order 1"),
            percent("pieces"), f"{mean('heads_ratio'):.2f}, {mean('heads'):.2f}", f"{mean('influence'):.2f}",
            percent("influence_error"), f"{mean('influence_rank'):.2f}", percent("influence_most"),
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    text = (
        f"Networks pre-trained on the digits 0 to 4, with a new last layer, squared loss, {STEPS} steps; means over "
        f"{SEEDS} seeds. *Order 0, order 1, pieces*: error of the outputs at new images, as a share of how far "
        f"training moved them. *Heads*: the standard deviation of outputs over {HEADS} draws of the last layer, "
        f"predicted over real. *Left out*: the change of outputs when one of {LEFT_OUT} training images is left out, "
        "predicted by the kernel and by training again: correlation, relative error, rank correlation of the sizes, "
        "and how often the image with the largest influence on an output is the same (by chance "
        f"{100 / LEFT_OUT:.0f} %)."
    )
    return [*lines, "", text]


def main():
    rows = []
    with jax.enable_x64(True):
        for name in NETWORKS:
            for row in studied(name):
                rows.append(row)
                print(
                    {key: value if isinstance(value, str) else round(value, 2) for key, value in row.items()},
                    flush=True,
                )
    replace("more", table(rows))


if __name__ == "__main__":
    main()
