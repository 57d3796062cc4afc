r"""One layer on: how the tensors of order 1/n of a layer follow from those of the layer before.

Notation: lower letters a, b, c, d are inputs, s_a = s(z_a), < > the average over N(0, K), d_p = d/dz_p, p and q summed
over inputs, r = n_l / n_{l-1}, C = C_W, and lambda = C_W as weights are trained with in "ntk" scaling. Then, with
w_ab = lambda s_a s_b + C Theta_ab s'_a s'_b and u_ab = C Theta_ab s''_a s'_b + lambda s'_a s_b,

    V' = C^2 cov(s_a s_b, s_c s_d) + r C^2/4 V_(pq)(uv) <d_p d_q (s_a s_b)> <d_u d_v (s_c s_d)>

and so on; each function below states its own. The docstring of `Fluctuations` says what the tensors are.
"""

import itertools

import numpy as np

from ..averages.base import Averages

Tensors = dict[str, np.ndarray]
KERNELS = ("G", "H")  # (n, n)
NTK_TENSORS = ("V", "D", "F", "A", "B")  # (n, n, n, n), as all others
DNTK_TENSORS = ("P", "Q")
DDNTK_TENSORS = ("R", "S", "T", "U")


def first_tensors(n: int, names: tuple[str, ...]) -> Tensors:
    """Layer 1 is exactly Gaussian, with a constant tangent kernel."""
    return {name: np.zeros((n,) * (2 if name in KERNELS else 4)) for name in names}


def next_tensors(old: Tensors, theta: np.ndarray, c: float, r: float, averages: Averages) -> Tensors:
    """Tensors of the next layer; `theta` is the tangent kernel of this one."""
    step = Step(old, theta, c, r, averages)
    new = {"V": step.v(), "G": step.g()}
    new |= {"D": step.d(), "F": step.f(), "A": step.a(), "B": step.b(), "H": step.h(new["G"])}
    if "P" in old:
        new |= {"P": step.p(), "Q": step.q()}
    if "R" in old:
        new |= {"R": step.ddntk_r(), "S": step.ddntk_s(), "T": step.ddntk_t(), "U": step.ddntk_u()}
    return new


