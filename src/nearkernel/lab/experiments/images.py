"""Convolution against dense layers on small images: what each kernel makes of few examples."""

import dataclasses
import functools
from collections.abc import Iterator

import jax
import numpy as np

import nearkernel as nk

from ..._base.settings import setting
from .. import Answer, Curve, Experiment, Heat, Number, Picture, Preset, Watch
from .parts.images import CHECK, THEORY
from .parts.program import program
from .parts.ridge import descended, pace

TRAIN, TEST = 80, 80
SIZES = (10, 20, 40, 60, TRAIN)
ORDERS = 5  # in which examples come
WIDTHS = {"dense": 256, "convolution": 32, "convolution, pooled": 32}
NETWORKS = 3
_NOTE = "Pooling leaves one feature per channel: trained networks with few channels are less accurate than the limit."


@dataclasses.dataclass(frozen=True)
class Images(Experiment):
    """Handwritten digits of 8 by 8 pixels, learned by three infinitely wide networks. The dense network treats the
    pixels as a list: shuffling them would change nothing. The convolutional network looks at patches of 3 by 3 pixels
    and knows where they are. With pooling it only counts them. Without a shift the position is useful, and pooling
    costs accuracy. Shift the test images: the dense network fails, the pooled one hardly notices. Then train networks
    of finite width on the same digits."""

    title = "Convolution or dense"
    menu = "Images"
    formulas = (
        r"\Theta_{\text{conv}}(x, x') = \frac{1}{P} \sum_{p} \Theta_{p p}(x, x'), \qquad "
        r"\Theta_{\text{pool}}(x, x') = \frac{1}{P^2} \sum_{p, p'} \Theta_{p p'}(x, x')",
        r"\hat{y} = \operatorname{argmax}_c \; \Theta(x, X) \, (\Theta + \lambda)^{-1} \, Y_c",
    )
    button = "Train networks"
    movie = "shift"
    presets = (
        Preset("Shifted by one pixel", {"shift": 1}, "The dense network has never seen a digit there."),
        Preset("Shifted by two", {"shift": 2}, "Only the network that counts patches still works."),
        Preset("Two layers", {"depth": 2}, "A second convolution sees 5 by 5 pixels."),
        Preset("Large ridge", {"ridge": 3.0}, "With a large ridge all three lose accuracy."),
    )

    shift: int = setting(0, "Pixels by which the test images are moved to the right.", low=0, high=3)
    depth: int = setting(1, "Hidden layers, convolutional or dense.", low=1, high=2)
    ridge: float = setting(
        0.01, "Ridge, relative to the mean of the kernel's diagonal.", low=1e-4, high=10, log=True
    )

    def theory(self) -> Answer:
        curves, numbers = [], []
        for series, name in enumerate(WIDTHS, start=1):
            found = accuracies(name, self.depth, self.shift, self.ridge)
            mean, sem = found.mean(axis=0), found.std(axis=0, ddof=1) / ORDERS**0.5
            curves.append(
                Curve(
                    name, SIZES, mean, "line", series, band=(mean - sem, mean + sem), group="infinitely wide"
                )
            )
            numbers.append(
                Number(f"{name}: accuracy", float(mean[-1]), f"{TRAIN} examples, {TEST} test images")
            )
        chance = Curve("chance", (SIZES[0], SIZES[-1]), (0.1, 0.1), "dashes", 0)
        picture = Picture("Accuracy", (*curves, chance), "examples", "accuracy", y_range=(0, 1))
        images, _ = digits()
        shown = moved(images[TRAIN : TRAIN + 1], self.shift)[0, :, :, 0]
        pixels = Picture(
            "A test image",
            (Heat("ink", np.arange(8), np.arange(8), shown[::-1]),),
            "column",
            "row",
            square=True,
        )
        return Answer((picture, pixels), tuple(numbers))

    def check(self, watch: Watch) -> Answer:
        theory = answer = self.theory()
        sizes, found = (SIZES[1], SIZES[-1]), {}
        jobs = [(name, size) for name in WIDTHS for size in sizes]
        for done, (name, size) in enumerate(jobs):
            words = f"{name}, {size} examples, {NETWORKS} networks"
            watch(done / len(jobs), words, answer)
            for share, correct in training(name, size, self.depth, self.shift, self.ridge):
                if correct is None:
                    watch((done + share) / len(jobs), words)
                else:
                    found[name, size] = correct
            answer = self._beside(theory, found)
        return answer

    def _beside(self, theory: Answer, found: dict[tuple[str, int], np.ndarray]) -> Answer:
        dots = []
        for series, (name, width) in enumerate(WIDTHS.items(), start=1):
            sizes = [size for each, size in found if each == name]
            if sizes:
                each = [found[name, size] for size in sizes]
                mean, sem = np.mean(each, axis=1), np.std(each, axis=1, ddof=1) / NETWORKS**0.5
                title = f"{name}, width {width}"
                dots.append(Curve(title, sizes, mean, "dots", series, sem=sem, group="trained"))
        pictures = theory.pictures[0].plus(*dots), theory.pictures[1]
        return dataclasses.replace(theory, pictures=pictures, notes=(*theory.notes, _NOTE))

    def python(self, checked: bool = False) -> str:
        return program(__name__, THEORY + CHECK * checked, **self.values())


