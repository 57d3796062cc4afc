"""Five small PyTorch networks for images of 8 x 8 pixels, and digits to train them on."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

CLASSES, TRAIN, NEW = 5, 30, 100


def tanh_mlp():
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, CLASSES)
    )


def relu_mlp():
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 48), nn.LayerNorm(48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(),
        nn.Linear(48, CLASSES),
    )  # fmt: skip


def group_norm_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU(), nn.AvgPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.SiLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, CLASSES),
    )  # fmt: skip


def relu_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, CLASSES),
    )  # fmt: skip


class Encoder(nn.Module):
    """A transformer that reads an image line by line."""

    def __init__(self, width=16):
        super().__init__()
        self.embed, self.places = nn.Linear(8, width), nn.Parameter(0.5 * torch.randn(1, 8, width))
        self.block = nn.TransformerEncoderLayer(
            width, 2, 32, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.head(self.norm(self.block(self.embed(x[:, 0]) + self.places)).mean(1))


ARCHITECTURES = {
    "MLP, tanh": tanh_mlp,
    "MLP, layer norm, relu": relu_mlp,
    "CNN, group norm, silu": group_norm_cnn,
    "CNN, relu, max pooling": relu_cnn,
    "transformer encoder": Encoder,
}


def network(name, seed):
    torch.manual_seed(seed)
    return ARCHITECTURES[name]().eval()


def head_of(params):
    """Names of the last layer."""
    return [name for name in params if name.startswith("head")] or sorted(
        params, key=lambda name: int(name.split(".")[0])
    )[-2:]


def digits():
    """Images (n, 1, 8, 8), standardized, and labels: 0 to 4 to learn first, 5 to 9 to learn later."""
    x, labels = load_digits(return_X_y=True)
    x = ((x - x.mean()) / x.std()).reshape(-1, 1, 8, 8)
    early = labels < CLASSES
    return (x[early], labels[early]), (x[~early], labels[~early] - CLASSES)


def task(seed):
    """A few images of each later digit to learn from, and others to predict: rows (130, 1, 8, 8), one-hot (130, 5)."""
    _, (x, labels) = digits()
    rng = np.random.default_rng(seed)
    each = [rng.permutation(np.flatnonzero(labels == k)) for k in range(CLASSES)]
    train, new = (
        np.concatenate([rows[part] for rows in each])
        for part in (slice(0, TRAIN // CLASSES), slice(TRAIN // CLASSES, (TRAIN + NEW) // CLASSES))
    )
    rows = np.concatenate([train, new])
    return x[rows], np.eye(CLASSES)[labels[rows]]
