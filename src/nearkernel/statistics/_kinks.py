r"""Trained networks with a kink: how neurons that cross it move the outputs, at order n^(-1/2).

A neuron of a hidden layer whose preactivation at training point a is u_a = x n^(-1/2) may be driven through the kink
while the network is trained. There are n^(1/2) of them, of density p_a = (2 pi K_aa)^(-1/2) for each unit of x, and

    dx = - (F_a + theta_aa xi_a e_a s'(x)) dt,   F_a = sum_(b != a) theta_ab xi_b s'_b e_b,

since its own residual e_a pushes by the slope on which it is: from one side of the kink it may come and on the other
stand still, so there is a net flux. Here xi is the field that leads from the neuron to the output (its weight, in the
last hidden layer), s'_b its slope at the other points given u_a = 0, and e the residuals at infinite width. Beside
what a neuron of frozen slope adds, it adds to the outputs

    S_a = p_a xi_a int dx [s(x_t) - s(x_0) - s'(x_0) (x_t^frozen - x_0)],
    S_d = - p_a xi_d s'_d theta_da int dx int dt xi_a e_a (s'(x_t) - s'(x_0))      for all other points d.

Beyond the first layer a neuron is moved by others too: they change what it is fed, by sum_b Gamma_ab e_b dt. Gamma is
Gaussian, since its weights are, and does not depend on xi; it adds to F_a,

    Gamma_ab = sum_i W_i s'_a(i) (theta_ab xi_b s'_b + Gamma_ab)(i)      over neurons i of the layer below.

All is summed over kinks a and layers, and training on the infinite kernel answers to that. Without the force of a point
on its own kink the average would vanish, by the sign of xi: this is why kinks at new points add nothing.

Given the outputs z at initialization, what n^(1/2) neurons add has the mean n^(-1/2) S(z) and a deviation of n^(-3/4)
only, and the tangent kernel at initialization fluctuates on its own. So to this order a trained output is g(z) +
n^(-1/2) S(z), with g linear in z; and S, which grows as the square of z - y with its sign, moves all cumulants:

    kappa_b - R y = n^(-1/2) <S_b>,   kappa_bc - cov_bc = n^(-1/2) (<S_b g_c> + <g_b S_c>),
    kappa_bcc = n^(-1/2) (<S_b :g_c g_c:> + 2 <S_c :g_b g_c:>),   and so on, with Hermite polynomials : : of g.

One training point has a closed form, for one hidden layer of relu, alpha = (z_a - y)/T and r = lr T:

    E f_b - R y = n^(-1/2) C^(3/2) theta_aa p_a (2/pi)^(1/2) E[alpha |alpha|] (w theta_ab - v R theta_aa)/2,
    w = (1 - r)/(2 - r) and v = 1 for r <= 1, of which the flow is r = 0;   w = r (1 - r) and v = r (2 - r) for r > 1,

where residuals change their sign at each step and only the first step drives neurons through the kink.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

_GRID = 24  # starts x_0 of a neuron
_EACH = 300  # steps of gradient descent that are followed one by one
_BLOCKS = 300  # stretches of time beyond, or of the flow
_LEFT = 12.0  # decays of the slowest mode after which training is over
_BEGIN = 1e-2  # of the fastest mode's decay time: the first stretch of the flow


class Stretches(NamedTuple):
    """Time in stretches, short enough for a kink to be crossed once: [k, mode]."""

    moved: jax.Array  # what is added to the sum of a unit residual
    kept: jax.Array  # of a mode over the stretch
    answered: jax.Array  # what a constant source adds to its answer
    late: jax.Array  # [k]: 1/2 for a stretch of many steps, by which its source is that of the middle


class Crossing(NamedTuple):
    """The background, and a layer with kinks; train points first."""

    modes: jax.Array  # [train, mode]
    lam: jax.Array
    ntk: jax.Array  # [point, train] of the network
    targets: jax.Array  # [output, train]
    filter: jax.Array  # [mode], at the end
    z_root: jax.Array  # [normal, point]
    u_root: jax.Array
    xi_root: jax.Array
    drift_root: jax.Array  # [normal, (train, train)], of Gamma; empty for the first layer
    kernel: jax.Array  # [train, point] of the layer, over its own variance: by which u_a = 0 moves the others
    theta: jax.Array  # [train, point] of the layer
    density: jax.Array  # [train], p_a


def stretches(lam: np.ndarray, lr: float, time: float) -> Stretches:
    """For eigenvalues > 0, steps `lr` or the flow, `lr` = 0."""
    slowest = -math.log(np.abs(1 - lr * lam).max()) if lr else float(lam[0])
    end = min(time, _LEFT / slowest)
    if lr:
        first = np.arange(min(math.ceil(end), _EACH) + 1)
        later = np.geomspace(_EACH, max(end, _EACH), _BLOCKS)[1:].round() if end > _EACH else np.zeros(0)
        times = np.unique(np.concatenate([first, later]))
    else:
        times = np.concatenate([[0.0], np.geomspace(min(_BEGIN / lam[-1], 0.5 * end), end, _BLOCKS)])
    spans = np.diff(times)
    factor = lambda t: (1 - lr * lam) ** t[:, None] if lr else np.exp(-lam * t[:, None])
    left, kept = factor(times), factor(spans)
    late: Any = np.where(spans > 1, 0.5, 0.0) if lr else np.full(len(spans), 0.5)
    return Stretches(-np.diff(left, axis=0) / lam, kept, (1 - kept) / lam, late)


def _cubed(normal: jax.Array) -> jax.Array:
    """Normals of xi and Gamma with one length in place of a random one: all that is found grows as its third power."""
    count = normal.shape[1] * normal.shape[2]
    mean = 2**1.5 * math.gamma((count + 3) / 2) / math.gamma(count / 2) if count < 300 else count**1.5
    return normal * (mean ** (1 / 3) / jnp.sqrt(jnp.sum(normal**2, axis=(1, 2), keepdims=True)))


def crossed(
    slopes: tuple[float, float], at_end: bool, on: Crossing, time: Stretches,
    u_normal: jax.Array, xi_normal: jax.Array, z_normal: jax.Array,
) -> tuple[jax.Array, ...]:  # fmt: skip
    """S_b, S_b g_c, S_b g_c^2 + 2 S_c g_b g_c and 2 S_b g_b g_c^2 + 2 S_c g_c g_b^2 of neurons, summed.

    b and c are (output, new). Every neuron stands once at the kink of each training point, with xi and with -xi.
    """
    right, left = slopes
    slope = lambda x: jnp.where(x > 0, right, left)
    n, m = on.theta.shape
    z = z_normal @ on.z_root  # [neuron, output, point]
    e = (z[..., :n] - on.targets) @ on.modes
    u = u_normal @ on.u_root
    others = slope(u[:, None] - u[:, :n, None] * on.kernel)  # [neuron, kink, point]
    normal, own_field = _cubed(xi_normal), len(on.xi_root)
    xi = normal[..., :own_field] @ on.xi_root
    drift = (normal[..., own_field:] @ on.drift_root).reshape(*z.shape[:2], n, n)
    xi = jnp.stack([xi, -xi])  # [sign, neuron, output, point]
    off = on.theta * (1 - jnp.eye(n, m, dtype=u.dtype))
    from_others, own = off[:, :n] * others[..., :n], jnp.diagonal(on.theta)

    def pushes(moved):
        """Of one stretch: xi e, then the force of other points and, for a slope of 1, that of the own one."""
        residual = (moved * e) @ on.modes.T
        w = jnp.sum(xi[..., :n] * residual, axis=-2)
        force = -jnp.einsum("pab,spb->spa", from_others, w)
        if len(on.drift_root):
            force = force - jnp.einsum("poab,pob->pa", drift, residual)
        return w, force, -own * w

    def widen(reach, moved):
        _, force, mine = pushes(moved)
        return reach + jnp.maximum(jnp.abs(force + right * mine), jnp.abs(force + left * mine)), None

    reach, _ = jax.lax.scan(widen, jnp.zeros((2, *u.shape[:1], n), u.dtype), time.moved)
    width = 2 * reach / _GRID
    # u_a itself, of which its neighbors given u_a = 0 are independent, places the grid: then no error of it is left.
    place = jax.scipy.special.ndtr(u[:, :n] * (math.sqrt(2 * math.pi) * on.density))
    x0 = reach[..., None] * ((jnp.arange(_GRID, dtype=u.dtype) + place[..., None]) * (2 / _GRID) - 1)
    s0 = slope(x0)

    def source(x, frozen, lost):
        """S, [neuron, output, point], averaged over both signs."""
        more = jnp.sum(slope(x) * x - s0 * frozen, axis=-1) * width  # at its own point
        found = -jnp.einsum("a,spod,pad,ad,spa->pod", on.density, xi, others, off, lost)
        at_own = jnp.einsum("a,spoa,spa->poa", on.density, xi[..., :n], more)
        return (found + jnp.pad(at_own, ((0, 0), (0, 0), (0, m - n)))) / 2

    def move(state, stretch):
        x, frozen, lost, answer = state
        w, force, mine = (part[..., None] for part in pushes(stretch.moved))
        now = slope(x)
        after = x + force + mine * now
        frozen_after = frozen + force + mine * s0
        lost_after = lost + jnp.sum(w * (now - s0), axis=-1) * width
        if not at_end:
            before, then = source(x, frozen, lost), source(after, frozen_after, lost_after)
            middle = (1 - stretch.late) * before + stretch.late * then
            answer = stretch.kept * answer + stretch.answered * (middle[..., :n] @ on.modes)
        return (after, frozen_after, lost_after, answer), None

    start = (x0, x0, jnp.zeros_like(reach), jnp.zeros_like(e))
    (x, frozen, lost, answer), _ = jax.lax.scan(move, start, time)
    found = source(x, frozen, lost)
    if at_end:
        answer = (found[..., :n] @ on.modes) / on.lam
    response = lambda s, a: (s[..., n:] - (a @ on.modes.T) @ on.ntk[n:].T).reshape(len(u), -1)
    shift = response(found, answer)
    g = response(z, on.filter * (z[..., :n] @ on.modes))
    own, squares = shift * g, g**2
    fourth = own.T @ squares
    return shift.sum(axis=0), shift.T @ g, shift.T @ squares + 2 * g.T @ own, 2 * (fourth + fourth.T)
