"""How well functions of bounded norm can follow random signs: what bounds their generalization gap."""

from typing import NamedTuple

import numpy as np

from ..._base.check import inputs, positive
from ..._base.keys import Key, generator
from ..._base.types import ArrayLike
from ..._run.precision import in_float64
from .positivity import KernelLike, positive_gram

_DRAWS = 200


class RademacherResult(NamedTuple):
    r"""The Rademacher complexity of a ball of functions of norm $B$.

    **Fields:** `bound`, $\frac{B}{n} \sqrt{\operatorname{tr} K}$; `value`, estimated from draws, and its `sem`.
    """

    bound: float
    value: float
    sem: float


@in_float64
def rademacher(kernel: KernelLike, x: ArrayLike, norm: float, key: Key | None = None) -> RademacherResult:
    r"""The empirical Rademacher complexity of the functions of norm at most B in a kernel's Hilbert space.

    $$\mathbb{E}_s \sup_{\lVert f\rVert \le B} \frac1n \sum_i s_i f(x_i)
    = \frac{B}{n}\, \mathbb{E}\sqrt{s^\top K s} \le \frac{B}{n} \sqrt{\operatorname{tr} K}, \qquad s_i = \pm 1$$

    For a loss that is 1-Lipschitz in $f$, such as $|f - y|$, the risk of any f in the ball exceeds its training error,
    on average over data, by at most twice the complexity. A ridge, or a readout of bounded length, puts a trained model
    into a ball; for features $F(x)$ the kernel is $F(x) \cdot F(x')$.

    **Arguments:** `kernel`, positive, of this library or any function k(x1, x2) -> (n1, n2); `x` (n, d); `norm` > 0;
    `key` for 200 draws of signs, by default `jax.random.key(0)`.
    """
    x, norm = inputs(x), float(positive(norm, "norm"))
    gram = positive_gram(kernel, x)
    signs = generator(0 if key is None else key).choice([-1.0, 1.0], (_DRAWS, len(x)))
    complexity = (
        norm / len(x) * np.sqrt(np.maximum(np.einsum("si,ij,sj->s", signs, gram, signs, optimize=True), 0.0))
    )
    bound = norm * np.sqrt(np.trace(gram)) / len(x)
    return RademacherResult(
        float(bound), float(complexity.mean()), float(complexity.std(ddof=1) / np.sqrt(_DRAWS))
    )
