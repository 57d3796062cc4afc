r"""Mean and covariance of trained outputs to order 1/n, from the tensors of the start.

To this order a trained output is a polynomial in the residuals e = z - y of the start, whose coefficients are linear in
h = H - Theta, in h h, in the dNTK and in the means of the two ddNTKs:

    f = z - Theta a + Delta,   Delta = - h a + h O h e + 1/2 mu a a + mu w - 1/6 nu a a a - 1/2 nu X - kap a w - kap Y,

so each average is a finite sum over pairings. Train indices are modes of the kernel, new ones come after them.
"""

from typing import NamedTuple

import numpy as np

from .time_responses import Response, Responses

CONTRIBUTIONS = ("metric", "ntk mean", "ntk variance", "ntk with outputs", "dntk", "ddntk")


class Start(NamedTuple):
    """The last layer at initialization, train and new outputs as one index; all but the first two times the width."""

    kernel: np.ndarray  # E[z z] at infinite width
    ntk: np.ndarray
    kernel_correction: np.ndarray
    ntk_correction: np.ndarray
    ntk_variance: np.ndarray  # E[h h]
    ntk_with_outputs: np.ndarray  # E[z z h]
    dntk: np.ndarray  # E[mu z]
    ddntk_1: np.ndarray
    ddntk_2: np.ndarray
    four_point: np.ndarray  # the fourth cumulant of z

    def rotated(self, vectors: np.ndarray) -> "Start":
        """The same with train indices in the columns of `vectors`."""
        n, total = len(vectors), len(self.kernel)
        turn = np.eye(total)
        turn[:n, :n] = vectors
        return Start(*(_turned(array, turn) for array in self))


class Law(NamedTuple):
    """`mean` (m,) and `cov` (m, m) at infinite width, and times 1/n each contribution: name -> (mean, cov).

    If `neurons` were drawn for them: `error`, standard errors of the sum of these contributions to mean and covariance
    and of the third and fourth cumulant of each output, (m,); `accuracy`, their
    `relative_error`.
    """

    mean: np.ndarray
    cov: np.ndarray
    corrections: dict[str, tuple[np.ndarray, np.ndarray]]
    error: tuple[np.ndarray, ...]
    neurons: int = 0
    accuracy: float = 0.0

    @classmethod
    def exact(cls, mean: np.ndarray, cov: np.ndarray, corrections: dict) -> "Law":
        return cls(mean, cov, corrections, tuple(np.zeros_like(each) for each in (mean, cov, mean, mean)))


def start_of(last, outputs: int) -> Start:
    """From the last layer of `propagate(order=1)`, for so many outputs: they are tied to each other in pairs."""
    r = last.ddntk_r
    eye = np.eye(outputs)
    pairs = (
        (last.ntk_variance_a, last.ntk_variance_b, last.ntk_variance_b.swapaxes(2, 3)),
        (last.ntk_output_d, last.ntk_output_f, last.ntk_output_f.swapaxes(2, 3)),
        (last.dntk_q, last.dntk_q.swapaxes(1, 2), last.dntk_p),
        (r, r.swapaxes(1, 2), r.transpose(0, 2, 3, 1)),
        (last.ddntk_s, last.ddntk_t, last.ddntk_u),
        (last.four_point, last.four_point.swapaxes(1, 2), last.four_point.transpose(0, 2, 3, 1)),
    )
    kernels = (last.kernel, last.ntk, last.kernel_correction, last.ntk_correction)
    return Start(*(np.kron(array, eye) for array in kernels), *(_tied(*three, eye) for three in pairs))


def _tied(first: np.ndarray, second: np.ndarray, third: np.ndarray, eye: np.ndarray) -> np.ndarray:
    """Outputs 1 = 2 and 3 = 4, plus 1 = 3 and 2 = 4, plus 1 = 4 and 2 = 3."""
    size = len(first) * len(eye)
    found = np.einsum("abcd,ij,kl->aibjckdl", first, eye, eye)
    found += np.einsum("abcd,ik,jl->aibjckdl", second, eye, eye)
    found += np.einsum("abcd,il,jk->aibjckdl", third, eye, eye)
    return found.reshape(size, size, size, size)


def _turned(array: np.ndarray, turn: np.ndarray) -> np.ndarray:
    for _ in range(array.ndim):
        array = np.tensordot(array, turn, axes=(0, 0))  # the turned axis goes to the end
    return array


class Polynomial(NamedTuple):
    """New outputs as a polynomial in the residuals e of the start, in modes x, y, z."""

    frozen: "FrozenKernel"
    dntk: (
        np.ndarray
    )  # [b, x, y, z]: what the part of mu that goes with output z adds by e_x e_y; z over all outputs
    ddntk: np.ndarray  # [b, x, y, z], by e_x e_y e_z, summed over which of them stands first
    with_output: np.ndarray  # [b, x]: E[g e], g = leading z


