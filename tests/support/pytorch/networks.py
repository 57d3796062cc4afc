"""PyTorch networks of every common kind, small and with random weights, and inputs for them."""

import functools
import sys
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'nearkernel[torch]'")
nn = torch.nn


def floats(*shape):
    return lambda n, seed=0: np.random.default_rng(seed).normal(size=(n, *shape))


def tokens(count, length):
    return lambda n, seed=0: np.random.default_rng(seed).integers(1, count, size=(n, length))


def mlp():
    return nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 2)), floats(
        5
    )


def layer_norm_mlp():
    layers = nn.Linear(5, 12), nn.LayerNorm(12), nn.SiLU(), nn.Dropout(0.3), nn.Linear(12, 3)
    return nn.Sequential(*layers), floats(5)


def batch_norm_cnn():
    net = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 4, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 2),
    )
    net[1].running_mean.normal_()
    net[1].running_var.uniform_(0.5, 2.0)
    return net, floats(3, 8, 8)


def group_norm_cnn():
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.GroupNorm(2, 8),
        nn.SiLU(),
        nn.Conv2d(8, 8, 3, stride=2, groups=2, bias=False),
        nn.GroupNorm(4, 8),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(8, 2),
    )
    return net, floats(3, 8, 8)


def encoder():
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), floats(5, 8)


class Attention(nn.Module):
    """Token and position embeddings, causal attention, the mean over tokens."""

    def __init__(self):
        super().__init__()
        self.token, self.position = nn.Embedding(11, 8, padding_idx=0), nn.Embedding(6, 8)
        self.mix = nn.Linear(8, 24)
        self.head = nn.Linear(8, 2)

    def forward(self, ids):
        h = self.token(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
        q, k, v = self.mix(h).chunk(3, dim=-1)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.head((h + mixed).mean(dim=1))


def attention():
    def ids(n, seed=0):
        return np.random.default_rng(seed).integers(0, 11, size=(n, 6))  # padding among them

    return Attention(), ids


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.rnn = kind(3, 5, batch_first=True, **options)
        self.head = nn.Linear(10 if options.get("bidirectional") else 5, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


def gru():
    return Recurrent(nn.GRU, num_layers=2, bidirectional=True), floats(6, 3)


def lstm():
    return Recurrent(nn.LSTM, num_layers=2), floats(6, 3)


class Block(nn.Module):
    """The basic block of He et al. 2016."""

    def __init__(self, before, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride > 1 or before != width:
            self.downsample = nn.Sequential(
                nn.Conv2d(before, width, 1, stride, bias=False), nn.BatchNorm2d(width)
            )

    def forward(self, x):
        z = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        z += x if self.downsample is None else self.downsample(x)
        return self.relu(z)


class ResNet18(nn.Module):
    """The architecture of torchvision's resnet18, without torchvision."""

    def __init__(self, classes=10, width=64):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1, self.relu = nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        for k in range(4):
            first = Block(widths[k], widths[k + 1], 1 if k == 0 else 2)
            setattr(self, f"layer{k + 1}", nn.Sequential(first, Block(widths[k + 1], widths[k + 1], 1)))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(8 * width, classes)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = layer(x)
        return self.fc(torch.flatten(self.avgpool(x), 1))


def resnet18():
    return ResNet18(), floats(3, 32, 32)


class ViT(nn.Module):
    """A vision transformer with a class token, after Dosovitskiy et al. 2021."""

    def __init__(self, width=16, depth=2):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.position = nn.Parameter(0.1 * torch.randn(1, 5, width))
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            block = nn.ModuleDict(
                {
                    "norm1": nn.LayerNorm(width),
                    "attention": nn.MultiheadAttention(width, 4, batch_first=True),
                    "norm2": nn.LayerNorm(width),
                    "mlp": nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width)),
                }
            )
            self.blocks.append(block)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 3)

    def forward(self, x):
        h = self.patch(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.token.expand(len(x), -1, -1), h], dim=1) + self.position
        for block in self.blocks:
            z = block["norm1"](h)
            h = h + block["attention"](z, z, z, need_weights=False)[0]
            h = h + block["mlp"](block["norm2"](h))
        return self.head(self.norm(h)[:, 0])


def vit():
    return ViT(), floats(3, 8, 8)


def torchvision_resnet18():
    models = importable("torchvision.models")
    return models.resnet18(num_classes=10), floats(3, 32, 32)


def timm_vit():
    timm = importable("timm")
    options = {"patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 3, "num_classes": 4}
    return timm.models.VisionTransformer(img_size=16, **options), floats(3, 16, 16)


def bert():
    """BERT of two inputs, by name."""
    transformers = importable("transformers")
    config = transformers.BertConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=12,
    )

    def batch(n, seed=0):
        ids = tokens(40, 7)(n, seed)
        return {
            "input_ids": ids,
            "attention_mask": (np.arange(7) < 4 + np.arange(n)[:, None] % 4).astype(np.int64),
        }

    return transformers.BertModel(config), batch, "pooler_output"


def gpt2():
    transformers = importable("transformers")
    config = transformers.GPT2Config(vocab_size=40, n_positions=12, n_embd=16, n_layer=2, n_head=2)
    return (
        transformers.GPT2LMHeadModel(config),
        lambda n, seed=0: {"input_ids": tokens(40, 7)(n, seed)},
        "logits",
    )


class TinyGPT(nn.Module):
    """A causal language model whose output matrix is the embedding of its tokens."""

    def __init__(self, count=13, width=8):
        super().__init__()
        self.embed = nn.Embedding(count, width)
        self.block = nn.TransformerEncoderLayer(
            width, 2, 16, activation="gelu", batch_first=True, norm_first=True
        )
        self.head = nn.Linear(width, count, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        return self.head(self.block(self.embed(ids), src_mask=mask, is_causal=True))


def tiny_gpt():
    return TinyGPT(), tokens(13, 5)


def importable(name):
    """A library, or a skip that says why not: it may be absent, or built for another PyTorch."""
    _let_torchvision_in()
    return pytest.importorskip(
        name, reason=f"{name} cannot be imported here", exc_type=(ImportError, RuntimeError)
    )


@functools.cache
def _let_torchvision_in():
    """On PyPI it is built for CUDA: beside PyTorch for CPUs it misses its own operations, which no network here uses.

    Its import asks for two of them, which are then declared. timm and transformers import torchvision.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import torchvision  # noqa: F401
    except ImportError:
        return
    except RuntimeError as error:
        if "torchvision::nms does not exist" not in str(error):
            return
        for module in [each for each in sys.modules if each.partition(".")[0] == "torchvision"]:
            del sys.modules[module]
        for name in ("nms", "qnms"):
            signature = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            torch.library.define(f"torchvision::{name}", signature)


NETWORKS = {
    each.__name__: each
    for each in (
        mlp, layer_norm_mlp, batch_norm_cnn, group_norm_cnn, encoder, attention, gru, lstm, resnet18, vit, bert, gpt2,
        tiny_gpt, torchvision_resnet18, timm_vit,
    )
}  # fmt: skip


def made(name, seed=0):
    """A network in evaluation mode, a function n, seed -> inputs, and which output counts."""
    torch.manual_seed(seed)
    net, batch, *output = NETWORKS[name]()
    return net.eval(), batch, (output[0] if output else None)