class Step:
    def __init__(self, old: Tensors, theta: np.ndarray, c: float, r: float, averages: Averages):
        self.old, self.theta, self.c, self.lam, self.r = old, theta, c, c, r
        self.pair, self.four = averages.pair, averages.four
        self.slopes = self.pair(1, 1)  # <s'_a s'_b>
        self.values = self.pair(0, 0)
        self.mean_w = self.lam * self.values + c * theta * self.slopes
        # <d_p u_ab> = ua at p = a, plus ub at p = b
        self.ua = c * theta * self.pair(3, 1) + self.lam * self.pair(2, 0)
        self.ub = c * theta * self.pair(2, 2) + self.lam * self.slopes

    # Derivatives under the average, contracted with tensors of the layer before.

    def second(self, x: np.ndarray, i: int) -> np.ndarray:
        """x_pq.. <d_p d_q (s^(i)_a s^(i)_b)>, on the first two axes."""
        rest = (...,) + (None,) * (x.ndim - 2)
        diagonal = np.moveaxis(np.diagonal(x, axis1=0, axis2=1), -1, 0)
        return (
            diagonal[:, None] * self.pair(i + 2, i)[rest]
            + (x + x.swapaxes(0, 1)) * self.pair(i + 1, i + 1)[rest]
            + diagonal[None] * self.pair(i, i + 2)[rest]
        )

    def second_w(self, x: np.ndarray) -> np.ndarray:
        """x_pq.. <d_p d_q w_ab>, with Theta held fixed."""
        theta = self.theta[(...,) + (None,) * (x.ndim - 2)]
        return self.lam * self.second(x, 0) + self.c * theta * self.second(x, 1)

    def fourth(self, i: int) -> np.ndarray:
        """V_(pq)(uv) <d_p d_q d_u d_v (s^(i)_a s^(i)_b)>."""
        n = len(self.theta)
        ends = np.indices((n, n))
        total = np.zeros((n, n))
        for chosen in itertools.product((0, 1), repeat=4):
            on_b = sum(chosen)
            total += self.old["V"][tuple(ends[k] for k in chosen)] * self.pair(i + 4 - on_b, i + on_b)
        return total

    # Preactivations.

    def v(self) -> np.ndarray:
        """C^2 { cov(s_a s_b, s_c s_d) + (r/4) V_(pq)(uv) <d_p d_q (s_a s_b)> <d_u d_v (s_c s_d)> }"""
        spread = _swap(self.second(_swap(self.second(self.old["V"], 0)), 0))
        return self.c**2 * (self.four(0, 0, 0, 0) - _outer(self.values, self.values) + self.r / 4 * spread)

    def g(self) -> np.ndarray:
        """r C { (1/2) G_pq <d_p d_q (s_a s_b)> + (1/8) V <d^4 (s_a s_b)> }"""
        return self.r * self.c * (self.second(self.old["G"], 0) / 2 + self.fourth(0) / 8)

    # The tangent kernel.

    def d(self) -> np.ndarray:
        """C cov(s_a s_b, w_cd) + r { (C/4) V <dd(s_a s_b)> <dd w_cd> + (C^2/2) <dd(s_a s_b)> D_pqcd <s'_c s'_d> }"""
        c, r = self.c, self.r
        cov = self.lam * self.four(0, 0, 0, 0) + c * self.theta * self.four(0, 0, 1, 1)
        cov = cov - _outer(self.values, self.mean_w)
        spread = self.second(_swap(self.second_w(_swap(self.old["V"]))), 0)
        return c * cov + r * (c / 4 * spread + c * c / 2 * self.second(self.old["D"], 0) * self.slopes)

    def f(self) -> np.ndarray:
        """C^2 <s_a s_b s'_c s'_d> Theta_cd + r C^2 <d_p (s_a s'_c)> <d_q (s_b s'_d)> F_pqcd"""
        near, far, old = self.slopes, self.pair(0, 2), self.old["F"]  # d_p at p = a, and at p = c
        at_c = np.einsum("cqcd->qcd", old)[None]
        left = old * near[:, None, :, None] + at_c * far[:, None, :, None]
        both = left * near[None, :, None, :] + np.einsum("adcd->acd", left)[:, None] * far[None, :, None, :]
        return self.c**2 * (self.four(0, 0, 1, 1) * self.theta + self.r * both)

    def b(self) -> np.ndarray:
        """C^2 { <s'_a s'_b s'_c s'_d> Theta_ab Theta_cd + r <s'_a s'_c> <s'_b s'_d> B_abcd }"""
        across = self.slopes[:, None, :, None] * self.slopes[None, :, None, :]
        straight = self.four(1, 1, 1, 1) * _outer(self.theta, self.theta)
        return self.c**2 * (straight + self.r * across * self.old["B"])

    def a(self) -> np.ndarray:
        """cov(w_ab, w_cd) + r { (1/4) V <dd w_ab> <dd w_cd> + (C/2) [<dd w_ab> D_pqcd <s'_c s'_d> + (ab <-> cd)]

        + C^2 <s'_a s'_b> <s'_c s'_d> A_abcd }
        """
        c, lam = self.c, self.lam
        mixed = lam * c * self.four(0, 0, 1, 1) * self.theta
        cov = lam**2 * self.four(0, 0, 0, 0) + mixed + _swap(mixed)
        cov = (
            cov
            + c * c * self.four(1, 1, 1, 1) * _outer(self.theta, self.theta)
            - _outer(self.mean_w, self.mean_w)
        )
        spread = self.second_w(_swap(self.second_w(_swap(self.old["V"])))) / 4
        through = c / 2 * self.second_w(self.old["D"]) * self.slopes
        kept = c * c * _outer(self.slopes, self.slopes) * self.old["A"]
        return cov + self.r * (spread + through + _swap(through) + kept)

    def h(self, new_g: np.ndarray) -> np.ndarray:
        """(lambda/C) G'_ab + r C { <s'_a s'_b> H_ab + Theta_ab [(1/2) G <dd(s'_a s'_b)> + (1/8) V <d^4 (s'_a s'_b)>]

        + (1/2) <d_p d_q (s'_a s'_b)> (D_pqab + F_pqab + F_pqba) }
        """
        y = self.old["D"] + self.old["F"] + self.old["F"].swapaxes(2, 3)
        across = np.einsum("abab->ab", y) + np.einsum("baab->ab", y)
        own = np.einsum("aaab->ab", y) * self.pair(3, 1) + across * self.pair(2, 2)
        own = own + np.einsum("bbab->ab", y) * self.pair(1, 3)
        shifted = self.second(self.old["G"], 1) / 2 + self.fourth(1) / 8
        inner = self.slopes * self.old["H"] + self.theta * shifted + own / 2
        return self.lam / self.c * new_g + self.r * self.c * inner

    # The first derivative of the tangent kernel.

    def p(self) -> np.ndarray:
        """C^2 <s''_a s'_b s'_c s_d> Theta_ab Theta_ac

        + r C^2 <s'_b s'_c> { <s''_a s_d> B_abac + <d_p (s'_a s_d)> P_abcp }
        """
        near = np.einsum("abac->abc", self.old["B"]) + np.einsum("abca->abc", self.old["P"])
        own = near[..., None] * self.pair(2, 0)[:, None, None, :]
        own = own + self.old["P"] * self.slopes[:, None, None, :]
        source = self.four(2, 1, 1, 0) * self._theta_ab_ac()
        return self.c**2 * (source + self.r * self.slopes[None, :, :, None] * own)

    def q(self) -> np.ndarray:
        """C^2 <s''_a s'_b s'_c s_d> Theta_ab Theta_ac + lambda C <s'_a s_b s'_c s_d> Theta_ac

        + r { C <d_p u_ab> <d_q (s'_c s_d)> F_pqac + C^2 <s'_a s'_b> <d_p (s'_c s_d)> Q_abcp }
        """
        c, f, q = self.c, self.old["F"], self.old["Q"]
        theta_ac = self.theta[:, None, :, None]
        source = (
            c * c * self.four(2, 1, 1, 0) * self._theta_ab_ac()
            + self.lam * c * self.four(1, 0, 1, 0) * theta_ac
        )
        at_c, at_d = self.pair(2, 0), self.slopes  # <d_q (s'_c s_d)> at q = c, and at q = d
        ua, ub = self.ua[:, :, None, None], self.ub[:, :, None, None]
        through = (
            ua * np.einsum("acac->ac", f)[:, None, :, None] + ub * _at(f, "bcac->abc")[..., None]
        ) * at_c
        through = through + (ua * _at(f, "adac->acd")[:, None] + ub * np.einsum("bdac->abcd", f)) * at_d
        kept = self.slopes[:, :, None, None] * (_at(q, "abcc->abc")[..., None] * at_c + q * at_d)
        return source + self.r * (c * through + c * c * kept)

    # The means of its second derivatives.

    def ddntk_r(self) -> np.ndarray:
        """C^2 <s'''_a s'_b s'_c s'_d> Theta_ab Theta_ac Theta_ad + lambda C <s''_a s_b s'_c s'_d> Theta_ac Theta_ad

        + r C <s'_c s'_d> { ua_ab B_acad + <d_p u_ab> P_acdp + C <s'_a s'_b> R_abcd }
        """
        c, p = self.c, self.old["P"]
        theta_ab, theta_acad = (
            self.theta[:, :, None, None],
            (self.theta[:, :, None] * self.theta[:, None])[:, None],
        )
        source = c * c * self.four(3, 1, 1, 1) * theta_ab + self.lam * c * self.four(2, 0, 1, 1)
        near = (_at(self.old["B"], "acad->acd") + _at(p, "acda->acd"))[:, None]
        own = self.ua[:, :, None, None] * near + self.ub[:, :, None, None] * np.einsum("acdb->abcd", p)
        own = own + c * self.slopes[:, :, None, None] * self.old["R"]
        return source * theta_acad + self.r * c * self.slopes * own

    def ddntk_s(self) -> np.ndarray:
        """lambda C <s'_a s'_b s'_c s'_d> Theta_ac Theta_bd + C^2 <s''_a s''_b s'_c s'_d> Theta_ab Theta_ac Theta_bd

        + r C <s'_c s'_d> { (lambda <s'_a s'_b> + C <s''_a s''_b> Theta_ab) B_acbd + C <s'_a s'_b> S_abcd }
        """
        c, theta_ab = self.c, self.theta[:, :, None, None]
        source = self.lam * c * self.four(1, 1, 1, 1) + c * c * self.four(2, 2, 1, 1) * theta_ab
        own = self.ub[:, :, None, None] * self.old["B"].swapaxes(1, 2)  # ub is this bracket
        own = own + c * self.slopes[:, :, None, None] * self.old["S"]
        return source * self._theta_ac_bd() + self.r * c * self.slopes * own

    def ddntk_t(self) -> np.ndarray:
        """<u_ac u_bd> Theta_ab + r { <d_p u_ac> <d_q u_bd> F_pqab + C <s'_b s'_d> <d_p u_ac> Q_bdap

        + C <s'_a s'_c> <d_p u_bd> Q_acbp + C^2 <s'_a s'_c> <s'_b s'_d> T_abcd }
        """
        c, lam, f, q = self.c, self.lam, self.old["F"], self.old["Q"]
        theta_ac, theta_bd = self.theta[:, None, :, None], self.theta[None, :, None, :]
        source = c * c * theta_ac * theta_bd * self.four(2, 2, 1, 1) + lam**2 * self.four(1, 1, 0, 0)
        source = source + c * lam * (theta_ac * self.four(2, 1, 1, 0) + theta_bd * self.four(1, 2, 0, 1))
        ua_ac, ub_ac, slope_ac = (m[:, None, :, None] for m in (self.ua, self.ub, self.slopes))
        ua_bd, ub_bd, slope_bd = (m[None, :, None, :] for m in (self.ua, self.ub, self.slopes))
        through = ua_ac * (
            ua_bd * _at(f, "abab->ab")[:, :, None, None] + ub_bd * _at(f, "adab->abd")[:, :, None]
        )
        through = through + ub_ac * (
            ua_bd * _at(f, "cbab->abc")[..., None] + ub_bd * np.einsum("cdab->abcd", f)
        )
        by_q = ua_ac * _at(q, "bdaa->abd")[:, :, None] + ub_ac * np.einsum("bdac->abcd", q)
        by_p = ua_bd * _at(q, "acbb->abc")[..., None] + ub_bd * np.einsum("acbd->abcd", q)
        kept = c * slope_bd * by_q + c * slope_ac * by_p + c * c * slope_ac * slope_bd * self.old["T"]
        return source * self.theta[:, :, None, None] + self.r * (through + kept)

    def ddntk_u(self) -> np.ndarray:
        """C^2 { <s''_a s''_b s'_c s'_d> Theta_ab Theta_ac Theta_bd + r <s'_a s'_d> <s'_b s'_c> U_abcd }"""
        source = self.four(2, 2, 1, 1) * self.theta[:, :, None, None] * self._theta_ac_bd()
        across = self.slopes[:, None, None, :] * self.slopes[None, :, :, None]
        return self.c**2 * (source + self.r * across * self.old["U"])

    def _theta_ab_ac(self) -> np.ndarray:
        return (self.theta[:, :, None] * self.theta[:, None])[..., None]

    def _theta_ac_bd(self) -> np.ndarray:
        return self.theta[:, None, :, None] * self.theta[None, :, None, :]


def _outer(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x_ab y_cd"""
    return x[:, :, None, None] * y


def _swap(x: np.ndarray) -> np.ndarray:
    """x_cdab"""
    return x.transpose(2, 3, 0, 1)


def _at(x: np.ndarray, subscripts: str) -> np.ndarray:
    """Entries with repeated inputs."""
    return np.einsum(subscripts, x)
