"""Convolution against dense layers on small images: what each kernel makes of few examples."""

import dataclasses
import functools

import jax
import numpy as np

import nearkernel as nk

from ..._base.settings import setting
from .. import Answer, Curve, Experiment, Heat, Number, Picture, Preset, Watch
from .parts.images import CHECK, END, THEORY
from .parts.ridge import PART, Pace, descended, pace

_TRAIN, _TEST = 80, 80
_SIZES = (10, 20, 40, 60, _TRAIN)
_ORDERS = 5  # in which examples come
_WIDTHS = {"dense": 256, "convolution": 32, "convolution, pooled": 32}
_NETWORKS = 3
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
        for series, name in enumerate(_WIDTHS, start=1):
            found = self._accuracies(name)
            mean, sem = found.mean(axis=0), found.std(axis=0, ddof=1) / _ORDERS**0.5
            curves.append(
                Curve(
                    name, _SIZES, mean, "line", series, band=(mean - sem, mean + sem), group="infinitely wide"
                )
            )
            numbers.append(
                Number(f"{name}: accuracy", float(mean[-1]), f"{_TRAIN} examples, {_TEST} test images")
            )
        chance = Curve("chance", (_SIZES[0], _SIZES[-1]), (0.1, 0.1), "dashes", 0)
        picture = Picture("Accuracy", (*curves, chance), "examples", "accuracy", y_range=(0, 1))
        images, _ = _digits()
        shown = _moved(images[_TRAIN : _TRAIN + 1], self.shift)[0, :, :, 0]
        pixels = Picture(
            "A test image",
            (Heat("ink", np.arange(8), np.arange(8), shown[::-1]),),
            "column",
            "row",
            square=True,
        )
        return Answer((picture, pixels), tuple(numbers))

    def _accuracies(self, name: str) -> np.ndarray:
        """(orders, sizes), of networks trained on the first examples of random orders."""
        train, test = _kernels(name, self.depth, self.shift)
        _, labels = _digits()
        targets, truth = np.eye(10)[labels[:_TRAIN]] - 0.1, labels[_TRAIN:]
        ridge, found = self.ridge * np.diag(train).mean(), np.empty((_ORDERS, len(_SIZES)))
        for i in range(_ORDERS):
            order = np.random.default_rng(i).permutation(_TRAIN)
            for j, size in enumerate(_SIZES):
                some = order[:size]
                weights = np.linalg.solve(train[np.ix_(some, some)] + ridge * np.eye(size), targets[some])
                found[i, j] = ((test[:, some] @ weights).argmax(axis=1) == truth).mean()
        return found

    def check(self, watch: Watch) -> Answer:
        theory = answer = self.theory()
        images, labels = _digits()
        new, truth = _moved(images[_TRAIN:], self.shift), labels[_TRAIN:]
        sizes, found = (_SIZES[1], _SIZES[-1]), {}
        jobs = [(name, size) for name in _WIDTHS for size in sizes]
        for done, (name, size) in enumerate(jobs):
            words = f"{name}, {size} examples, {_NETWORKS} networks"
            watch(done / len(jobs), words, answer)
            net, order = _net(name, self.depth), np.random.default_rng(0).permutation(_TRAIN)
            speed, ridge = self._pace(name, order[:size])
            x, targets = _for(name, images[order]), np.eye(10)[labels[order]] - 0.1
            weights = (np.arange(_TRAIN) < size).astype(float)  # all sizes share one compiled program
            with jax.enable_x64(True):
                start, targets = _drawn(net, jax.random.split(jax.random.key(size), _NETWORKS), x, targets)
                state = start, start
                for part in range(speed.parts):
                    state = jax.block_until_ready(
                        descended(net, state, start, x, targets, weights, ridge, speed)
                    )
                    watch((done + (part + 1) / speed.parts) / len(jobs), words)
                outputs = np.asarray(_gained(net, state[0], start, _for(name, new)))
            found[name, size] = (outputs.argmax(axis=2) == truth).mean(axis=1)
            answer = self._beside(theory, found)
        return answer

    def _pace(self, name: str, some: np.ndarray) -> tuple[Pace, float]:
        """Of training on some images, and the ridge."""
        train, _ = _kernels(name, self.depth, self.shift)
        ridge = self.ridge * float(np.diag(train).mean())
        return pace(float(np.linalg.eigvalsh(train[np.ix_(some, some)])[-1]), ridge), ridge

    def _beside(self, theory: Answer, found: dict[tuple[str, int], np.ndarray]) -> Answer:
        dots = []
        for series, (name, width) in enumerate(_WIDTHS.items(), start=1):
            sizes = [size for each, size in found if each == name]
            if sizes:
                each = [found[name, size] for size in sizes]
                mean, sem = np.mean(each, axis=1), np.std(each, axis=1, ddof=1) / _NETWORKS**0.5
                title = f"{name}, width {width}"
                dots.append(Curve(title, sizes, mean, "dots", series, sem=sem, group="trained"))
        pictures = theory.pictures[0].plus(*dots), theory.pictures[1]
        return dataclasses.replace(theory, pictures=pictures, notes=(*theory.notes, _NOTE))

    def python(self, checked: bool = False) -> str:
        steps = {}
        if checked:
            order = np.random.default_rng(0).permutation(_TRAIN)
            for name in _WIDTHS:
                steps[name] = [PART * self._pace(name, order[:size])[0].parts for size in (_SIZES[1], _TRAIN)]
        return (THEORY + CHECK * checked + END).format(**self.values(), steps=steps)


@functools.cache
def _digits() -> tuple[np.ndarray, np.ndarray]:
    """Images (200, 8, 8, 1) with pixels from 0 to 1, and their digits."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))[: _TRAIN + _TEST]
    return images[order].reshape(-1, 8, 8, 1) / 16, labels[order]


def _moved(images: np.ndarray, shift: int) -> np.ndarray:
    """To the right, with empty pixels on the left."""
    return np.pad(images, ((0, 0), (0, 0), (shift, 0), (0, 0)))[:, :, :8]


def _for(name: str, images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1) if name == "dense" else images


def _net(name: str, depth: int) -> nk.MLP | nk.CNN:
    widths = (_WIDTHS[name],) * depth
    if name == "dense":
        return nk.MLP(64, widths, 10, "relu", weight_var=2.0, bias_var=0.1)
    head = "pool" if "pooled" in name else "flatten"
    return nk.CNN((8, 8, 1), widths, 10, "relu", weight_var=2.0, bias_var=0.1, head=head)


@functools.lru_cache(maxsize=32)
def _kernels(name: str, depth: int, shift: int) -> tuple[np.ndarray, np.ndarray]:
    """NTK of the training images, and of test images with them."""
    images, _ = _digits()
    kernel, train = nk.kernels.NTK(_net(name, depth)), _for(name, images[:_TRAIN])
    if shift:
        return _kernels(name, depth, 0)[0], kernel(_for(name, _moved(images[_TRAIN:], shift)), train)
    return kernel(train), kernel(_for(name, images[_TRAIN:]), train)


@jax.jit
def _drawn(net, keys, x, y):
    """Networks, and the targets with their first outputs added: only what they gain by training counts."""
    start = jax.vmap(net.init)(keys)
    return start, jax.vmap(lambda p: net(p, x) + y)(start)


@jax.jit
def _gained(net, theta, start, new):
    """Outputs (networks, images, 10) after training, minus those at initialization."""
    return jax.vmap(lambda p, q: net(p, new) - net(q, new))(theta, start)
