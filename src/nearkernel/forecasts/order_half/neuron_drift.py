r"""How neurons beyond the first layer are moved by all others in training: the law of Gamma of `_kinks.py`.

Its entries are Gaussian, with a covariance that follows from layer to layer, n and n' the widths of a layer and of that
below, whose averages these are:

    E[Gamma_ab Gamma_cd] = (n/n') C (theta_ab theta_cd X_bd <s'_a s'_b s'_c s'_d> + <s'_a s'_c> E[Gamma'_ab Gamma'_cd]).
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ...activations.base import AbstractActivation
from ...models.networks.mlp import MLP
from ..neuron_sampling import root

_DRAWS = 2**13  # neurons for averages of four slopes
_MOST = 1024  # pairs of training points up to which the covariance is factored
_FEW = 256  # directions beyond: draws of Gamma itself


def drift_roots(
    net: MLP, kernels: Sequence, slopes: Sequence[np.ndarray], fields: Sequence[np.ndarray], n: int, seed: int
) -> list[np.ndarray]:
    """[direction, (point, train)] for each hidden layer and `n` training points, which come first among all points:
    normals times this have that covariance."""
    m = len(fields[0])
    found = [np.zeros((0, m * n))]
    rng = np.random.default_rng(seed)
    for layer in range(1, len(net.widths)):
        kernel, theta, _ = kernels[layer - 1]
        few = m * n > _MOST
        u = rng.normal(size=(_FEW if few else _DRAWS, len(root(kernel)))) @ root(kernel)
        slope: Any = _slope(net.activation_of(layer), u)
        size = net.widths[layer] / net.widths[layer - 1] * float(net.dense(layer).weight_var)
        field = fields[layer - 1][:n, :n]
        below = found[-1].reshape(-1, m, n)
        pairs = slope[:, :, None] * slope[:, None, :n] * theta[:, :n]
        if few:
            xi = rng.normal(size=(len(u), len(root(field)))) @ root(field)
            moved = pairs * xi[:, None, :]
            if len(below):
                moved += slope[:, :, None] * np.tensordot(rng.normal(size=(len(u), len(below))), below, 1)
            found.append(np.sqrt(size / len(u)) * moved.reshape(len(u), -1))
            continue
        flat = pairs.reshape(len(u), -1)
        cov = (flat.T @ flat / len(u)).reshape(m, n, m, n) * field[None, :, None, :]
        lower = np.einsum("kab,kcd->abcd", below, below)
        cov += slopes[layer - 1][:, None, :, None] * lower
        found.append(root(size * cov.reshape(m * n, m * n)))
    return found


def _slope(activation: AbstractActivation, u: np.ndarray) -> np.ndarray:
    return np.asarray(jax.jvp(activation, (u,), (np.ones_like(u),))[1])
