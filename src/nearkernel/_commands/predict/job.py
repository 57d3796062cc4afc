"""The answers: the Bayesian network (NNGP), the trained network (NTK), a plain linear model, one finite network."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import numpy as np

import nearkernel as nk

from ...forecasts.outputs.class_probabilities import log_class_probabilities
from . import scores
from .auto import Chosen, chosen
from .baselines import baseline, boosting
from .early import TrainingCurve, along_training
from .evidence import most_likely_linear, most_likely_noise
from .finite import DEFAULT_WIDTH, FiniteAnswer, finite_answers, require_few
from .leaks import Leak, leaks
from .network import HypotheticalNetwork
from .reading.data import LabeledData
from .reading.prepare import Split, few
from .reporting.answers import Answer
from .shared import Shared, shared_kernels


@dataclasses.dataclass(frozen=True)
class PredictionRun:
    """What was asked, and every answer."""

    network: HypotheticalNetwork
    data: LabeledData
    split: Split
    answers: tuple[Answer, ...]
    curve: TrainingCurve | None
    finite: tuple[FiniteAnswer, ...] = ()
    finite_training: str = ""  # in words, where it differs from the network's
    auto: Chosen | None = None
    network_rows: int | None = None  # training rows of NNGP and NTK, where they are fewer than all
    regime: nk.results.RegimeResult | None = None  # of the finite network, or of one of the default width
    leaks: tuple[Leak, ...] = ()  # columns that almost determine the target

    def named(self, name: str) -> Answer:
        return next(answer for answer in self.answers if answer.name == name)

    @property
    def notes(self) -> list[str]:
        """What the user should know about the finite network."""
        notes = []
        if self.network_rows is not None:
            notes.append(
                f"NNGP, NTK and Linear learned from {self.network_rows:,} of the training rows (--max-train)"
            )
        if self.curve is not None and self.curve.advice:
            notes.append(self.curve.advice)
        if self.regime is not None:
            notes.append(_regime_words(self.regime, asked=bool(self.finite)))
        if self.finite_training:
            notes.append(f"the finite network is trained, and predicted, by {self.finite_training}")
        size = max((answer.correction or 0.0 for answer in self.finite), default=0.0)
        if size > 0.1:
            notes.append(
                f"|z^I|/|z^F| = {size:.2g}: the correction is too large for higher orders to be reliable; use a "
                "larger --width"
            )
        return notes


def run(
    network: HypotheticalNetwork,
    data: LabeledData,
    split: Split,
    say: Callable[[str], None],
    most_network_rows: int = 10**9,
    balanced: bool = False,
    seed: int = 0,
) -> PredictionRun:
    """Every answer and its scores; `say` hears what is being done."""
    if network.finite is not None:
        require_few(split)
    shape = network.in_shape(data, split)
    say("Auto: choosing kernels and ridges by leave-one-out")
    auto = chosen(data, split, balanced, seed)
    asked, answers, suspects = (network, data, split), [auto.answer], leaks(data, split)
    say("boosted trees, for comparison")
    others = [each for each in (boosting(data, split), baseline(data, split)) if each is not None]
    fewer = most_network_rows if len(split.x) > most_network_rows else None
    flat = split = few(split, most_network_rows, seed)
    net = network.build(shape, split.y.shape[1])
    split = dataclasses.replace(flat, x=flat.x.reshape(-1, *shape), x_new=flat.x_new.reshape(-1, *shape))

    nngp, ntk = shared_kernels(net)
    say("NNGP: wide networks as a Bayesian prior")
    answers.append(_posterior(nngp, data, split))

    say("NTK: wide networks after training")
    start = time.perf_counter()
    forecast = nk.forecast((nngp, ntk), split.x, split.y, network.algorithm, split.x_new)
    if not forecast.ok:
        raise ValueError(f"--lr {network.algorithm.lr:g}: training {forecast.status}; give a smaller --lr.")
    details = {"algorithm": repr(network.algorithm), "status": str(forecast.status)}
    answers.append(_answer("NTK", forecast.mean, forecast.std, start, details, data, split))

    say("linear baseline")
    answers.append(_linear(data, flat))

    answers += others
    say("NTK along training")
    curve = along_training(ntk, network.algorithm, data, split)
    finite: tuple[FiniteAnswer, ...] = ()
    words, correction = "", None
    if network.finite is not None:
        finite, words = finite_answers(network.finite, net, network.algorithm, data, split, say)
        correction = next((each.correction for each in finite if each.correction is not None), None)
    regime = _regime(network, split, correction)
    return PredictionRun(*asked, tuple(answers), curve, finite, words, auto, fewer, regime, suspects)


def _regime(
    network: HypotheticalNetwork, split: Split, correction: float | None = None
) -> nk.results.RegimeResult | None:
    """Of a network of finite width, where its richness is known."""
    if network.kind != "mlp" or not network.depth:
        return None
    width = network.finite.width if network.finite else DEFAULT_WIDTH
    net = nk.MLP(1, (width,) * network.depth, split.y.shape[1], network.activation)
    return nk.regime(net, split.y, correction)


def _regime_words(regime: nk.results.RegimeResult, asked: bool) -> str:
    """One remark: which theory holds for networks that can be built."""
    which = "the network" if asked else "a network"
    size = f"richness times targets {regime.strength:.2g}"
    if regime.correction is not None:
        size = f"|z^I|/|z^F| {regime.correction:.2g}"
    return (
        f"{which} of width {regime.width} {'is' if asked else 'would be'} {regime.name} ({size}): {regime.meaning}; "
        f"kernels of single networks are about {100 * regime.noise:.0f} % from infinite width"
    )


def _posterior(kernel: Shared, data: LabeledData, split: Split) -> Answer:
    """A Gaussian process whose noise is the most likely one, judged by the training rows alone."""
    start = time.perf_counter()
    noise = most_likely_noise(kernel, split.x, split.y)
    try:
        posterior = nk.posterior(kernel, split.x, split.y, split.x_new, noise=noise)
    except (
        ValueError
    ) as error:  # the inputs are checked, so the matrix is singular, and its options are not the user's
        raise ValueError(
            f"the NNGP kernel of these rows is singular to working accuracy, even with noise {noise:.2g}: "
            "give a smaller --depth or --weight-var, or another --activation."
        ) from error
    return _bayesian(
        "NNGP", posterior.mean, posterior.std**2, noise, posterior.log_marginal_likelihood, start, data, split
    )


def _linear(data: LabeledData, split: Split) -> Answer:
    """Bayesian ridge regression, its noise chosen in the same way."""
    start = time.perf_counter()
    return _bayesian("Linear", *most_likely_linear(split.x, split.y, split.x_new), start, data, split)


def _bayesian(
    name: str,
    mean: np.ndarray,
    variance: np.ndarray,
    noise: float,
    evidence: float,
    start: float,
    data: LabeledData,
    split: Split,
) -> Answer:
    std = np.sqrt(variance + noise)  # of a new observation, which carries the noise too
    details = {"noise": noise, "log_marginal_likelihood": evidence}
    return _answer(name, mean, std, start, details, data, split)


def _answer(
    name: str, mean: np.ndarray, std: np.ndarray, start: float, details: dict, data: LabeledData, split: Split
) -> Answer:
    mean, std = split.mean_in_target_units(mean), split.scale * std
    intervals = None
    if data.classes:
        log_probs = log_class_probabilities(mean, std)
        figures = scores.of_classification(mean.argmax(axis=1), log_probs, split.truth)
    else:
        log_probs = None
        intervals = scores.gaussian_intervals(mean[:, 0], std)
        figures = scores.of_regression(mean[:, 0], std, split.truth, intervals)
    seconds = time.perf_counter() - start
    return Answer(name, mean, std, seconds, details, log_probs, figures, intervals=intervals)
