"""Neural collapse: how close last-layer features are to one point per class, on a simplex, aligned with the weights."""

import equinox as eqx
import jax
import numpy as np

from ..._base.check import inputs, numeric
from ..._base.result import Result
from ..._base.types import ArrayLike, Params
from ..._run.precision import in_float64
from ...models.networks.network import AbstractNetwork
from ...models.params import checked_params
from .classes import class_labels


class CollapseResult(Result, eqx.Module):
    r"""The four metrics of neural collapse, each 0 at collapse. $M$ are the class means minus the global mean.

    **Fields:** `nc1`, the variability within classes relative to that between classes,
    $\operatorname{tr}(S_W S_B^+) / C$; `nc2_norms`, the standard deviation of $\lVert M_c\rVert$ over its mean;
    `nc2_angles`, the mean of $|\cos(M_c, M_{c'}) + 1/(C - 1)|$, 0 for a simplex; `nc3`, self-duality: the squared
    Frobenius distance of $W/\lVert W\rVert$ and $M/\lVert M\rVert$; `nc4`, the fraction of points for which the
    classifier disagrees with the nearest class mean; `nc2_lengths`, the standard deviation over classes of the lengths
    of the uncentered class means, over their mean.
    """

    nc1: float
    nc2_norms: float
    nc2_angles: float
    nc3: float
    nc4: float
    nc2_lengths: float


def collapse(features: ArrayLike, labels: ArrayLike, classifier: ArrayLike | None = None) -> CollapseResult:
    """The metrics of neural collapse of `features` (n, k) with `labels` (n,), or one-hot (n, C).

    **Arguments:** `features` of the last layer; `labels`, at least 2 classes; `classifier`, the weights (C, k) of the
    output layer, or (weights, biases); (k, C) is transposed if k is not C. Without it the least-squares classifier of
    the features is used, for which `nc3` and `nc4` are also 0 at collapse.
    """
    h = inputs(features, "features")
    index, classes = class_labels(labels, len(h))
    own = np.eye(classes)[index]
    means = (own.T @ h) / own.sum(axis=0)[:, None]
    center = means.mean(axis=0)
    spread = means - center
    size = np.linalg.norm(spread)
    if size <= 1e-14 * np.linalg.norm(h):
        raise ValueError(
            "`features` have the same mean in every class, so the metrics of collapse are undefined."
        )
    rest = h - means[index]
    # With S_B = M^T M / C the trace needs only the C x C matrix M M^T, even for thousands of features.
    values, vectors = np.linalg.eigh(spread @ spread.T / classes)
    kept = values > classes * np.finfo(float).eps * values[-1]
    # Rows: sqrt(value) times a unit eigenvector of S_B.
    axes = (vectors[:, kept].T @ spread) / np.sqrt(classes)
    nc1 = np.sum((rest @ axes.T) ** 2 / values[kept] ** 2) / len(h) / classes
    norms, lengths = np.linalg.norm(spread, axis=1), np.linalg.norm(means, axis=1)
    units = spread / np.maximum(norms, 1e-300)[:, None]
    cosines = (units @ units.T)[~np.eye(classes, dtype=bool)]
    weights, biases = _classifier(classifier, h, own)
    length = np.linalg.norm(weights)
    nc3 = np.sum((weights / length - spread / size) ** 2) if length > 0 else 2.0
    chosen = np.argmax(h @ weights.T + biases, axis=1)
    distance = np.sum(means**2, axis=1) - 2 * h @ means.T  # up to |h|^2, the same for all classes
    return CollapseResult(
        nc1=float(nc1),
        nc2_norms=float(norms.std() / norms.mean()),
        nc2_angles=float(np.mean(np.abs(cosines + 1 / (classes - 1)))),
        nc3=float(nc3),
        nc4=float(np.mean(chosen != np.argmin(distance, axis=1))),
        nc2_lengths=float(lengths.std() / lengths.mean()),
    )


def _classifier(
    classifier: ArrayLike | None, h: np.ndarray, own: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weights (C, k) and biases (C,)."""
    classes, k = own.shape[1], h.shape[1]
    if classifier is None:
        centered = h - h.mean(axis=0)
        weights = np.linalg.lstsq(centered, own - own.mean(axis=0), rcond=1e-10)[0].T
        return weights, own.mean(axis=0) - weights @ h.mean(axis=0)
    weights, biases = classifier if isinstance(classifier, tuple) else (classifier, np.zeros(classes))
    weights, biases = numeric(weights, "classifier"), numeric(biases, "classifier").ravel()
    if weights.shape == (k, classes) and k != classes:
        weights = weights.T
    if weights.shape != (classes, k) or len(biases) != classes:
        raise ValueError(
            f"`classifier` must be weights ({classes}, {k}), or (weights, biases); "
            f"got {weights.shape} and {biases.shape}."
        )
    return weights, biases


@in_float64
def last_layer(
    model: AbstractNetwork, params: Params, x: ArrayLike
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """The last-layer features (n, width) of a network, and its readout (weights (out, width), biases (out,)).

    **Arguments:** `model`, an `nk.MLP` with hidden layers, or an `nk.Network` that ends in `Dense`; `params`; `x`.
    """
    last = model.readout() if isinstance(model, AbstractNetwork) else None
    if last is None:
        raise TypeError("`model` must be an nk.MLP with hidden layers, or an nk.Network that ends in Dense.")
    x = inputs(x, "x", model.in_shape)
    params = checked_params(model, params)
    params = jax.tree.map(lambda leaf: numeric(leaf, "params"), params)
    features = np.asarray(_hidden(model, params, x))
    weight_scale, bias_scale = (float(scale) for scale in last.scales(features.shape[1]))
    return features, (weight_scale * params[-1]["weight"].T, bias_scale * params[-1]["bias"])


_hidden = jax.jit(lambda model, params, x: model.hidden_features(params, x))
