"""Functions of PyTorch that together use every ATen operation of the table, with shapes and options that differ.

A case is a function of tensors, the shape of one row of each, and how many `derivatives` PyTorch has to compare with.
"""

import math
from typing import NamedTuple

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'nearkernel[torch]'")
nn, F = torch.nn, torch.nn.functional


class Case(NamedTuple):
    function: object
    shapes: tuple = ((3, 4),)
    derivatives: int = 2


CASES: dict[str, Case] = {}


def case(name, function, *shapes, derivatives=2):
    assert name not in CASES, name
    CASES[name] = Case(function, shapes or ((3, 4),), derivatives)


def positive(x):
    return x.abs() + 0.1


def whole(x, most=9):
    """Integers from 0 to `most` - 1, without a derivative."""
    return (x.detach() * 3).round().to(torch.int64).abs() % most


# Each entry.
for name in "sin cos tan sinh cosh tanh asinh atan exp exp2 expm1 erf erfc sigmoid neg square".split():
    case(name, getattr(torch, name))
for name in "abs sign floor ceil".split():
    case(name, getattr(torch, name))
for name in "trunc frac".split():
    case(name, lambda x, f=getattr(torch, name): f(1.7 * x))
for name in "sqrt rsqrt log log2 log10 log1p reciprocal".split():
    case(name, lambda x, f=getattr(torch, name): f(positive(x)))
case("lgamma", lambda x: torch.lgamma(positive(x)), derivatives=1)  # its trigamma has ten digits
case("digamma", lambda x: torch.digamma(positive(x)), derivatives=0)
for name in "asin acos atanh erfinv".split():
    case(name, lambda x, f=getattr(torch, name): f(0.9 * torch.tanh(x)))
case("acosh", lambda x: torch.acosh(1.1 + x.abs()))
case("i0 and i1", lambda x: torch.special.i0(x) + torch.special.i1(x))
case("round", lambda x: torch.round(2.5 * x) * x)
case("round to digits", lambda x: torch.round(x, decimals=2) * x)
case("round halves to even", lambda x: torch.round(whole(x).double() / 2), derivatives=0)
case("sgn", lambda x: torch.sgn(x) * x)
case("logit", lambda x: torch.logit(0.2 + 0.6 * torch.sigmoid(x), eps=1e-3))
case("nan_to_num", lambda x: torch.nan_to_num(x))
case(
    "isnan and others",
    lambda x: (torch.isnan(x) | torch.isinf(1 / (x - x)) | ~torch.isfinite(x)).double(),
    derivatives=0,
)
for (
    name
) in "relu gelu silu mish softplus elu selu celu hardtanh hardswish relu6 leaky_relu logsigmoid".split():
    case(name, lambda x, f=getattr(F, name): f(2.3 * x))
for name in "softsign tanhshrink softshrink hardshrink".split():
    case(name, lambda x, f=getattr(F, name): f(2.3 * x))
case("hardsigmoid", lambda x: F.hardsigmoid(5 * x), derivatives=0)  # its slope is 1/6 in float32
case("gelu tanh", lambda x: F.gelu(x, approximate="tanh"))
case("softplus of large numbers", lambda x: F.softplus(900 * x, beta=2.0, threshold=5))
case("mish of large numbers", lambda x: F.mish(900 * x), derivatives=1)  # then NaN
case("elu of large numbers", lambda x: F.elu(900 * x, alpha=0.7))
case("logsigmoid of large numbers", lambda x: F.logsigmoid(900 * x), derivatives=1)
case("threshold", lambda x: F.threshold(x, 0.1, 20.0))
case("glu", lambda x: F.glu(x, dim=-1))
case("prelu", lambda x, w: F.prelu(x, w.mean(0)), (3, 4), (3,))
kinks = (F.relu, F.hardtanh, F.leaky_relu, F.relu6, torch.abs)
case("kinks at zero", lambda x: torch.cat([f(x - x.detach()) * x for f in kinks], 1))
case("clamp at its bounds", lambda x: torch.clamp(x - x.detach(), 0.0, 1.0) + F.hardtanh(x - x.detach() + 1))

# Two tensors.
two = ((3, 4), (3, 4))
for name in "add sub mul div atan2 maximum minimum logaddexp hypot".split():
    case(name, getattr(torch, name), *two)
