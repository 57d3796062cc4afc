r"""Training of an infinitely wide network to which one finite neuron is added, to fourth order in its size.

A network of width n is n such neurons of size eps = n^(-1/2), and to order 1/n they do not see each other. A neuron
with preactivations u and outgoing field xi (covariance X; for the last hidden layer xi is one number, its weight) adds

    G = eps xi_a s(u_a) + eps^2 alpha_a s(u_a)^2

to an output, where alpha is what the layers above make of its square: Cov(alpha_a, z_b) = Psi_ab. Training moves it by

    d xi = -eps Z (s e),   d u = -eps theta ((xi s' + 2 eps alpha s s') e),   d alpha = -Phi e,

and the rest of the network by -Theta e - eps^2 Phi^T (s^2 e). With e = e0 + eps e1 + ..., and S_k what order k of G and
of the rest adds to the outputs, a_k = int e_k answers it as a_k <- U a_k + S_k. Of outputs f = sum eps^k f_k at new
points

    n (E f - f_inf) = <f4>,   n (Cov f - Cov_inf) = sum_i <f_i f_(4-i)>,

and third and fourth moments likewise: all products of orders that add up to four.

Fields are arrays [.., point] with outputs, if any, before the points; all times of a panel are done at once.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Panels(NamedTuple):
    """Times in panels (k of them, q nodes each, padded by the last node), in modes of the kernel where said."""

    decay: jax.Array  # [k, q, mode] of a residual, since time 0
    filter: jax.Array  # [k, q, mode] (1 - decay) / eigenvalue
    kept: jax.Array  # [k, q, mode] since the start of the panel
    answered: jax.Array  # [k, q, q, mode] what the value at a node adds until another, decaying
    summed: jax.Array  # [k, q, q] and not decaying


class Background(NamedTuple):
    """The infinitely wide network: train points first, new ones after them."""

    modes: jax.Array  # [point, mode], of the kernel of train points
    lam: jax.Array
    ntk: jax.Array  # [point, train]
    targets: jax.Array  # [output, train]
    filter: jax.Array  # [mode] at the end
    z_root: jax.Array  # [normal, point] of the covariance of outputs


class Neuron(NamedTuple):
    """A hidden layer as the output sees it: [point, train] but for the roots, the first square and cov_alpha."""

    u_root: jax.Array  # [normal, point]
    xi_root: jax.Array  # [normal, point]
    alpha_root: jax.Array  # [normal of z, point]
    theta: jax.Array
    z: jax.Array
    phi: jax.Array
    phi_back: jax.Array
    mean_omega: jax.Array
    mean_square: jax.Array  # [point]
    theta_alpha: jax.Array  # theta times the covariance of alpha


class Outcome(NamedTuple):
    """Sums over neurons of moments of order four, f at new points of all outputs, b and c."""

    mean: jax.Array  # f_b
    cov: jax.Array  # f_b f_c
    third: jax.Array  # f_b f_c f_c
    fourth: jax.Array  # f_b f_b f_c f_c
    spread: jax.Array  # the part of f_b f_c that alpha makes alone: it belongs to G^(1)


def outcome(
    activation: Any, last: bool, at_end: bool, net: Background, neuron: Neuron, panels: Panels,
    u_normal: jax.Array, xi_normal: jax.Array, z_normal: jax.Array,
) -> Outcome:  # fmt: skip
    """Of a block of neurons, each with a probe z of the outputs and with its mirror image -z.

    The strongest direction of xi is not drawn: a few sizes of it average all powers up to the fifth.

    `last`: whether the neurons feed the output itself, so that Psi = Phi = 0 and X = Z are constant; `at_end`: whether
    training goes on forever. Normals are (neurons, [outputs,] normals).
    """
    n = net.ntk.shape[1]
    s = _derivatives(activation, u_normal @ neuron.u_root)  # s to s''', [neuron, point]
    xi_normal, weights = _sizes(xi_normal, last)
    both = _Neurons(last, net, neuron, s, xi_normal @ neuron.xi_root)
    z = z_normal @ net.z_root
    alpha = jnp.zeros_like(z) if last else z_normal @ neuron.alpha_root
    z, alpha = (
        jnp.stack([field, -field])[:, None] for field in (z, alpha)
    )  # [sign, 1, neuron, output, point]
    e0 = (z[..., :n] - net.targets) @ net.modes
    e1 = (both.xi * s[0][:, None])[..., :n] @ net.modes
    run = _Run(both, alpha, e0, e1, at_end)
    state = run.through(panels)
    return run.outcome(state, z, weights)


def _sizes(normal: jax.Array, last: bool) -> tuple[jax.Array, jax.Array]:
    """[size, neuron, output, normal] with weights (size,): the first normals, of all outputs, as a direction of lengths
    0 and sqrt(out + 2), in both senses unless there are no other normals."""
    outputs = normal.shape[1]
    first = normal[..., 0]
    unit = first / jnp.linalg.norm(first, axis=1, keepdims=True)
    size = (outputs + 2.0) ** 0.5
    sizes = jnp.array([0.0, size] if last else [0.0, size, -size], normal.dtype)
    far = outputs / (outputs + 2.0)
    weights = jnp.array([1 - far, far] if last else [1 - far, far / 2, far / 2], normal.dtype)
    tiled = jnp.broadcast_to(normal, (len(sizes), *normal.shape))
    return tiled.at[..., 0].set(sizes[:, None, None] * unit), weights


class _State(NamedTuple):
    """Sums over time, to the end of a panel; the last two in modes."""

    xi2: jax.Array
    u2: jax.Array
    xi3: jax.Array
    u3: jax.Array
    back3: jax.Array
    back4: jax.Array
    a2: jax.Array
    a3: jax.Array
    a4: jax.Array


class _Neurons:
    """Products with the matrices of a layer, at all points or at train points."""

    def __init__(self, last: bool, net: Background, neuron: Neuron, s: list[jax.Array], xi: jax.Array):
        self.last, self.net, self.neuron, self.s, self.xi = last, net, neuron, s, xi
        self.n = net.ntk.shape[1]

    def fields(self, every: bool) -> tuple:
        """s to s''' and xi at all points, or at train points; s with an axis for outputs."""
        end = None if every else self.n
        return [f[..., :end] for f in self.s], self.xi[..., :end]

    def _times(self, matrix: jax.Array, x: jax.Array, every: bool) -> jax.Array:
        return x @ (matrix if every else matrix[: self.n]).T

    def theta(self, x, every):
        return self._times(self.neuron.theta, x, every)

    def z(self, x, every):
        if self.last:  # a constant matrix
            total = self.neuron.z[0, 0] * x.sum(axis=-1, keepdims=True)
            return jnp.broadcast_to(total, (*x.shape[:-1], len(self.neuron.z) if every else self.n))
        return self._times(self.neuron.z, x, every)

    def phi(self, x, every):
        return 0.0 if self.last else self._times(self.neuron.phi, x, every)

    def phi_back(self, x, every):
        return 0.0 if self.last else self._times(self.neuron.phi_back, x, every)

    def mean_omega(self, x, every):
        return self._times(self.neuron.mean_omega, x, every)

    def ntk(self, x, every):
        return self._times(self.net.ntk, x, every)


class _Moment(NamedTuple):
    """Residuals of order 0 and 1 and their sums at some times, at train points."""

    e0: jax.Array
    a0: jax.Array
    e1: jax.Array
    a1: jax.Array


class _Run:
    def __init__(self, neurons: _Neurons, alpha: jax.Array, e0: jax.Array, e1: jax.Array, at_end: bool):
        self.on, self.alpha, self.e0, self.e1, self.at_end = neurons, alpha, e0, e1, at_end

    def moment(self, decay: jax.Array, filter_: jax.Array) -> _Moment:
        """At times [q] given by their effect on modes; fields are [q, sign, size, neuron, output, point]."""
        turn, effects = (
            self.on.net.modes.T,
            (decay[:, None, None, None, None], filter_[:, None, None, None, None]),
        )
        return _Moment(*((effect * e) @ turn for e in (self.e0, self.e1[None]) for effect in effects))

    def through(self, panels: Panels) -> _State:
        shape = (len(self.e0), *self.e1.shape)
        field, flat = jnp.zeros(shape, self.e0.dtype), jnp.zeros((*shape[:-2], shape[-1]), self.e0.dtype)
        start = _State(field, flat, field, flat, field, field, field, field, field)
        return jax.lax.scan(
            lambda state, panel: (self.panel(state, Panels(*panel)), None), start, tuple(panels)
        )[0]

    def panel(self, before: _State, panel: Panels) -> _State:
        on, net = self.on, self.on.net
        now = self.moment(panel.decay, panel.filter)

        def summed(start, values):
            return start + jnp.einsum("ij,j...->i...", panel.summed, values)

        def answered(start, values):
            kept = panel.kept[:, None, None, None, None]
            found, turned = kept * start, values @ net.modes
            for j in range(len(turned)):  # elementwise: faster than a product for each mode
                found = found + panel.answered[:, j, None, None, None, None] * turned[j]
            return found

        first = self.first(now, False)
        added = self.second_forces(now, first)
        xi2, u2, back3 = map(summed, (before.xi2, before.u2, before.back3), added)
        s2 = self.second(now, first, False)
        a2 = answered(before.a2, s2)
        e2 = s2 - (net.lam * a2) @ net.modes.T
        second = (-on.z(xi2, False), -on.theta(u2, False))
        forces = self.third_forces(now, first, second, e2)
        xi3, u3, back4 = map(summed, (before.xi3, before.u3, before.back4), forces)
        a3, a4 = before.a3, before.a4
        if not self.at_end:
            points = a2 @ net.modes.T
            a3 = answered(a3, self.third(now, first, second, back3, False))[-1]
            third = (-on.z(xi3, False), -on.theta(u3, False))
            a4 = answered(a4, self.fourth(now, first, second, third, points, back4, False))[-1]
        return _State(xi2[-1], u2[-1], xi3[-1], u3[-1], back3[-1], back4[-1], a2[-1], a3, a4)

    # Orders of xi and u, the forces on them, and what they add to outputs; at all points if `every`.

    def first(self, now: _Moment, every: bool):
        """xi1, u1 and alpha at these times."""
        (s0, s1, *_), xi = self.on.fields(False)
        force = jnp.sum(xi * now.a0, axis=-2)
        moved = self.alpha if every else self.alpha[..., : self.on.n]
        return (
            -self.on.z(s0[:, None] * now.a0, every),
            -self.on.theta(s1 * force, every),
            moved - self.on.phi(now.a0, every),
        )

    def second_forces(self, now: _Moment, first):
        (s0, s1, s2, _), xi = self.on.fields(False)
        xi1, u1, alpha = first
        slope = s1 * u1
        on_xi = slope[..., None, :] * now.e0 + s0[:, None] * now.e1
        on_u = jnp.sum((xi1 * s1[:, None] + xi * (s2 * u1)[..., None, :]) * now.e0, axis=-2)
        on_u = on_u + s1 * jnp.sum(xi * now.e1, axis=-2)
        if self.on.last:
            return on_xi, on_u, jnp.zeros_like(on_xi)
        on_u = on_u + 2 * s0 * s1 * jnp.sum(alpha * now.e0, axis=-2)
        return on_xi, on_u, 2 * (s0 * slope)[..., None, :] * now.e0 + (s0 * s0)[:, None] * now.e1

    def third_forces(self, now: _Moment, first, second, e2):
        (s0, s1, s2, s3), xi = self.on.fields(False)
        (xi1, u1, alpha), (xi2, u2) = first, second
        bent = s1 * u2 + 0.5 * s2 * u1 * u1
        on_xi = bent[..., None, :] * now.e0 + (s1 * u1)[..., None, :] * now.e1 + s0[:, None] * e2
        turned = s2 * u2 + 0.5 * s3 * u1 * u1
        by_e0 = xi2 * s1[:, None] + xi1 * (s2 * u1)[..., None, :] + xi * turned[..., None, :]
        by_e1 = xi1 * s1[:, None] + xi * (s2 * u1)[..., None, :]
        if not self.on.last:
            by_e0 = by_e0 + 2 * alpha * ((s1 * s1 + s0 * s2) * u1)[..., None, :]
            by_e0 = by_e0 - 2 * self.on.phi(now.a1, False) * (s0 * s1)[:, None]
            by_e1 = by_e1 + 2 * alpha * (s0 * s1)[:, None]
        on_u = jnp.sum(by_e0 * now.e0 + by_e1 * now.e1 + (xi * s1[:, None]) * e2, axis=-2)
        if self.on.last:
            return on_xi, on_u, jnp.zeros_like(on_xi)
        square = 2 * s0 * s1 * u2 + (s1 * s1 + s0 * s2) * u1 * u1
        back = (
            square[..., None, :] * now.e0
            + 2 * (s0 * s1 * u1)[..., None, :] * now.e1
            + (s0 * s0)[:, None] * e2
        )
        return on_xi, on_u, back

    def second(self, now: _Moment, first, every: bool):
        """S2; its value at initialization is that of alpha (s^2 - <s^2>)."""
        (s0, s1, *_), xi = self.on.fields(every)
        xi1, u1, alpha = first
        found = xi1 * s0[:, None] + xi * (s1 * u1)[..., None, :] + self.on.mean_omega(now.a0, every)
        if self.on.last:
            return found
        train = self.on.fields(False)[0][0]
        start = (self.alpha if every else self.alpha[..., : self.on.n]) * self._mean_square(every)
        return (
            found + alpha * (s0 * s0)[:, None] - start - self.on.phi_back((train**2)[:, None] * now.a0, every)
        )

    def third(self, now: _Moment, first, second, back, every: bool):
        (s0, s1, s2, _), xi = self.on.fields(every)
        (xi1, u1, alpha), (xi2, u2) = first, second
        bent = s1 * u2 + 0.5 * s2 * u1 * u1
        found = xi2 * s0[:, None] + xi1 * (s1 * u1)[..., None, :] + xi * bent[..., None, :]
        found = found + self.on.mean_omega(now.a1, every)
        if self.on.last:
            return found
        found = found + 2 * alpha * (s0 * s1 * u1)[..., None, :] - self.on.phi_back(back, every)
        return found - self.on.phi(now.a1, every) * (s0 * s0)[:, None]

    def fourth(self, now: _Moment, first, second, third, a2, back, every: bool):
        """S4, with the sum of the residual of second order at train points, `a2`."""
        (s0, s1, s2, s3), xi = self.on.fields(every)
        (xi1, u1, alpha), (xi2, u2), (xi3, u3) = first, second, third
        bent = s1 * u2 + 0.5 * s2 * u1 * u1
        cubic = s1 * u3 + s2 * u1 * u2 + s3 * u1**3 / 6
        found = xi3 * s0[:, None] + xi2 * (s1 * u1)[..., None, :] + xi1 * bent[..., None, :]
        found = found + xi * cubic[..., None, :] + self.on.mean_omega(a2, every)
        if self.on.last:
            return found
        square = 2 * s0 * s1 * u2 + (s1 * s1 + s0 * s2) * u1 * u1
        found = found + alpha * square[..., None, :] - self.on.phi_back(back, every)
        found = found - self.on.phi(now.a1, every) * 2 * (s0 * s1 * u1)[..., None, :]
        found = found - self.on.phi(a2, every) * (s0 * s0)[:, None]
        # alpha alpha stands for its part that goes with z z: its mean belongs to H^(1)
        t0, t1 = self.on.fields(False)[0][:2]
        paired = self.on._times(self.on.neuron.theta_alpha, (t0 * t1)[:, None] * now.a0, every)
        return found + 4 * (s0 * s1)[:, None] * paired

    def _mean_square(self, every: bool) -> jax.Array:
        return self.on.neuron.mean_square[: None if every else self.on.n]

    def outcome(self, state: _State, z: jax.Array, weights: jax.Array) -> Outcome:
        on, net, n = self.on, self.on.net, self.on.n
        end = net.filter[None]
        now = _Moment(*(x[0] for x in self.moment(end * 0, end)))
        first = self.first(now, True)
        second = (-on.z(state.xi2, True), -on.theta(state.u2, True))
        third = (-on.z(state.xi3, True), -on.theta(state.u3, True))
        points = state.a2 @ net.modes.T
        s2 = self.second(now, first, True)
        s3 = self.third(now, first, second, state.back3, True)
        s4 = self.fourth(now, first, second, third, points, state.back4, True)

        def at_new(source, a):
            """Its response at new points: a, in modes, or what answers all of it in the end."""
            if a is None:
                a = (source[..., :n] @ net.modes) / net.lam
            found = source[..., n:] - (a @ net.modes.T) @ net.ntk[n:].T
            return found.reshape(*found.shape[:-2], -1)

        def linear(start):
            """The same of what is there at initialization, with the frozen kernel."""
            return at_new(start, net.filter * (start[..., :n] @ net.modes))

        late = (None, None) if self.at_end else (state.a3, state.a4)
        f1, f2 = linear(on.xi * on.s[0][:, None]), at_new(s2, state.a2)
        f3, f4 = at_new(s3, late[0]), at_new(s4, late[1])
        count, size = f4[..., 0].size, f4.shape[-1]
        f = [jnp.broadcast_to(x, f4.shape).reshape(count, size) for x in (linear(z), f1, f2, f3, f4)]
        zero = jnp.zeros((), f4.dtype)
        weight = jnp.broadcast_to(0.5 * weights[:, None], f4.shape[:-1]).reshape(count, 1)
        two = [
            sum((f[i] * f[r - i] for i in range(r + 1)), zero) for r in range(5)
        ]  # f_c f_c, order by order

        def moments(one, other):
            return sum(
                ((weight * one[i]).T @ other[4 - i] for i in range(5)), jnp.zeros((size, size), f4.dtype)
            )

        spread = jnp.zeros((size, size), f4.dtype)
        if not on.last:
            alone = linear(self.alpha * ((on.s[0] ** 2)[:, None] - self._mean_square(True)))[:, 0]
            spread = jnp.einsum("tpi,tpj->ij", alone, alone) / 2
        return Outcome(
            jnp.sum(weight * f[4], axis=0),
            moments(f, f),
            moments(f, two),
            moments(two, two),
            spread,
        )


def _derivatives(activation: Any, u: jax.Array) -> list[jax.Array]:
    functions: list[Any] = [activation]
    for _ in range(3):
        functions.append(_slope(functions[-1]))
    return [function(u) for function in functions]


def _slope(function):
    return lambda z: jax.jvp(function, (z,), (jnp.ones_like(z),))[1]
