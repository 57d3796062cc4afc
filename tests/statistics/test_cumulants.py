"""Third and fourth cumulants of trained networks: against the recursion, against each other, and against networks."""

import itertools

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.statistics._cumulants import fourth_cumulants, third_cumulants, ties
from nearkernel.statistics._responses import responses
from nearkernel.statistics._trained import Start, polynomial
from trained_recursion import descended


def joint_cumulants(values, chances):
    """Third and fourth joint cumulants of the columns of `values` under `chances`."""
    mean = chances @ values
    v = values - mean
    second = np.einsum("s,sb,sc->bc", chances, v, v)
    third = np.einsum("s,sb,sc,sd->bcd", chances, v, v, v)
    fourth = np.einsum("s,sb,sc,sd,se->bcde", chances, v, v, v, v, optimize=True)
    pairs = np.einsum("bc,de->bcde", second, second)
    return third, fourth - pairs - pairs.swapaxes(1, 2) - pairs.swapaxes(1, 3)


@pytest.mark.parametrize("steps", [3, 30])
def test_cumulants_are_those_of_the_recursion(steps):
    """Random tensors whose moments are known; f of the recursion, averaged by a rule that is exact for its powers."""
    rng = np.random.default_rng(5)
    n, m, lr, size = 2, 2, 0.5, 1e-3  # size: 1/sqrt(width)
    total, fields = n + m, 3
    root = rng.normal(size=(total, total))
    theta = root @ root.T / 4 + 0.5 * np.eye(total)
    theta[:n, :n] = np.diag([0.5, 1.4])
    y = np.array([0.7, -0.4])
    h1, g = rng.normal(size=(total, total)), rng.normal(size=(fields, total, total))
    h1, g = h1 + h1.T, g + g.swapaxes(1, 2)
    with_z = rng.normal(size=(fields, fields, total, total))
    with_z = with_z + with_z.swapaxes(0, 1)
    with_z = with_z + with_z.swapaxes(2, 3)
    z_by, mu_by = rng.normal(size=(fields, total)), rng.normal(size=(fields, total, total, total))
    mu_by = mu_by + mu_by.transpose(0, 1, 3, 2)
    bent = rng.normal(size=(fields, fields, fields, total))
    bent = sum(bent.transpose(*order, 3) for order in itertools.permutations(range(3)))
    nu, kap = rng.normal(size=(2, *(total,) * 4))
    nu = sum(nu.transpose(0, *order) for order in itertools.permutations((1, 2, 3)))
    kap = kap + kap.transpose(1, 0, 3, 2)
    # z = z_by.u + size^2 bent.He3(u), h = size g.v + size^2 (h1 + with_z.He2(u)), mu = size^2 mu_by.u
    four = 6 * np.einsum("klma,kb,lc,md->abcd", bent, z_by, z_by, z_by)
    start = Start(
        z_by.T @ z_by, theta, np.zeros_like(theta), h1, np.einsum("kab,kcd->abcd", g, g),
        2 * np.einsum("klcd,ka,lb->abcd", with_z, z_by, z_by), np.einsum("kabc,kd->abcd", mu_by, z_by), nu, kap,
        sum(np.moveaxis(four, 0, place) for place in range(4)),
    )  # fmt: skip
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    outputs, chances, eye = [], [], np.eye(fields)
    for at in itertools.product(range(5), repeat=fields):
        u, chance = nodes[list(at)], np.prod(weights[list(at)]) / (2 * np.pi) ** 1.5
        he2 = np.outer(u, u) - eye
        he3 = np.einsum("k,l,m->klm", u, u, u) - sum(
            np.einsum(f"{a}{b},{c}->klm", eye, u) for a, b, c in ("klm", "kml", "lmk")
        )
        z = u @ z_by + size**2 * np.einsum("klm,klma->a", he3, bent)
        h = size**2 * (h1 + np.einsum("kl,klab->ab", he2, with_z))
        mu = size**2 * np.tensordot(u, mu_by, 1)
        for axis, sign in itertools.product(range(fields), (-1.0, 1.0)):  # exact to the second power of v
            v = sign * np.sqrt(3.0) * eye[axis]
            of_h = h + size * np.tensordot(v, g, 1)
            outputs.append(descended(theta, of_h, mu, nu * size**2, kap * size**2, z, y, lr, steps))
            chances.append(chance / (2 * fields))
    exact = joint_cumulants(np.array(outputs), np.array(chances))
    response = responses(np.diagonal(theta)[:n], lr, steps)
    found = ties(start, polynomial(start, response, n))
    for parts, said in zip((third_cumulants(found, y), fourth_cumulants(found)), exact, strict=True):
        value = sum(parts.values())
        np.testing.assert_allclose(said / size**2, value, atol=2e-3 * np.abs(value).max())
        for part in parts.values():  # each is large enough to be seen, and symmetric
            assert np.abs(part).max() > 0.02 * np.abs(value).max()
            np.testing.assert_allclose(part, part.swapaxes(0, 1), atol=1e-12 * np.abs(part).max())