def polynomial(start: Start, response: Responses, n: int) -> Polynomial:
    """`start` in modes of the kernel, of which `n` are trained on."""
    s, frozen = start, frozen_kernel(start, response, n)

    def lifted(found: Response, factor: float) -> np.ndarray:
        return _lifted(s.ntk[n:, :n], found, factor)

    quadratic = np.einsum("bdxy,dxyz->bxyz", lifted(response.dntk_first, 0.5), s.dntk[:, :n, :n])
    quadratic += np.einsum("bdxy,xdyz->bxyz", lifted(response.dntk_second, 1.0), s.dntk[:n, :, :n])
    nu, kap = s.ddntk_1[..., :n, :n], s.ddntk_2
    cubic = np.einsum("bdxyz,dxyz->bxyz", lifted(response.ddntk_1_first, -1 / 6), nu[:, :n])
    cubic += np.einsum("bdxyz,xdyz->bxyz", lifted(response.ddntk_1_second, -0.5), nu[:n])
    cubic += np.einsum("bdxyz,dxyz->bxyz", lifted(response.ddntk_2_first, -1.0), kap[:, :n, :n, :n])
    cubic += np.einsum("bdxyz,xydz->bxyz", lifted(response.ddntk_2_third, -1.0), kap[:n, :n, :, :n])
    return Polynomial(frozen, quadratic, _folded(cubic), frozen.leading @ s.kernel[:, :n])


def trained_law(start: Start, response: Responses, y: np.ndarray) -> Law:
    """`start` in modes of the kernel, `y` (N,) too."""
    n, s = len(y), start
    (leading, one, twice), quadratic, folded, kg = polynomial(start, response, n)
    m, kernel = -y, s.kernel[:n, :n]
    second = np.outer(m, m) + kernel  # E[e e]
    own = np.einsum("bxyx->by", quadratic[..., :n]) + np.einsum("byxx->by", quadratic[..., :n])
    h1, hh = s.ntk_correction[:, :n], s.ntk_variance
    through = np.einsum("bdxy,dxxy->by", twice, hh[:, :n, :n, :n])

    mean = {
        "metric": np.zeros(len(leading)),
        "ntk mean": np.einsum("bdx,dx,x->b", one, h1, m),
        "ntk variance": through @ m,
        "ntk with outputs": np.zeros(len(leading)),
        "dntk": own @ m,
        "ddntk": np.einsum("bxyz,x,y,z->b", folded, m, m, m) / 3
        + np.einsum("bxyz,x,yz->b", folded, m, kernel),
    }
    weighted = np.einsum("dxey,xy->dxey", hh[:, :n, :, :n], second)
    spread = np.einsum("bdx,dxey,cey->bc", one, weighted, one, optimize=True)
    with_outputs = leading @ np.einsum("bdx,zxdx->zb", one, s.ntk_with_outputs[:, :n, :, :n])
    by_dntk = leading @ np.einsum("bxyz,xy->zb", quadratic, second) + kg @ own.T
    by_ddntk = np.einsum("bxyz,gx,yz->gb", folded, kg, second, optimize=True)
    cov = {
        "metric": leading @ s.kernel_correction @ leading.T,
        "ntk mean": _both(np.einsum("bdx,dx,gx->gb", one, h1, kg)),
        "ntk variance": spread + _both(kg @ through.T),
        "ntk with outputs": _both(with_outputs),
        "dntk": _both(by_dntk),
        "ddntk": _both(by_ddntk),
    }
    corrections = {name: (mean[name], cov[name]) for name in CONTRIBUTIONS}
    middle, spread_0 = leading[:, :n] @ m, leading @ s.kernel @ leading.T
    return Law.exact(middle, spread_0, corrections)


class FrozenKernel(NamedTuple):
    """f = leading (z - y) + one h e + twice h h e, y = 0 at new points: training with the kernel of the start."""

    leading: np.ndarray  # [b, d]
    one: np.ndarray  # [b, d, x]
    twice: np.ndarray  # [b, d, x, y]


def frozen_kernel(start: Start, response: Responses, n: int) -> FrozenKernel:
    """What new outputs take from outputs z at initialization and from differences h of the tangent kernel."""
    theta = start.ntk[n:, :n]
    leading = np.concatenate([-theta * response.ntk.new, np.eye(len(theta))], axis=1)
    return FrozenKernel(leading, _lifted(theta, response.ntk, -1.0), _lifted(theta, response.ntk_twice, 1.0))


def _lifted(theta: np.ndarray, found: Response, factor: float) -> np.ndarray:
    """[b, d, ..]: what new output b takes from an addition to output d, itself and through training on it."""
    m, n = theta.shape
    new = np.einsum("bd,...->bd...", np.eye(m), found.new)
    old = -theta.reshape(m, n, *(1,) * found.new.ndim) * found.old
    return factor * np.concatenate([old, new], axis=1)


def _folded(cubic: np.ndarray) -> np.ndarray:
    """Its sum over which index stands first: pairings of one index with two equal others become one product."""
    return sum(
        (cubic.transpose(0, *order) for order in ((1, 2, 3), (2, 1, 3), (3, 1, 2))), np.zeros_like(cubic)
    )


def _both(array: np.ndarray) -> np.ndarray:
    return array + array.T
