"""Attention with many dimensions."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, exact, setting, statistical, unlike
from .._claim import generator
from .._drawing import Figure

L = nk.layers


class AttentionLimit(Claim):
    """With scores divided by the dimension and shared query and key weights, attention becomes deterministic."""

    source = "literature: infinite attention"
    formula = "K' = C_OV g K g'^T,   Theta' = C_OV g (Theta + 2 K) g'^T,   g = softmax(sqrt(C_QK) K)"

    positions: int = setting(5, "Length of the sequences.", low=2, high=12)
    networks: int = setting(300, "Networks that are drawn.", low=50, high=5000, quick=80)

    def run(self, seed: int) -> Result:
        x = generator(seed, "sequences").normal(size=(2, self.positions, 48))
        second = np.einsum("apc,bqc->abpq", x, x) / 48
        look = [np.exp(1.5 * second[a, a]) for a in range(2)]
        look = [g / g.sum(axis=1, keepdims=True) for g in look]
        kernel = np.array([[1.3 * look[a] @ second[a, b] @ look[b].T for b in range(2)] for a in range(2)])
        theory = np.einsum("abpp->ab", kernel) / self.positions
        nngp, ntk = nk.kernels.nngp_and_ntk(_network(self.positions, 1, 1), x)
        rows = [
            exact("NNGP of two sequences, flattened", theory[0, 1], nngp[0, 1], 1e-9),
            exact("NTK of a sequence, flattened", 2 * theory[0, 0], ntk[0, 0], 1e-9),
        ]
        widths, found = np.array([64, 256, 1024]), []
        for width in widths:
            net = _network(self.positions, 64, int(width))
            values = nk.measure(_mean_square(net, x), net, self.networks, seed)
            found.append((float(values.mean), float(values.sem)))
        mean, error = np.array(found).T
        rows.append(
            statistical(
                f"NNGP of drawn attention, {widths[-1]} dimensions", theory[0, 0], mean[-1], error[-1]
            )
        )
        mixed = 1.3 * np.mean(second[0, 0])  # every position looks at all others alike
        rows.append(unlike("the same, if all positions were looked at alike", mixed, mean[-1], sem=error[-1]))
        data = {"width": widths, "theory": np.full(3, theory[0, 0]), "measured": mean, "sem": error}
        return Result(tuple(rows), data)

    figure = Figure("width", "variance of outputs", xlabel="dimension of a head", log="x")
    figure.pair()


def _network(positions: int, width: int, head_dim: int) -> nk.Network:
    attention = L.Attention(width, heads=1, head_dim=head_dim, qk_var=2.25, ov_var=1.3)
    return nk.Network((positions, 48), [attention, L.Flatten()])


def _mean_square(net: nk.Network, x: np.ndarray):
    return lambda params: (net(params, x)[0] ** 2).mean()
