r"""How trained outputs answer to the tensors of a start: time sums over products of decaying modes.

Training on a frozen kernel decays mode x of the residual as e_x(s), and a_x = lr sum e_x. What the first moving tensors
add to an output is, summed over time, a product of these; with w_xy = lr sum_s e_x a_y they are

    a_x,  a_x a_y,  w_xy,  a_x a_y a_z,  X = lr sum e_x a_y a_z,  Y = lr sum e_x w_yz,  O_xy = sum sum over two stays,

each for an output that is not trained on (`new`), and followed by the training that answers it in mode i (`old`):
u <- p_i u + what is added, v <- v + lr u. All are linear recursions of few numbers, so a time is a power of a matrix.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg

_E, _A = 0, 1  # a mode: the residual now, and its sum so far


class Response(NamedTuple):
    """`new`, over modes (x, y, ..), and `old`, over modes (i, x, y, ..)."""

    new: np.ndarray
    old: np.ndarray


class Responses(NamedTuple):
    """All of them for unit residuals; the names say which tensor they belong to, and where its new output stands."""

    ntk: Response  # a_x
    ntk_twice: Response  # O_xy
    dntk_first: Response  # a_x a_y
    dntk_second: Response  # w_xy
    ddntk_1_first: Response  # a_x a_y a_z
    ddntk_1_second: Response  # X_xyz
    ddntk_2_first: Response  # a_y w_xz
    ddntk_2_third: Response  # Y_xyz


def responses_at_end(lam: np.ndarray, lr: float) -> Responses:
    """At the end of training, for eigenvalues `lam` > 0; `lr` = 0 is gradient flow."""
    x, y, z = lam[:, None, None], lam[:, None], lam

    def pair(a, b):
        return a + b - lr * a * b

    two = pair(lam[:, None], lam)
    three = pair(pair(x, y), z)
    w = (1 / lam[:, None] - 1 / two) / lam
    bend = (1 / x - 1 / two[:, :, None] - 1 / two[:, None] + 1 / three) / (y * z)
    turn = ((1 / x - 1 / two[:, :, None]) / y - (1 / x - 1 / three) / two) / z

    def answered(new):
        return Response(new, new / lam.reshape(-1, *(1,) * new.ndim))

    found = (1 / lam, 1 / np.outer(lam, lam), 1 / np.outer(lam, lam), w, 1 / (x * y * z), bend)
    return Responses(*map(answered, (*found, w[:, None, :] / y, turn)))


def responses_at(lam: np.ndarray, lr: float, time: float) -> Responses:
    """After `time` steps of size `lr`, or at `time` of gradient flow with `lr` = 0; `lam` may be zero."""
    n = len(lam)
    one, two, hh = (np.empty((n, n, 2)), np.empty((n, n, n, 4)), np.empty((n, n, n, 2)))
    three = np.empty((n, n, n, n, 8))
    x, y, z = lam[:, None, None], lam[:, None], lam
    for i in range(n):  # keeps the matrices of N^3 modes small
        one[i] = _evolved(_one_mode, 4, (lam[i], lam), lr, time)[:, [1, 3]]
        hh[i] = _evolved(_stays, 5, (lam[i], y, z), lr, time)[..., [2, 4]]
        two[i] = _evolved(_two_modes, 9, (lam[i], y, z), lr, time)[..., [3, 7, 4, 8]]
        three[i] = _evolved(_three_modes, 21, (lam[i], x, y, z), lr, time)[
            ..., [7, 17, 11, 18, 9, 19, 12, 20]
        ]

    def parts(stack):
        return [Response(stack[0, ..., k], stack[..., k + 1]) for k in range(0, stack.shape[-1], 2)]

    return Responses(*parts(one), *parts(hh), *parts(two), *parts(three))


def kernel_response(lam: np.ndarray, lr: float, time: float) -> Response:
    """Of a difference of the kernel alone, which takes no more than pairs of modes."""
    if math.isinf(time):
        return Response(1 / lam, 1 / np.outer(lam, lam))
    found = np.array([_evolved(_one_mode, 4, (rate, lam), lr, time)[:, [1, 3]] for rate in lam])
    return Response(found[0, :, 0], found[..., 1])


def _evolved(step: Callable, size: int, lam: tuple, lr: float, time: float) -> np.ndarray:
    """(modes, size): the state after `time`, from all residuals 1 and nothing summed yet."""
    shape = np.broadcast_shapes(*(np.shape(value) for value in lam))
    units = np.eye(size).reshape(size, size, *(1,) * len(shape)) * np.ones(shape)  # [entry, which, modes]

    def matrix(rate):
        moved = step(units, tuple(1 - rate * value for value in lam), rate)
        return np.moveaxis(np.array(moved), (0, 1), (-2, -1))

    if lr:
        with np.errstate(over="ignore", invalid="ignore"):
            power = np.linalg.matrix_power(matrix(lr), int(time))
    else:
        tiny = 1e-30  # a step is a polynomial of its size: the linear part, by an imaginary one
        power = scipy.linalg.expm(time * matrix(1j * tiny).imag / tiny)
    return power[..., 0]


def _mode(e, a, p, lr):
    return p * e, a + lr * e


def _followed(new, old, u, v, p, lr):
    """What training does about an addition new - old to the outputs it fits."""
    return p * u + new - old, v + lr * u


def _one_mode(s, p, lr):
    """e, a; u, v of a."""
    e, a = _mode(s[0], s[1], p[1], lr)
    return [e, a, *_followed(a, s[1], s[2], s[3], p[0], lr)]


def _stays(s, p, lr):
    """e_y, o = lr sum of the decay of x after that of y, O = lr sum o; u, v of O."""
    total = s[2] + lr * s[1]
    return [p[2] * s[0], p[1] * s[1] + lr * s[0], total, *_followed(total, s[2], s[3], s[4], p[0], lr)]


def _two_modes(s, p, lr):
    """Products of (e_x, a_x) and (e_y, a_y), w; u of both, v of both."""
    product = np.stack(s[:4]).reshape(2, 2, *s[0].shape)
    w = s[4] + lr * product[_E, _A]
    product = _moved(product, p[1:], lr)
    ua, va = _followed(product[_A, _A], s[3], s[5], s[7], p[0], lr)
    uw, vw = _followed(w, s[4], s[6], s[8], p[0], lr)
    return [*product.reshape(4, *s[0].shape), w, ua, uw, va, vw]


def _three_modes(s, p, lr):
    """Products of three modes, w_xz (e_y, a_y), w_yz e_x, X, Y; u of a a a, X, a w, Y, and v of them."""
    before = np.stack(s[:8]).reshape(2, 2, 2, *s[0].shape)
    product = _moved(before, p[1:], lr)
    middle = _mode(s[8] + lr * before[_E, _E, _A], s[9] + lr * before[_E, _A, _A], p[2], lr)
    outer = p[1] * (s[10] + lr * before[_E, _E, _A])
    bend, turn = s[11] + lr * before[_E, _A, _A], s[12] + lr * s[10]
    added = ((product[_A, _A, _A], s[7]), (bend, s[11]), (middle[1], s[9]), (turn, s[12]))
    follow = [_followed(*pair, s[13 + k], s[17 + k], p[0], lr) for k, pair in enumerate(added)]
    start = [*product.reshape(8, *s[0].shape), *middle, outer, bend, turn]
    return [*start, *(u for u, _ in follow), *(v for _, v in follow)]


def _moved(product, p, lr):
    for axis, decay in enumerate(p):
        e, a = np.moveaxis(product, axis, 0)
        product = np.moveaxis(np.stack(_mode(e, a, decay, lr)), 0, axis)
    return product


def responses(lam: np.ndarray, lr: float, time: float) -> Responses:
    return responses_at_end(lam, lr) if math.isinf(time) else responses_at(lam, lr, time)
