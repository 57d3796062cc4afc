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
on its own kink the average would vanish, by the sign of xi: this is why kinks at new points add nothing, unless they
are close to that of a training point, their partner. A neuron that crosses one of them then crosses the other too: at
a distance of n^(-1/2), S_d of a new point turns into S_a of its partner. So neurons at the kink of d are followed, too,

    u_d = x n^(-1/2),   u_a = (K_ad/K_dd) x n^(-1/2) + v_a,   dx_a = - (F_a + theta_aa xi_a e_a s'(x_a)) dt,

with v_a independent of x, and S_d gains p_d xi_d int dx [s(x_t) - s(x_0) - s'(x_0) (x_t - x_0)], in which x is moved by
the partner's slope along x_a. At a copy of a training point S is that of the training point, and what training answers
takes all of it away as time goes to infinity: a trained network passes through its training points. Training points are
taken to be further apart.

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
    """The background, and a layer with kinks; train points first. A center is a point whose kink neurons may cross."""

    modes: jax.Array  # [train, mode]
    lam: jax.Array
    ntk: jax.Array  # [point, train] of the network
    targets: jax.Array  # [output, train]
    filter: jax.Array  # [mode], at the end
    z_root: jax.Array  # [normal, point]
    u_root: jax.Array
    xi_root: jax.Array
    drift_root: jax.Array  # [normal, (point, train)], of Gamma; empty for the first layer
    kernel: (
        jax.Array
    )  # [center, point] of the layer, over the center's variance: by which u = 0 there moves the others
    theta: jax.Array  # [point, train] of the layer
    density: jax.Array  # [center], p
    partner: jax.Array  # [center], the training point whose kink is nearest: itself, for a training point
    root_width: jax.Array  # n^(1/2) of the layer


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


def crossed(
    slopes: tuple[float, float], at_end: bool, on: Crossing, time: Stretches,
    u_normal: jax.Array, xi_normal: jax.Array, z_normal: jax.Array, weight: jax.Array,
) -> tuple[jax.Array, ...]:  # fmt: skip
    """S_b, S_b g_c, S_b g_c^2 + 2 S_c g_b g_c and 2 S_b g_b g_c^2 + 2 S_c g_c g_b^2 of neurons, summed with `weight`.

    b and c are (output, new). Every neuron stands once at the kink of each point, with xi and with -xi.
    """
    right, left = slopes
    slope = lambda x: jnp.where(x > 0, right, left)
    m, n = on.theta.shape
    z = z_normal @ on.z_root  # [neuron, output, point]
    e = (z[..., :n] - on.targets) @ on.modes
    u = u_normal @ on.u_root
    given = u[:, None] - u[:, :, None] * on.kernel  # [neuron, center, point]: u given u = 0 at the center
    others = slope(given)
    own_field = len(on.xi_root)
    xi = xi_normal[..., :own_field] @ on.xi_root
    drift = (xi_normal[..., own_field:] @ on.drift_root).reshape(*z.shape[:2], m, n)
    xi = jnp.stack([xi, -xi])  # [sign, neuron, output, point]
    every = jnp.arange(m)
    single = on.partner[:, None] != jnp.arange(n)  # [center, train]: all but the partner
    frozen_slopes = jnp.where(single, others[..., :n], 0.0)
    to_center, to_partner = on.theta * frozen_slopes, on.theta[on.partner] * frozen_slopes
    center_by_partner, partner_by_itself = on.theta[every, on.partner], on.theta[on.partner, on.partner]

    def pushes(moved):
        """Of one stretch: xi e, and the forces of all but the partner on the center and on the partner."""
        residual = (moved * e) @ on.modes.T
        w = jnp.sum(xi[..., :n] * residual, axis=-2)
        on_center = -jnp.einsum("pcb,spb->spc", to_center, w)
        on_partner = -jnp.einsum("pcb,spb->spc", to_partner, w)
        if len(on.drift_root):
            fed = jnp.einsum("pocb,pob->pc", drift, residual)
            on_center, on_partner = on_center - fed, on_partner - fed[:, on.partner]
        return w[..., on.partner], on_center, on_partner

    def widen(reach, moved):
        w, force, _ = pushes(moved)
        mine = -center_by_partner * w
        return reach + jnp.maximum(jnp.abs(force + right * mine), jnp.abs(force + left * mine)), None

    reach, _ = jax.lax.scan(widen, jnp.zeros((2, *u.shape), u.dtype), time.moved)
    width = 2 * reach / _GRID
    # u at the center, of which its neighbors given u = 0 are independent, places the grid: then no error of it is left.
    place = jax.scipy.special.ndtr(u * (math.sqrt(2 * math.pi) * on.density))
    x0 = reach[..., None] * ((jnp.arange(_GRID, dtype=u.dtype) + place[..., None]) * (2 / _GRID) - 1)
    beside = lambda center, point, x: (
        on.kernel[center, point][:, None] * x + on.root_width * given[:, center, point][..., None]
    )
    partner0 = beside(every, on.partner, x0)
    s0 = slope(partner0)
    met = slope(
        beside(on.partner, every, x0[:, :, on.partner])
    )  # at a point, of neurons at the kink of its partner

    def source(state, points):
        """S, [neuron, output, point], of the first `points`, averaged over both signs."""
        _, lost, pushed, force = state
        by_kinks = jnp.sum(lost[:, :, :n], axis=-1) * (width[..., :n] * on.density[:n])
        slopes_there = jnp.where(single[:points].T, others[:, :n, :points], 0.0)
        by_others = jnp.einsum("pad,da,spa->spd", slopes_there, on.theta[:points], by_kinks)
        first, partner = slice(points), on.partner[:points]
        by_partner = (
            jnp.sum(met[:, :, first] * lost[:, :, partner], axis=-1) * (width * on.density)[..., partner]
        )
        lag = -center_by_partner[first, None] * lost[:, :, first]
        after = x0[:, :, first] + force[..., first, None]
        after = after - (center_by_partner * pushed)[..., first, None] * s0[:, :, first] + lag
        passed = jnp.where((after > 0) != (x0[:, :, first] > 0), jnp.abs(after), 0.0)
        at_own = jnp.sum(passed, axis=-1) * ((right - left) * width * on.density)[..., first]
        total = at_own - by_others - center_by_partner[first] * by_partner
        return jnp.mean(xi[..., first] * total[:, :, None], axis=0)

    def move(state, stretch):
        (x, lost, pushed, force), answer = state
        w, on_center, on_partner = pushes(stretch.moved)
        now = slope(x)
        after = x + on_partner[..., None] - (partner_by_itself * w)[..., None] * now
        then = (after, lost + w[..., None] * (now - s0), pushed + w, force + on_center)
        if not at_end:
            middle = (1 - stretch.late) * source(state[0], n) + stretch.late * source(then, n)
            answer = stretch.kept * answer + stretch.answered * (middle @ on.modes)
        return (then, answer), None

    none = jnp.zeros_like(reach)
    start = ((partner0, jnp.zeros_like(x0), none, none), jnp.zeros_like(e))
    (end, answer), _ = jax.lax.scan(move, start, time)
    found = source(end, m)
    if at_end:
        answer = (found[..., :n] @ on.modes) / on.lam
    response = lambda s, a: (s[..., n:] - (a @ on.modes.T) @ on.ntk[n:].T).reshape(len(u), -1)
    shift = weight[:, None] * response(found, answer)
    g = response(z, on.filter * (z[..., :n] @ on.modes))
    own, squares = shift * g, g**2
    fourth = own.T @ squares
    return shift.sum(axis=0), shift.T @ g, shift.T @ squares + 2 * g.T @ own, 2 * (fourth + fourth.T)
