r"""The tensors of order 1/n of networks with residual blocks, from averages over the path of one neuron.

Given all kernels, the neurons of a layer are independent, and a neuron enters the kernels with a share of 1/n. A
residual block keeps its neurons: z^k and z^l of one neuron, k < l, are Gaussian with the covariance of layer k. So
with kappa and omega of `PairFunctions`, d_a = d/dz_a, and sums over pairs (k, l) of layers with the same neurons,

    V = cov(kappa_ab, kappa_cd)
    D = cov(kappa_ab, omega_cd)
    A = cov(omega_ab, omega_cd)
    F = Theta_cd <d_c kappa_ca  d_d kappa_db>
    B = Theta_ab Theta_cd <d_a d_c kappa_ac  d_b d_d kappa_bd>
    P = Theta_ab Theta_ac <d_a^2 kappa_ad  d_b d_c kappa_bc>
    Q = Theta_ac <d_a omega_ab  d_c kappa_cd>
    R = Theta_ac Theta_ad <d_a^2 omega_ab  d_c d_d kappa_cd>
    S = Theta_ac Theta_bd <d_a d_b omega_ab  d_c d_d kappa_cd>
    T = Theta_ab <d_a omega_ac  d_b omega_bd>
    U = Theta_ab Theta_ac Theta_bd <d_a^2 d_d kappa_ad  d_b^2 d_c kappa_bc>

with the tangent kernel Theta of the earlier of the two layers where it ties one function to the other. (A derivative of
the outputs along a random direction of the parameters is one more preactivation of the neuron, with covariance Theta:
each tensor is a covariance of two kernels of these.)
"""

import numpy as np

from ..averages.base import Averages
from .pair_function_terms import Terms, derivative, kappa, mean, omega, product
from .pair_functions import PairFunctions
from .recursion import Tensors


def path_tensors(
    one: PairFunctions,
    two: PairFunctions,
    thetas: tuple[np.ndarray, np.ndarray],
    earlier: np.ndarray,
    tables: np.ndarray,
    averages: tuple[Averages, Averages],
) -> Tensors:
    """Of one pair of layers; `thetas` and `averages` of both, `earlier` the Theta that ties them."""
    k1, k2, w1, w2 = kappa(one), kappa(two), omega(one, thetas[0]), omega(two, thetas[1])

    def cov(f: Terms, g: Terms) -> np.ndarray:
        means = mean(f, averages[0])[:, :, None, None] * mean(g, averages[1])
        return product(f, g, tables) - means

    def tied(f: Terms, by_f: str, g: Terms, by_g: str, order: str) -> np.ndarray:
        """<d f_.. d g_..>, whose four inputs are named in `order`, as [a, b, c, d]."""
        found = product(derivative(f, by_f), derivative(g, by_g), tables)
        return np.einsum(f"{order}->abcd", found)

    ab, cd = earlier[:, :, None, None], earlier
    ac, bd = earlier[:, None, :, None], earlier[None, :, None, :]
    ad = earlier[:, None, None, :]
    return {
        "V": cov(k1, k2),
        "D": cov(k1, w2),
        "A": cov(w1, w2),
        "F": cd * tied(k1, "a", k2, "a", "cadb"),
        "B": ab * cd * tied(k1, "ab", k2, "ab", "acbd"),
        "P": ab * ac * tied(k1, "aa", k2, "ab", "adbc"),
        "Q": ac * tied(w1, "a", k2, "a", "abcd"),
        "R": ac * ad * tied(w1, "aa", k2, "ab", "abcd"),
        "S": ac * bd * tied(w1, "ab", k2, "ab", "abcd"),
        "T": ab * tied(w1, "a", w2, "a", "acbd"),
        "U": ab * ac * bd * tied(k1, "aab", k2, "aab", "adbc"),
    }


def memory(
    later: tuple[np.ndarray, Averages],
    influence: PairFunctions,
    earlier: tuple[np.ndarray, Averages],
    tables: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """What shifts the means <s_a s_b> and <s'_a s'_b h_ab> of a layer because its neurons made its kernels.

    Half the covariance of d_p d_q (s_a s_b) and kappa_pq, and the same for s'_a s'_b with the tangent kernel.
    `later` is (Theta, averages) of the layer, `earlier` of the one whose neurons have `influence` on it.
    """
    (theta, at_later), (before, at_earlier) = later, earlier
    ones = np.ones_like(theta)
    k, w = kappa(influence), omega(influence, before)

    def cov(f: Terms, g: Terms, where: str) -> np.ndarray:
        means = mean(f, at_later)[:, :, None, None] * mean(g, at_earlier)
        return np.einsum(f"ab{where}->ab", product(f, g, tables) - means)

    def second(f: Terms) -> np.ndarray:
        ends = cov(derivative(f, "aa"), k, "aa") + cov(derivative(f, "bb"), k, "bb")
        return ends / 2 + cov(derivative(f, "ab"), k, "ab")

    def across(f: Terms) -> np.ndarray:
        """sum_p <d_p f_ab (d_a kappa_ap + d_b kappa_bp)>"""
        own = derivative(k, "a")
        found = np.zeros_like(theta)
        for p in "ab":
            moved = product(derivative(f, p), own, tables)
            found = found + np.einsum(f"aba{p}->ab", moved) + np.einsum(f"abb{p}->ab", moved)
        return found

    values, slopes = ((ones, "ab", 0, 0),), ((ones, "ab", 1, 1),)
    tangent = theta * second(slopes) + cov(slopes, w, "ab") + before * across(slopes)
    return second(values), tangent


def of_own_neurons(
    influence: PairFunctions, kernel: np.ndarray, theta: np.ndarray, averages: Averages
) -> Tensors:
    """What a layer of residual blocks has beyond: each of two neurons enters the kernels of the other.

    `influence` is that of the same neurons at an earlier layer, whose moments follow: averages of a product of
    preactivations, or of their derivatives by parameters, and the influence.
    """
    k, w = kappa(influence), omega(influence, theta)

    def outputs(f: Terms) -> np.ndarray:
        """cov(z_a z_b, f_cd)"""
        aa, ab, bb = (mean(derivative(f, by), averages) for by in ("aa", "ab", "bb"))
        ac, bc = kernel[:, None, :, None], kernel[None, :, :, None]
        ad, bd = kernel[:, None, None, :], kernel[None, :, None, :]
        return ac * bc * aa + (ac * bd + ad * bc) * ab + ad * bd * bb

    def output(f: Terms) -> np.ndarray:
        """<z_d f_ab>, [a, b, d]"""
        first, second = (mean(derivative(f, by), averages)[..., None] for by in ("a", "b"))
        return kernel[:, None] * first + kernel * second

    ab, cd = theta[:, :, None, None], theta
    ac, bd, ad = theta[:, None, :, None], theta[None, :, None, :], theta[:, None, None, :]
    four, one, tangent = outputs(k), output(derivative(k, "a")), output(derivative(w, "a"))
    slopes = mean(derivative(k, "ab"), averages)
    return {
        "V": four + four.transpose(2, 3, 0, 1),
        "D": outputs(w),
        "F": cd * (np.einsum("dba->abd", one)[:, :, None, :] + np.einsum("cab->abc", one)[..., None]),
        "B": ab * cd * (slopes[:, None, :, None] + slopes[None, :, None, :]),
        "P": ab * ac * mean(derivative(k, "aa"), averages)[:, None, None, :],
        "Q": ac * tangent[:, :, None, :],
        "R": ac * ad * mean(derivative(w, "aa"), averages)[:, :, None, None],
        "S": ac * bd * mean(derivative(w, "ab"), averages)[:, :, None, None],
    }
