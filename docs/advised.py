"""What the initialization of `nearkernel advise` is worth: deep networks trained on scikit-learn's digits.

    python docs/advised.py            # a minute or two; writes its table into guides/initialize.md and README.md
    python docs/advised.py --show     # prints it alone

Both starts train the same network by the same 120 steps of Adam on the same batches, 5 seeds each. Each start has the
learning rate, of four, with the best accuracy on rows that are neither trained on nor tested on.
"""

import argparse
import dataclasses
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

import nearkernel as nk

ROOT = Path(__file__).parents[1]
STEPS, BATCH, SEEDS = 120, 64, 5
RATES = (3e-4, 1e-3, 3e-3, 1e-2)


@dataclasses.dataclass(frozen=True)
class Deep:
    """A fully connected network."""

    activation: str
    depth: int
    width: int = 64

    def outputs(self, params, x):
        act = {"gelu": lambda z: jax.nn.gelu(z, approximate=False), "relu": jax.nn.relu}[self.activation]
        first, hidden, last = params
        x = act(x @ first[0] + first[1])
        x, _ = jax.lax.scan(lambda x, layer: (act(x @ layer[0] + layer[1]), None), x, hidden)
        return x @ last[0] + last[1]


NETWORKS = (Deep("gelu", 12), Deep("relu", 50))


def pytorch_start(net: Deep):
    """`nn.Linear` as it is: weights and biases uniform within 1/sqrt(fan_in)."""

    def draw(key, fan_in, shape):
        return jax.random.uniform(key, shape, minval=-(fan_in**-0.5), maxval=fan_in**-0.5)

    return draw, draw, 1.0


def advised_start(net: Deep):
    """What `nearkernel advise` prints: normal weights and biases of critical variances, and a factor of the inputs."""
    point = nk.critical(net.activation)
    weight_var, bias_var, fixed = point.weight_var, point.bias_var, point.fixed_point
    scale = ((fixed - bias_var) / weight_var) ** 0.5 if np.isfinite(fixed) and fixed > 0 else 1.0
    return (
        lambda key, fan_in, shape: (weight_var / fan_in) ** 0.5 * jax.random.normal(key, shape),
        lambda key, fan_in, shape: bias_var**0.5 * jax.random.normal(key, shape),
        scale,
    )


STARTS = {"PyTorch's default": pytorch_start, "advised": advised_start}


def rows() -> list[tuple[np.ndarray, np.ndarray]]:
    """Standardized rows to train, to choose the rate, and to test."""
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    parts = np.split(order, [1077, 1437])
    mean, std = x[parts[0]].mean(axis=0), x[parts[0]].std(axis=0)
    x = ((x - mean) / np.where(std > 0, std, 1.0)).astype(np.float32)
    return [(x[part], y[part]) for part in parts]


def accuracies(net: Deep, start, parts) -> np.ndarray:
    """(rates, seeds, 2): the share of validation and of test rows that are right after training."""
    (x, y), *others = parts
    weights, biases, scale = start(net)

    def layer(key, fan_in, fan_out):
        first, second = jax.random.split(key)
        return weights(first, fan_in, (fan_in, fan_out)), biases(second, fan_in, (fan_out,))

    def drawn(key):
        first, *inner, last = jax.random.split(key, net.depth + 1)
        hidden = jax.vmap(lambda each: layer(each, net.width, net.width))(jnp.stack(inner))
        return layer(first, x.shape[1], net.width), hidden, layer(last, net.width, 10)

    def one(key, rate):
        begin, order = jax.random.split(key)
        params = drawn(begin)
        adam = optax.adam(rate)
        batches = jax.vmap(lambda each: jax.random.choice(each, len(x), (BATCH,), replace=False))(
            jax.random.split(order, STEPS)
        )

        def loss(params, batch):
            logits = net.outputs(params, scale * jnp.asarray(x)[batch])
            return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.asarray(y)[batch]).mean()

        def step(state, batch):
            params, inner = state
            updates, inner = adam.update(jax.grad(loss)(params, batch), inner)
            return (optax.apply_updates(params, updates), inner), None

        (params, _), _ = jax.lax.scan(step, (params, adam.init(params)), batches)
        right = [jnp.mean(net.outputs(params, scale * xs).argmax(axis=1) == ys) for xs, ys in others]
        return jnp.stack(right)

    keys = jax.random.split(jax.random.key(0), SEEDS)
    trained = jax.jit(jax.vmap(one, (0, None)))
    return np.stack([trained(keys, rate) for rate in RATES])


def measured() -> list[dict]:
    """One record per network: accuracy on test rows in percent and its standard error over the seeds, by start."""
    parts, found = rows(), []
    for net in NETWORKS:
        record = {"network": f"{net.depth} layers of {net.width}, {net.activation}"}
        for name, start in STARTS.items():
            by_rate = accuracies(net, start, parts)
            best = int(by_rate[:, :, 0].mean(axis=1).argmax())
            test = 100 * by_rate[best, :, 1]
            record[name] = (test.mean(), test.std(ddof=1) / SEEDS**0.5, RATES[best])
        found.append(record)
    return found


def table(found: list[dict]) -> str:
    lines = [f"| network | {' | '.join(STARTS)} |", "|---|" + "---|" * len(STARTS)]
    for record in found:
        cells = [f"{mean:.1f} ± {error:.1f} %" for mean, error, _ in (record[name] for name in STARTS)]
        lines.append("| " + " | ".join([record["network"], *cells]) + " |")
    return "\n".join(lines)


def into(text: str, made: str) -> str:
    """`text` with a new table between the marks."""
    marked = r"(<!-- advised: begin -->\n).*?(<!-- advised: end -->)"
    return re.sub(marked, lambda found: f"{found[1]}{made}\n{found[2]}", text, flags=re.DOTALL)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--show", action="store_true", help="print the table, write nothing")
    chosen = parser.parse_args()
    found = measured()
    print(table(found))
    for record in found:
        print(record["network"], {name: f"rate {record[name][2]}" for name in STARTS})
    if not chosen.show:
        for page in (ROOT / "README.md", ROOT / "docs/guides/initialize.md"):
            page.write_text(into(page.read_text(encoding="utf-8"), table(found)), encoding="utf-8")