@functools.cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Images (160, 8, 8, 1) with pixels from 0 to 1, and their digits."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))[: TRAIN + TEST]
    return images[order].reshape(-1, 8, 8, 1) / 16, labels[order]


def moved(images: np.ndarray, shift: int) -> np.ndarray:
    """To the right, with empty pixels on the left."""
    return np.pad(images, ((0, 0), (0, 0), (shift, 0), (0, 0)))[:, :, :8]


def shaped(name: str, images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1) if name == "dense" else images


def network(name: str, depth: int) -> nk.MLP | nk.CNN:
    widths = (WIDTHS[name],) * depth
    if name == "dense":
        return nk.MLP(64, widths, 10, "relu", weight_var=2.0, bias_var=0.1)
    head = "pool" if "pooled" in name else "flatten"
    return nk.CNN((8, 8, 1), widths, 10, "relu", weight_var=2.0, bias_var=0.1, head=head)


@functools.lru_cache(maxsize=32)
def kernels(name: str, depth: int, shift: int) -> tuple[np.ndarray, np.ndarray]:
    """NTK of the training images, and of test images with them."""
    images, _ = digits()
    kernel, train = nk.kernels.NTK(network(name, depth)), shaped(name, images[:TRAIN])
    if shift:
        return kernels(name, depth, 0)[0], kernel(shaped(name, moved(images[TRAIN:], shift)), train)
    return kernel(train), kernel(shaped(name, images[TRAIN:]), train)


def accuracies(name: str, depth: int, shift: int, ridge: float) -> np.ndarray:
    """(orders, sizes), of infinitely wide networks trained on the first examples of random orders."""
    train, test = kernels(name, depth, shift)
    labels = digits()[1]
    targets, truth = np.eye(10)[labels[:TRAIN]] - 0.1, labels[TRAIN:]
    strength, found = ridge * np.diag(train).mean(), np.empty((ORDERS, len(SIZES)))
    for i in range(ORDERS):
        order = np.random.default_rng(i).permutation(TRAIN)
        for j, size in enumerate(SIZES):
            some = order[:size]
            weights = np.linalg.solve(train[np.ix_(some, some)] + strength * np.eye(size), targets[some])
            found[i, j] = ((test[:, some] @ weights).argmax(axis=1) == truth).mean()
    return found


def training(
    name: str, size: int, depth: int, shift: int, ridge: float
) -> Iterator[tuple[float, np.ndarray | None]]:
    """Share of the work, and at the end accuracies of networks trained on the first examples of a random order."""
    images, labels = digits()
    net, order = network(name, depth), np.random.default_rng(0).permutation(TRAIN)
    train = kernels(name, depth, shift)[0]
    strength = ridge * float(np.diag(train).mean())
    speed = pace(float(np.linalg.eigvalsh(train[np.ix_(order[:size], order[:size])])[-1]), strength)
    x, targets = shaped(name, images[order]), np.eye(10)[labels[order]] - 0.1
    weights = (np.arange(TRAIN) < size).astype(float)  # all sizes share one compiled program
    with jax.enable_x64(True):
        start, targets = drawn(net, jax.random.split(jax.random.key(size), NETWORKS), x, targets)
    state = start, start
    for part in range(1, speed.parts + 1):
        with jax.enable_x64(True):
            state = jax.block_until_ready(descended(net, state, start, x, targets, weights, strength, speed))
        yield part / speed.parts, None
    with jax.enable_x64(True):
        outputs = np.asarray(gained(net, state[0], start, shaped(name, moved(images[TRAIN:], shift))))
    yield 1.0, (outputs.argmax(axis=2) == labels[TRAIN:]).mean(axis=1)


@jax.jit
def drawn(net, keys, x, y):
    """Networks, and the targets with their first outputs added: only what they gain by training counts."""
    start = jax.vmap(net.init)(keys)
    return start, jax.vmap(lambda p: net(p, x) + y)(start)


@jax.jit
def gained(net, theta, start, new):
    """Outputs (networks, images, 10) after training, minus those at initialization."""
    return jax.vmap(lambda p, q: net(p, new) - net(q, new))(theta, start)