case("add with alpha", lambda a, b: torch.add(a, b, alpha=2.5) - torch.sub(b, a, alpha=0.5), *two)
case("rsub", lambda a: 3 - a)
case("rsub with alpha", lambda a, b: torch.rsub(a, b, alpha=2), *two)
case("broadcasting", lambda a, b: a[:, :, None] * b[:, None] - b.sum(-1)[:, None, None], (3,), (4,))
case(
    "floor division",
    lambda a, b: (
        torch.div(3 * a, positive(b), rounding_mode="floor") + torch.div(7 * a, b, rounding_mode="trunc") + a
    ),
    *two,
)
case(
    "division of integers",
    lambda a: torch.cat(
        [
            *(torch.div(whole(a) - 4, -3, rounding_mode=mode).double() for mode in ("floor", "trunc")),
            ((whole(a) - 4) // 3).double(),
            ((3 * a) // 0.7).double(),
        ],
        dim=1,
    ),
    derivatives=0,
)
case(
    "remainders",
    lambda a, b: torch.remainder(5 * a, b) + torch.fmod(5 * a, b) + torch.remainder(a, -0.7),
    *two,
)
case(
    "remainders of integers",
    lambda a: (torch.remainder(whole(a) - 4, -3) + 10 * torch.fmod(whole(a) - 4, 3)).double(),
    derivatives=0,
)
case(
    "powers",
    lambda a, b: positive(a) ** b + a**3 + a**2.0 + positive(a) ** -1.5 + 2.0**a + positive(a) ** 0.5,
    *two,
)
case("powers at zero", lambda a: (a - a.detach()) ** 2 + (a - a.detach()) ** 3.0 + (a - a.detach()) ** 1)
case("comparisons", lambda a, b: torch.stack([
    a > b, a >= b, a < b, a <= b, a == b, a != b, a > 0.2, (a > 0) & (b > 0), (a > 0) | (b > 0), ~(a > 0)
], dim=1).double(), *two, derivatives=0)  # fmt: skip
case("logic", lambda a, b: (
    torch.logical_and(a > 0, b > 0) | torch.logical_xor(a > 0, b > 0) & torch.logical_or(a > 1, b > 1)
    | torch.logical_not(a > 2)
).double(), *two, derivatives=0)  # fmt: skip
case("bits", lambda a: (
    (whole(a) & 5) + 10 * (whole(a) | 3) + 100 * (whole(a) ^ 6) + (~whole(a)) + (whole(a) << 2) + (whole(a) >> 1)
).double(), derivatives=0)  # fmt: skip
case("where", lambda a, b: torch.where(a > 0, a * b, torch.sin(b)), *two)
case("masked_fill", lambda a, b: a.masked_fill(b > 0, -2.0), *two)
case(
    "clamp",
    lambda a, b: torch.clamp(a, -0.3, 0.4) + torch.clamp(b, min=-0.2) + torch.clamp(a * b, max=0.1),
    *two,
)
case("clamp by tensors", lambda a, b: torch.clamp(a, min=b, max=b + 0.5), *two)
case(
    "addcmul",
    lambda a, b: torch.addcmul(a, a, b, value=0.3) + torch.addcdiv(a, a, positive(b), value=2.0),
    *two,
)
case("lerp", lambda a, b: torch.lerp(a, b, 0.3) + torch.lerp(a, b, torch.sigmoid(a)), *two)
case(
    "promotion",
    lambda a: whole(a) * a + whole(a) / 4 + (a > 0) * a + whole(a).to(torch.int32) * 2.5 + torch.arange(4),
)
case(
    "types",
    lambda a: a.to(torch.float32).to(torch.int64).double() + (3 * a).bool() + whole(a).to(torch.uint8) * 100,
    derivatives=0,
)

# Reductions.
for name in "sum mean prod amax amin logsumexp var std".split():
    case(name, lambda x, f=getattr(torch, name): f(x, dim=1))
    if name != "prod":
        case(f"{name} of two dimensions", lambda x, f=getattr(torch, name): f(x, dim=(1, -1), keepdim=True))
case(
    "reductions of everything",
    lambda x: torch.stack(
        [
            r.sum() * 0.1
            + r.mean()
            + r.prod()
            + r.amax()
            + r.std()
            + r.var()
            + r.min()
            + r.max()
            + r.median()
            for r in x
        ]
    ),
)
case(
    "uncorrected variance",
    lambda x: (
        torch.var(x, 2, correction=0)
        + torch.var_mean(x, 2, correction=2)[0]
        + torch.std(x, 2, unbiased=False)
    ),
)
case(
    "extremes with places",
    lambda x: (
        torch.max(x, 1)[0] * torch.min(x, 1)[1] + torch.argmax(x, 1) + torch.argmin(x, 1, keepdim=True)[:, 0]
    ),
)
case("places in everything", lambda x: torch.stack([torch.argmax(r) + r.sum() for r in x]))
case(
    "ties",
    lambda x: (
        torch.max(x - x.detach(), 1)[0]
        + torch.amax(x - x.detach(), 1)
        + torch.maximum(x - x.detach(), 2 * (x - x.detach()))[:, 0]
    ),
)
case(
    "any and all",
    lambda x: ((x > 1.0).any(1) & ~(x > -1).all(dim=1)).double() + torch.count_nonzero(x > 0, dim=1),
    derivatives=0,
)
case("running sums", lambda x: torch.cumsum(x, 1) * torch.cumprod(x, -1) + torch.logcumsumexp(x, 1))
case("running extremes", lambda x: torch.cummax(x, 1)[0] + torch.cummin(x, -1)[0] + torch.cummax(x, 1)[1])
case(
    "norms",
    lambda x: torch.stack(
        [torch.linalg.vector_norm(x, p, dim=1) for p in (0, 1, 2, 3, math.inf, -math.inf)], 1
    ),
)
case(
    "norm at zero",
    lambda x: torch.linalg.vector_norm(x - x.detach(), dim=1) + x.norm(dim=-1)[:, :1],
    derivatives=1,
)
case("normalize", lambda x: F.normalize(x, dim=-1) + F.cosine_similarity(x, x.flip(1), dim=1)[:, None])
case(
    "sort",
    lambda x: (
        torch.sort(x, dim=1)[0] * torch.sort(x, dim=2, descending=True)[1]
        + torch.sort(x, stable=True)[0] * torch.argsort(x, 1)
    ),
)
case(
    "topk",
    lambda x: (
        torch.topk(x, 2, dim=-1)[0] * torch.topk(x, 2, largest=False)[1]
        + torch.kthvalue(x, 3)[0][..., None]
        + torch.median(x, 2)[0][..., None]
    ),
)

# Shapes.
case(
    "views",
    lambda x: x.view(-1, 4, 3).reshape(len(x.T.T), 2, 6).transpose(1, 2).flatten(1).unflatten(1, (3, 4)),
)
case("moves", lambda x: x.permute(0, 2, 1).movedim(1, 2).unsqueeze(1).squeeze(1).swapaxes(-1, -2))
case("squeezes", lambda x: x[:, :1].squeeze() * x[:, :1].squeeze(-2) + x[:, :1].squeeze((1, 0)))
case(
    "expand",
    lambda x: (
        x[:, :, None].expand(-1, 3, 2, 4).clone()
        * x[:, None, :1].expand_as(x[:, :, None].expand(-1, 3, 3, 4))[:, :, :2]
    ),
)
case("repeat", lambda x: x.repeat(1, 2, 3) + x.tile((2, 3)) + x.repeat_interleave(2, dim=1).repeat(1, 1, 3))
case(
    "slices",
    lambda x: x[:, 1:, ::2] * x[:, :-1, -3:-1] + x[:, 1:, -1:] * x[:, 5:7].sum() + x[:, :, 1:100][:, :2, :2],
)
case("selection", lambda x: x[:, 1] * x[:, -1] + x.select(1, 0) + x.narrow(1, 1, 1)[:, 0])
case("joins", lambda x: torch.cat([x, torch.stack([x[:, 0], x[:, 1]], dim=1), x], dim=-2))
case(
    "join with nothing",
    lambda x: torch.cat([torch.zeros(0), x[:, 0]], dim=-1) if x.ndim == 1 else torch.cat([x, x[:, :0]], 1),
)
case(
    "splits",
    lambda x: (
        torch.cat(
            [*x.split([1, 3], dim=2), *x.chunk(2, dim=-1), *x.split(2, 1), *x.tensor_split(2, 2)][:4:2], 2
        )
        + x.unbind(1)[0][:, None, :3]
    ),
)
case(
    "turns",
    lambda x: x.flip(1) * x.roll(1, 2) + x.roll((1, -1), (1, 2)) + torch.rot90(x, 2, (1, 2)) + x.fliplr(),
)
case(
    "diagonals",
    lambda x: (
        x.diagonal(0, 1, 2)
        + torch.diag_embed(x[:, 0, :3]).sum(1)
        + x.diagonal(1, -2, -1)
        + x.tril().triu(-1)[:, :, 0]
    ),
)
case(
    "pads",
    lambda x: F.pad(x, (1, 2))[:, :, :4] + F.pad(x, (0, -1, 1, -1), value=2.0)[:, :, :1] + F.pad(x, (-1, 1)),
)
for mode in ("reflect", "replicate", "circular"):
    case(
        f"{mode} padding",
        lambda x, m=mode: F.pad(F.pad(x[:, None], (2, 1, 1, 2), mode=m)[:, 0], (1, 2), mode=m),
    )
case(
    "padding of volumes",
    lambda x: F.pad(x, (1, 2, 0, 1, 2, 1), mode="replicate") + F.pad(x, (2, 1, 1, 0, 1, 2), mode="reflect"),
    (1, 3, 3, 3),
)
case("windows", lambda x: x.unfold(2, 3, 1) * x.unfold(1, 2, 1)[:, :1, :2, :1].sum())
case("in place", lambda x: x.clone().mul_(2).add_(1).index_fill(1, torch.tensor([0]), 3.0))


def assigned(x):
    z = torch.zeros_like(x)
    z[:, 0] = x[:, 1]
    z[:, 1:, ::2] = x[:, 1:, 1::2] * 3
    z[:, 2, 1] += x[:, 0, 0]
    z.diagonal(0, 1, 2).copy_(x[:, 0, :3])
    return z


case("assignments", assigned)
case(
    "creation",
    lambda x: (
        x
        + torch.ones(3, 4) * torch.full((4,), 2.0)
        + torch.eye(3, 4)
        + torch.linspace(0, 1, 4, dtype=torch.float64)
        + torch.arange(0.5, 4.5)
        + x.new_zeros(4)
        + torch.full_like(x, 0.3)
        + torch.empty_like(x).fill_(1.5)
        + torch.tensor(0.25)
        + torch.eye(4)[0]
        + torch.empty(3, 4).fill_(0.5)
    ),
)
case("triangles", lambda x: x[:, torch.tril_indices(3, 3)[0], torch.triu_indices(3, 3)[1]])
case(
    "sizes",
    lambda x: (
        x.reshape(x.shape[0] * 3, x.shape[-1]).reshape(-1, x.numel() // x.shape[0] // 2, 2)
        * (x.shape[0] / x.shape[0])
    ),
)

# Indexing.
case(
    "indexing",
    lambda x: x[:, [2, 0]] * x[:, torch.tensor([[1], [0]]), torch.tensor([3, -1])].sum((1, 2))[:, None, None],
)
case("indexing by values", lambda x: torch.take_along_dim(x, whole(x, 3), 1))
case(
    "index_select",
    lambda x: (
        x.index_select(1, torch.tensor([2, 2, 0]))
        + x.index_add(2, torch.tensor([0, 0]), x[:, :, :2], alpha=0.5)
    ),
)
case(
    "gather",
    lambda x: torch.gather(x, 1, whole(x[:, :2, :3], 3)) + torch.gather(x, 2, whole(x[:, :2, :3], 4)),
)
case(
    "scatter",
    lambda x: (
        torch.zeros_like(x).scatter(
            1, torch.tensor([[[0, 1, 2, 0]]]).expand(x.shape[0], -1, -1), x[:, 2:] * 2
        )
        + x.scatter(2, torch.tensor([[[1]]]).expand(x.shape[0], 3, 1), 4.0)
    ),
)
case("scatter_add", lambda x: x.scatter_add(1, whole(x, 3), x * x))
for name in ("sum", "prod", "mean", "amax", "amin"):
    case(
        f"scatter {name}",
        lambda x, r=name: x.scatter_reduce(1, whole(x[:, :2], 3), x[:, 1:], r, include_self=r != "mean"),
        derivatives=2 if name in ("sum", "mean") else 0,
    )
columns = torch.tensor([1, 2, 1])
case("index_put", lambda x: x.transpose(0, 1).index_put((columns,), x.transpose(0, 1), True).transpose(0, 1))
case(
    "index_put without sum",
    lambda x: x.transpose(0, 1).index_put((columns[:2],), x[:, 1:].transpose(0, 1)).transpose(0, 1),
)
case(
    "masked_scatter",
    lambda x: torch.stack([r.masked_scatter(r > 0, torch.arange(12.0, dtype=r.dtype)) * r for r in x]),
)
case("embedding", lambda x, w: F.embedding(whole(x, 5), w.mean(0)), (3,), (5, 4))
case("embedding with padding", lambda x, w: F.embedding(whole(x, 5), w.mean(0), padding_idx=1), (3,), (5, 4))
case("one_hot", lambda x: F.one_hot(whole(x, 5), 5) * x[..., None])
case(
    "buckets",
    lambda x: (
        torch.bucketize(x.detach(), torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64).to(x.dtype)) * x
        + torch.searchsorted(torch.sort(x.detach())[0], x.detach(), right=True)
    ),
)

# Linear algebra.
square = ((3, 3), (3, 3))
case(
    "products",
    lambda a, b: (
        a @ b
        + torch.bmm(a, b)
        + torch.einsum("nij, njk -> nik", a, b)
        + torch.baddbmm(a, a, b, beta=0.5, alpha=2.0)
    ),
    *square,
)
case("products of vectors", lambda a, b: (a @ b[:, 0, :, None])[..., 0] + b.mean(0)[0] @ a.mean(0), *square)
case(
    "products of one dimension",
    lambda a, b: a * torch.dot(b.mean(0), b.mean(0)) + torch.mv(b.mean(0)[:, None], b.mean(0)[:1]),
    (3,),
    (3,),
)
case(
    "addmm",
    lambda a, b: (
        torch.addmm(b, a, a.mean(0)[:4, None] * b.mean(0), beta=0.3, alpha=2.0)
        + torch.addmv(b[:, 0], a, a.mean(0))[:, None]
    ),
    (4,),
    (4,),
)
case(
    "linear",
    lambda a, b: (
        F.linear(a, b.mean(0), b.mean(0)[:, 0]) + F.bilinear(a[:, 0], a[:, 1], b.mean(0)[None], None)[:, None]
    ),
    (3, 4),
    (4, 4),
)
case(
    "outer products",
    lambda a, b: torch.einsum("...i,...j->...ij", a, b) + torch.kron(a[0, :1], b[0, :1])[:, :3],
    *square,
)
case("cross", lambda a, b: torch.cross(a, b, dim=-1) + torch.linalg.cross(a, b, dim=1), *square)
spread = lambda a: a @ a.mT + torch.eye(3, dtype=a.dtype)
case(
    "solve",
    lambda a, b: (
        torch.linalg.solve(spread(a), b)
        + torch.linalg.solve(spread(a), b[:, 0])[..., None]
        + torch.linalg.solve(spread(a), b, left=False)
    ),
    *square,
)
case(
    "inverse",
    lambda a, b: (
        torch.linalg.inv(spread(a)) @ b
        + torch.linalg.cholesky(spread(a))
        + torch.linalg.cholesky(spread(b), upper=True)
    ),
    *square,
)
case("determinants", lambda a: torch.linalg.det(spread(a)) + torch.linalg.slogdet(spread(a))[1], (3, 3))
case(
    "triangular solve",
    lambda a, b: (
        torch.linalg.solve_triangular(spread(a).tril(), b, upper=False)
        + torch.linalg.solve_triangular(spread(a).triu(), b, upper=True, left=False)
    ),
    *square,
)
case(
    "eigenvalues",
    lambda a: torch.linalg.eigvalsh(spread(a)) + torch.linalg.eigh(spread(a), UPLO="U")[1].abs()[:, 0],
    (3, 3),
)
case("matrix_exp", lambda a: torch.linalg.matrix_exp(a), (3, 3))
case(
    "distances",
    lambda a, b: torch.cdist(a, b) + torch.cdist(a, b, p=1.0) + torch.cdist(a, a, p=3.0),
    *two,
    derivatives=1,
)
case("many distances", lambda a, b: torch.cdist(a, b), (30, 2), (26, 2), derivatives=1)
case("pdist", lambda a: torch.stack([torch.pdist(r) for r in a]), derivatives=1)
case(
    "real Fourier transform",
    lambda x: torch.view_as_real(torch.fft.rfft(x, norm="ortho") + torch.fft.rfft2(x)),
    (3, 5),
)
case(
    "Fourier and back",
    lambda x, w: torch.fft.irfft(torch.fft.rfft(x, dim=1) * torch.complex(w, w * w)[:, :2], n=3, dim=1),
    (3, 4),
    (3, 4),
)
case(
    "complex Fourier transform",
    lambda x: (
        torch.fft.ifft(torch.fft.fft2(x) * torch.polar(positive(x), x), norm="forward").real
        + torch.fft.fftn(x, dim=(1,)).imag
    ),
)
case(
    "complex numbers",
    lambda x: (
        (torch.view_as_complex(torch.stack([x, x * x + 1], -1)).conj() * 2j).imag
        + torch.angle(torch.complex(x, x + 3))
        + torch.fft.hfft(torch.complex(x, x), n=4)
    ),
)

# Convolutions and pools.
image = (2, 7, 6)
case("conv1d", lambda x, w: F.conv1d(x, w.mean(0), stride=2, padding=1, dilation=2), (2, 9), (3, 2, 3))
case(
    "conv2d",
    lambda x, w: F.conv2d(x, w.mean(0), w.mean((0, 2, 3, 4)), stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
    image,
    (3, 2, 3, 2),
)
case("conv2d in groups", lambda x, w: F.conv2d(x, w.mean(0), groups=2), image, (4, 1, 3, 3))
case("conv2d same", lambda x, w: F.conv2d(x, w.mean(0), padding="same"), image, (3, 2, 4, 3))
case("conv3d", lambda x, w: F.conv3d(x, w.mean(0), padding=1, stride=2), (2, 4, 4, 4), (2, 2, 3, 3, 3))
case(
    "conv_transpose1d",
    lambda x, w: F.conv_transpose1d(x, w.mean(0), stride=3, padding=1, output_padding=2, dilation=2),
    (2, 5),
    (2, 3, 3),
)
case(
    "conv_transpose2d",
    lambda x, w: F.conv_transpose2d(
        x, w.mean(0), w.mean((0, 2, 3, 4))[:2], stride=(2, 3), padding=(1, 0), groups=2, output_padding=(1, 2)
    ),
    (4, 3, 4),
    (4, 1, 3, 2),
)
case(
    "unfold and fold",
    lambda x: F.fold(
        F.unfold(x, (3, 2), dilation=(1, 2), padding=1, stride=2) * 2.0, image[1:], (3, 2), (1, 2), 1, 2
    ),
    image,
)
for ceil in (False, True):
    case(
        f"max_pool2d {ceil}",
        lambda x, c=ceil: F.max_pool2d(x, (3, 2), stride=2, padding=1, ceil_mode=c),
        image,
    )
    case(
        f"avg_pool2d {ceil}",
        lambda x, c=ceil: F.avg_pool2d(x, 3, stride=(2, 3), padding=1, ceil_mode=c),
        image,
    )
    case(
        f"avg_pool2d inside {ceil}",
        lambda x, c=ceil: F.avg_pool2d(x, (2, 3), stride=2, padding=1, ceil_mode=c, count_include_pad=False),
        image,
    )
    case(f"max_pool1d {ceil}", lambda x, c=ceil: F.max_pool1d(x, 3, 2, ceil_mode=c), (2, 8))
case("max_pool2d dilated", lambda x: F.max_pool2d(x, 2, stride=1, dilation=(2, 3)), image)
case(
    "max_pool2d with places",
    lambda x: torch.cat([r.flatten(1) for r in F.max_pool2d(x, 3, 2, 1, return_indices=True)], 1),
    image,
)
case("max_pool2d of ties", lambda x: F.max_pool2d(x.floor(), 2, 1) * x[:, :, 1:, 1:], image)
case("max_pool3d", lambda x: F.max_pool3d(x, (2, 3, 2), stride=1, padding=1), (1, 4, 3, 4))
case("avg_pool1d", lambda x: F.avg_pool1d(x, 3, 2, 1), (2, 8))
case("avg_pool2d divisor", lambda x: F.avg_pool2d(x, 2, divisor_override=3), image)
case("avg_pool3d", lambda x: F.avg_pool3d(x, 2, 2, 1, ceil_mode=True, count_include_pad=False), (1, 4, 3, 5))
case("lp_pool2d", lambda x: F.lp_pool2d(positive(x), 2, 2), image)
case(
    "adaptive_avg_pool",
    lambda x: F.adaptive_avg_pool2d(x, (3, 4)) + F.adaptive_avg_pool1d(x[:, 0], 4)[:, None, :3],
    image,
)
case("adaptive_avg_pool3d", lambda x: F.adaptive_avg_pool3d(x, (2, 3, 1)), (1, 4, 3, 5))
case(
    "adaptive_max_pool",
    lambda x: F.adaptive_max_pool2d(x, (3, 4)) + F.adaptive_max_pool1d(x[:, 0], 4)[:, None, :3],
    image,
)
case("adaptive_max_pool3d", lambda x: F.adaptive_max_pool3d(x, (2, 3, 1)), (1, 4, 3, 5))
case(
    "pixels",
    lambda x: F.pixel_unshuffle(F.pixel_shuffle(x, 2)[..., :4, :4], 2) + F.channel_shuffle(x, 2)[..., :2, :2],
    (4, 3, 3),
)

# Interpolation.
for mode in ("bilinear", "bicubic"):
    for corners in (False, True):
        case(
            f"{mode} {corners}",
            lambda x, m=mode, c=corners: F.interpolate(x, size=(5, 11), mode=m, align_corners=c),
            image,
        )
        case(
            f"{mode} by factor {corners}",
            lambda x, m=mode, c=corners: F.interpolate(x, scale_factor=(1.7, 2.3), mode=m, align_corners=c),
            image,
        )
case(
    "linear 1d",
    lambda x: (
        F.interpolate(x, scale_factor=1.6, mode="linear")
        + F.interpolate(x, size=9, mode="linear", align_corners=True)
    ),
    (2, 6),
)
case("trilinear", lambda x: F.interpolate(x, size=(3, 5, 4), mode="trilinear"), (1, 4, 3, 5))
for mode in ("nearest", "nearest-exact"):
    case(
        f"{mode} 2d",
        lambda x, m=mode: F.interpolate(x, scale_factor=1.6, mode=m) + F.interpolate(x, size=(11, 9), mode=m),
        image,
    )
    case(
        f"{mode} 1d and 3d",
        lambda x, m=mode: (
            F.interpolate(x[:, 0], size=7, mode=m)[:, None, :2, :, None]
            + F.interpolate(x[:, None], size=(2, 7, 3), mode=m)[:, 0]
        ),
        (2, 4, 5),
    )
for mode in ("bilinear", "nearest"):
    for padding in ("zeros", "border", "reflection"):
        case(
            f"grid_sample {mode} {padding}",
            lambda x, g, m=mode, p=padding: F.grid_sample(x, g, m, p, align_corners=p == "border"),
            (2, 5, 4),
            (3, 4, 2),
        )
case(
    "affine_grid",
    lambda x, t: F.grid_sample(
        x, F.affine_grid(t, [t.shape[0], 2, 3, 4], align_corners=False), align_corners=False
    ),
    (2, 5, 4),
    (2, 3),
)

# Normalization, attention, losses.
case("softmax", lambda x: F.softmax(x, 1) + F.log_softmax(x, -1) + F.softmin(x, 2))
case(
    "softmax of large numbers",
    lambda x: F.softmax(800 * x, -1) + F.log_softmax(800 * x, -1) + torch.logsumexp(800 * x, 1, keepdim=True),
    derivatives=1,
)
case(
    "layer_norm",
    lambda x, w: F.layer_norm(x, (3, 4), w.mean(0), eps=1e-3) + F.layer_norm(x, (4,)),
    (3, 4),
    (3, 4),
)
case("rms_norm", lambda x, w: F.rms_norm(x, (4,), w.mean(0)[0]), (3, 4), (3, 4))
case(
    "group_norm",
    lambda x, w: F.group_norm(x, 2, w.mean(0), w.mean(0) ** 2) + F.group_norm(x, 4),
    (4, 3, 3),
    (4,),
)
case(
    "instance_norm",
    lambda x, w: F.instance_norm(x, weight=w.mean(0), bias=w.mean(0) ** 2) + F.instance_norm(x),
    (2, 3, 3),
    (2,),
)
case(
    "batch_norm",
    lambda x, w: F.batch_norm(x, w.mean(0).detach(), positive(w.mean(0)).detach(), w.mean(0), w.mean(0) ** 2),
    (2, 3, 3),
    (2,),
)
case("local_response_norm", lambda x: F.local_response_norm(x, 3), (4, 3, 3))
case(
    "attention",
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.3),
    (2, 3, 4),
    (2, 5, 4),
    (2, 5, 2),
)
case(
    "causal attention",
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    (2, 3, 4),
    (2, 5, 4),
    (2, 5, 2),
)
case(
    "attention with masks",
    lambda q, k, v: (
        F.scaled_dot_product_attention(q, k, v, attn_mask=torch.arange(5) > torch.arange(3)[:, None])
        + F.scaled_dot_product_attention(
            q, k, v, attn_mask=torch.linspace(-1, 1, 15, dtype=torch.float64).reshape(3, 5)
        )
    ),
    (2, 3, 4),
    (2, 5, 4),
    (2, 5, 2),
)
case(
    "attention that sees nothing",
    lambda q, k, v: F.scaled_dot_product_attention(
        q, k, v, attn_mask=torch.arange(5) > torch.tensor([[1], [9], [3]])
    ),
    (2, 3, 4),
    (2, 5, 4),
    (2, 5, 2),
)
case(
    "attention of groups",
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
    (4, 3, 4),
    (2, 5, 4),
    (2, 5, 2),
)
case(
    "losses",
    lambda a, b: (
        F.mse_loss(a, b, reduction="none")
        + F.huber_loss(a, b, reduction="none")
        + F.kl_div(a, b.softmax(-1), reduction="none")
        + F.binary_cross_entropy_with_logits(a, torch.sigmoid(b), reduction="none")
    ),
    *two,
)
case("cross_entropy", lambda a: F.cross_entropy(a, whole(a[:, 0], 3), reduction="none"))
case("stopped gradients", lambda a, b: a.detach() * b + torch.no_grad()(torch.sin)(a) * b, *two)


aten = torch.ops.aten
case(
    "operations by their own names",
    lambda x: (
        aten._adaptive_avg_pool2d(x, (1, 2)).flatten(1)
        + aten._adaptive_avg_pool3d(x[:, None], (1, 2, 2)).flatten(1)
        + aten.div.Scalar(aten.alias(x)[:, 0, 0], 3.0)
        + aten.div.Scalar_mode(x[:, 0, 1], 0.3, rounding_mode="floor")
        + aten.clamp_max(aten._unsafe_index(x[:, 1, 0], [None, torch.tensor([3, 2, 1, 0])]), 0.2)
        + aten.mm(x[:, 1, 1], x[0, 1, 1, :, None].expand(4, 4))
        + aten._unsafe_view(x[:, 0, 2], [-1, 4])
        + aten.t(aten.t(x[:, 1, 2])).matmul(x.mean((0, 1))[:1].expand(4, 4))
    ),
    (2, 3, 4),
)
case(
    "more operations by their own names",
    lambda x: (
        aten._unsafe_index_put(x[:, 0].T, [torch.tensor([1, 1])], x[:, 1, :2].T, True).T
        + (aten.bitwise_left_shift(whole(x[:, 0]), 2) + aten.bitwise_right_shift(whole(x[:, 0]), 1))
        + torch.conj_physical(torch.complex(x[:, 0], x[:, 1])).imag
        + aten.var.dim(x, [1], False)
    ),
)


def recurrent(run, gates, inside=3, hidden=2, layers=1, both=False, biases=True, projected=0, cell=False):
    """A recurrent network whose weights are the entries of one vector."""
    states, directions = projected or hidden, 2 if both else 1

    def network(x, w):
        entries, weights = w.mean(0), []

        def take(*shape):
            nonlocal entries
            count = math.prod(shape)
            weights.append(entries[:count].reshape(shape))
            entries = entries[count:]

        for layer in range(layers):
            for _ in range(directions):
                take(gates * hidden, inside if layer == 0 else states * directions)
                take(gates * hidden, states)
                if biases:
                    take(gates * hidden)
                    take(gates * hidden)
                if projected:
                    take(projected, hidden)
        zeros = x.new_zeros(layers * directions, x.shape[0], states)
        start = (zeros, x.new_zeros(layers * directions, x.shape[0], hidden)) if cell else zeros
        found = run(x, start, weights, biases, layers, 0.0, False, both, True)
        ends = [end.transpose(0, 1).flatten(1) for end in found[1:]]
        return torch.cat([found[0].flatten(1), *ends], dim=1)

    return network


case("rnn tanh", recurrent(torch.rnn_tanh, 1, layers=2), (4, 3), (60,))
case("rnn relu", recurrent(torch.rnn_relu, 1, biases=False, both=True), (4, 3), (60,))
case("gru", recurrent(torch.gru, 3, layers=2, both=True), (4, 3), (240,))
case("gru without biases", recurrent(torch.gru, 3, biases=False), (4, 3), (60,))
case("lstm", recurrent(torch.lstm, 4, layers=2, both=True, cell=True), (4, 3), (320,))
case("lstm projected", recurrent(torch.lstm, 4, projected=1, cell=True), (4, 3), (120,))
