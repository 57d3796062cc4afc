"""Third and fourth cumulants of trained networks: against the recursion, against each other, and against networks."""

import itertools
import warnings

import jax
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.forecasts.order_one.time_responses import responses
from nearkernel.forecasts.order_one.trained_cumulants import fourth_cumulants, third_cumulants, ties
from nearkernel.forecasts.order_one.trained_moments import Start, polynomial, start_of, trained_law
from support.cases import few
from support.references.joint_moments import moments
from support.references.plain_sums import output_tensors
from support.references.trained_recursion import descended

X, NEW = np.array([[1.2, 0.5, 0.2], [0.5, 1.1, -0.3]]), np.array([[1.1, -0.4, 0.8], [0.9, 1.0, 0.6]])
Y = np.array([1.3, -0.4])
DESCENT = nk.GradientDescent(0.3304)


def quietly(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return function(*arguments, **options)


def network(width=64, out=1, widths=None, activation="tanh"):
    return nk.MLP(3, widths or (width,), out, activation, weight_var=1.6, bias_var=0.1)


def forecast(y=Y, new=NEW, algorithm=DESCENT, x=X, net=None):
    return nk.forecast(net or network(1024), x, y, algorithm, new, theory=nk.FiniteWidth())


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
    _, _, *exact = moments(np.array(outputs), np.array(chances))
    response = responses(np.diagonal(theta)[:n], lr, steps)
    found = ties(start, polynomial(start, response, n))
    for parts, said in zip((third_cumulants(found, y), fourth_cumulants(found)), exact, strict=True):
        value = sum(parts.values())
        np.testing.assert_allclose(said / size**2, value, atol=2e-3 * np.abs(value).max())
        for part in parts.values():  # each is large enough to be seen, and symmetric
            assert np.abs(part).max() > 0.02 * np.abs(value).max()
            np.testing.assert_allclose(part, part.swapaxes(0, 1), atol=1e-12 * np.abs(part).max())


@pytest.mark.parametrize(
    "activation, hidden, size, points",
    few(
        [
            ("tanh", 1, 1.0, 4),  # the largest variance of a neuron is 1.2
            ("tanh", 1, 2.5, 4),  # 7.3
            ("gelu", 1, 1.5, 4),
            ("erf", 1, 1.5, 4),
            ("tanh", 2, 1.3, 3),
            ("gelu", 2, 1.0, 3),
            ("erf", 2, 1.6, 3),
        ],
        2,
    ),
)
def test_mean_covariance_and_cumulants_have_five_digits(activation, hidden, size, points):
    """Against plain sums over neurons on a grid: no code in common; the tensors themselves have six."""
    x = size * np.array([[1.1, 0.3], [-0.2, 0.9], [0.8, -0.7], [0.5, 0.6]])[:points]
    widths = (1024, 2048)[2 - hidden :]
    net = nk.MLP(2, widths, 1, activation, weight_var=1.8)
    plain = output_tensors(x, 1.8, net.activation_of(1), hidden, ratio=2.0)
    exact = nk.propagate(net, x, order=1)[hidden + 1]
    for name, expected in vars(plain).items():
        error = np.abs(getattr(exact, name) - expected).max() / max(np.abs(expected).max(), 1e-300)
        assert error < 1e-6 or not expected.any(), name
    rate = 0.8 / np.linalg.eigvalsh(exact.ntk[:2, :2])[-1]
    found = nk.forecast(net, x[:2], Y, nk.GradientDescent(rate), x[2:], theory=nk.FiniteWidth())
    start = start_of(plain, 1)
    lam, vectors = np.linalg.eigh(start.ntk[:2, :2])
    start, response = start.rotated(vectors), responses(lam, rate, np.inf)
    law = trained_law(start, response, vectors.T @ Y)
    tied = ties(start, polynomial(start, response, 2))
    for value, parts in (
        (found.terms[1], [part[0] for part in law.corrections.values()]),
        (found.cov_terms[1], [part[1] for part in law.corrections.values()]),
        (found.cumulants(3), list(third_cumulants(tied, vectors.T @ Y).values())),
        (found.cumulants(4), list(fourth_cumulants(tied).values())),
    ):
        largest = max(np.abs(part).max() for part in parts)
        np.testing.assert_allclose(2048 * value, sum(parts), rtol=0, atol=1e-5 * largest)


# n kappa at 4 steps and at the end, from millions of networks that other code trained: limits of infinite width with
# their errors, and the predictions of that code.
PLACES = (
    (0, 0, 0),
    (0, 0, 1),
    (0, 1, 1),
    (1, 1, 1),
    (0,) * 4,
    (0, 0, 0, 1),
    (0, 0, 1, 1),
    (0, 1, 1, 1),
    (1,) * 4,
)
MEASURED = {
    4: ((-0.1132, 81), (0.0395, 34), (0.1815, 26), (0.0177, 35), (0.2351, 102), (-0.0018, 32), (0.0118, 22),
        (0.0351, 16), (0.1551, 18)),
    np.inf: ((-0.1703, 97), (0.0345, 52), (-0.0391, 37), (-0.1846, 62), (0.1744, 53), (0.0176, 22), (0.0379, 16),
             (0.0541, 16), (0.1637, 23)),
}  # fmt: skip


@pytest.mark.parametrize("steps", MEASURED)
def test_cumulants_are_those_of_large_ensembles(steps):
    found = forecast().at(steps)
    for place, (value, error) in zip(PLACES, MEASURED[steps], strict=True):
        assert abs(1024 * found.cumulants(len(place))[place] - value) < 4e-4 * error


@pytest.mark.parametrize(
    "algorithm", [nk.GradientFlow(), nk.GradientFlow(1.5), nk.GradientDescent(0.2, 3)], ids=str
)
def test_targets_enter_the_third_cumulant_linearly_and_the_fourth_not_at_all(algorithm):
    net = network(widths=(3000, 5000))
    one, two, both, none = (
        forecast(y, NEW[:1], algorithm, net=net) for y in (Y, Y[::-1], Y - 0.5 * Y[::-1], 0 * Y)
    )
    scale = np.abs(one.cumulants(3)).max()
    np.testing.assert_allclose(none.cumulants(3), 0.0, atol=1e-14 * scale)
    np.testing.assert_allclose(
        both.cumulants(3), one.cumulants(3) - 0.5 * two.cumulants(3), atol=1e-12 * scale
    )
    np.testing.assert_allclose(both.cumulants(4), one.cumulants(4), rtol=1e-12)


def test_small_steps_are_the_flow():
    flow, coarse, fine = (
        forecast(algorithm=algorithm)
        for algorithm in (
            nk.GradientFlow(1.2), nk.GradientDescent(0.006, 200), nk.GradientDescent(0.003, 400),
        )
    )  # fmt: skip
    for order in (3, 4):
        limit = 2 * fine.cumulants(order) - coarse.cumulants(order)
        np.testing.assert_allclose(limit, flow.cumulants(order), atol=1e-4 * np.abs(limit).max())


def test_points_may_stand_in_any_order_and_outputs_may_be_turned():
    found = forecast()
    other = forecast(Y[::-1], NEW[::-1], x=X[::-1])
    for order in (3, 4):
        flipped = other.cumulants(order)[(slice(None, None, -1),) * order]
        np.testing.assert_allclose(flipped, found.cumulants(order), rtol=1e-7, atol=1e-11)
    net, y = network(widths=(800, 400), out=2), np.stack([Y, [0.5, 0.9]], axis=1)
    angle = np.array([[0.8, -0.6], [0.6, 0.8]])
    plain, turned = (forecast(t, NEW[:1], nk.GradientDescent(0.2, 5), net=net) for t in (y, y @ angle))
    for order in (3, 4):
        before, after = (each.cumulants(order).reshape((2,) * order) for each in (plain, turned))
        assert plain.cumulants(order).shape == (1, 2) * order
        for _ in range(order):
            before = np.tensordot(before, angle, axes=(0, 0))
        np.testing.assert_allclose(before, after, atol=1e-13)
    assert plain.cumulants(3, diagonal=True).shape == (1, 2)
    assert (
        abs(plain.cumulants(4)[0, 0, 0, 0, 0, 1, 0, 1]) > 1e-6
    )  # outputs of finite networks know of each other


def test_three_and_four_new_inputs():
    """Averages of three and four new inputs are made when they are asked for; at time 0 they are those of the start."""
    new = np.vstack([NEW, [[0.2, 0.1, -1.0], [-0.6, 0.3, 0.4]]])
    net = network(widths=(200, 100))
    found, pair = (forecast(Y[:1], points, nk.GradientFlow(0.8), X[:1], net) for points in (new, new[[1, 3]]))
    for order in (3, 4):
        joint, single = found.cumulants(order), found.cumulants(order, diagonal=True)
        np.testing.assert_allclose(np.einsum("b" * order + "->b", joint), single, rtol=1e-12)
        np.testing.assert_allclose(
            joint[np.ix_(*[[1, 3]] * order)], pair.cumulants(order), rtol=1e-6, atol=1e-12
        )
    start = found.at(0.0)
    v = nk.propagate(net, new, order=1)[3].four_point / 100
    np.testing.assert_allclose(start.cumulants(4), v + v.swapaxes(1, 2) + v.swapaxes(1, 3), atol=1e-12)
    np.testing.assert_allclose(start.cumulants(3), 0.0, atol=1e-15)
    assert abs(start.cumulants(4)[0, 1, 2, 3]) > 1e-5


def test_three_different_new_inputs_of_odd_networks():
    """Networks without biases, trained on x and -x, stay odd: f(-x) = -f(x), so that three inputs are as two."""
    net = nk.MLP(3, (400,), 1, "tanh", weight_var=1.6)
    x, y, new = np.vstack([X[:1], -X[:1]]), np.array([1.3, -1.3]), np.vstack([NEW, -NEW[:1]])
    found = forecast(y, new, nk.GradientFlow(0.8), x, net)
    k3, k4 = found.cumulants(3), found.cumulants(4)
    np.testing.assert_allclose(k3[0, 1, 2], -k3[0, 0, 1], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(k4[0, 1, 1, 2], -k4[0, 0, 1, 1], rtol=1e-6, atol=1e-12)
    assert abs(k3[0, 1, 2]) > 1e-6


def by_network(found):
    size, width = found.mean.size, found.width
    third, fourth = (width * found.cumulants(order).reshape((size,) * order) for order in (3, 4))
    cov = width * found.cov_terms[1].reshape(size, size)
    return {"mean": width * found.terms[1].ravel(), "cov": cov, "third": third, "fourth": fourth}


def test_cumulants_are_those_of_networks_that_were_trained():
    """One width, where the next order is within the error."""
    net, descent = network(256), nk.GradientDescent(0.3304, 4)
    observable = nk.theory.trained_observables(net, X, Y, descent, NEW[:1], cumulants=4)
    found = nk.measure(observable, net, 800, jax.random.key(2))
    theory = by_network(forecast(new=NEW[:1], algorithm=descent, net=net))
    assert found.agrees(theory), (found.mean, found.sem, theory)
    assert found.sem["fourth"][0, 0, 0, 0] < 0.2 and found.sem["third"][0, 0, 0] < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("case", ["gelu", "two layers, two outputs"])
def test_extrapolated_cumulants_agree(case):
    if case == "gelu":
        x, y = np.array([[0.9, -0.4], [-0.3, 1.1], [0.5, 0.8]]), np.array([0.8, -0.5, 0.3])
        new, descent, widths = np.array([[-0.8, -0.5], [1.0, 0.6]]), nk.GradientDescent(0.25, 12), (64, 192)
        nets = [nk.MLP(2, (n,), 1, "gelu", weight_var=2.0, bias_var=0.2) for n in widths]
    else:
        x, y = np.array([[1.1, 0.3, -0.5], [-0.4, 0.9, 0.7]]), np.array([[0.9, -0.3], [0.2, 0.7]])
        new, descent, widths = np.array([[0.6, -0.8, 0.4]]), nk.GradientDescent(0.3, 10), (48, 144)
        nets = [nk.MLP(3, (2 * n, n), 2, "erf", weight_var=1.2, bias_var=0.1) for n in widths]
    estimates = []
    for net in nets:
        observable = nk.theory.trained_observables(net, x, y, descent, new, cumulants=4)
        estimates.append(nk.measure(observable, net, 4000, jax.random.key(net.widths[-1])))
    found = nk.theory.extrapolated(estimates, widths)
    theory = by_network(nk.forecast(nets[-1], x, y, descent, new, theory=nk.FiniteWidth()))
    assert found.agrees(theory), (found.mean, found.sem, theory, found.deviation(theory))
    assert not found.agrees({**theory, "third": 0.0 * theory["third"]})  # the test can fail
    assert not found.agrees({**theory, "fourth": 0.0 * theory["fourth"]})


@pytest.mark.slow
def test_linearized_networks_have_the_cumulants_of_frozen_kernels():
    """Each network trained as its own linearization: what is left are the parts without the dNTK and the ddNTK."""
    both, new, widths, estimates = np.vstack([X, NEW[:1]]), NEW[:1], (32, 96), []
    for width in widths:
        net, descent = network(width), nk.GradientDescent(0.3304, 4)
        law = quietly(nk.forecast, net, X, Y, descent, new, order=1)
        exact = nk.forecast(net, X, Y, descent, new)
        kernel = nk.kernels.NTK(net)(both)
        decay = np.linalg.matrix_power(np.eye(2) - 0.3304 * kernel[:2, :2], 4)
        response = kernel[2:, :2] @ np.linalg.solve(kernel[:2, :2], np.eye(2) - decay)
        var = exact.cov[0, 0]
        v = nk.propagate(net, both, order=1)[2].four_point
        leading = np.concatenate([-response[0], [1.0]])
        known = 3 * np.einsum("abcd,a,b,c,d->", v, *[leading] * 4)  # the fourth cumulant of leading z, exact

        def observe(params, net=net, width=width, response=response, var=var, known=known, exact=exact):
            def outputs(p):
                return net(p, both)[:, 0]

            z, gradients = outputs(params), jax.tree.leaves(jax.jacrev(outputs)(params))
            theta = sum(g.reshape(3, -1) @ g.reshape(3, -1).T for g in gradients)
            found = []
            for sign in (1.0, -1.0):
                f, e = sign * z[2], sign * z[:2] - Y
                plain = sign * (z[2] - response[0] @ z[:2])
                for _ in range(4):
                    f, e = f - 0.3304 * theta[2, :2] @ e, e - 0.3304 * theta[:2, :2] @ e
                f = f - exact.mean[0]
                found.append([f**3 - 3 * var * f, f**4 - 6 * var * f**2 - plain**4 + 6 * var * plain**2])
            third, fourth = (width * (a + b) / 2 for a, b in zip(*found, strict=True))
            return {"third": third, "fourth": fourth + known}

        estimates.append(nk.measure(observe, net, 200_000, jax.random.key(width)))
        tied = law._training.ties(law.algorithm, True)
        frozen = {
            "third": third_cumulants(tied, law._training.targets),
            "fourth": fourth_cumulants(tied),
        }
        theory = {
            name: sum(part for cause, part in parts.items() if "dntk" not in cause).ravel()[0]
            for name, parts in frozen.items()
        }
    found = nk.theory.extrapolated(estimates, widths)
    assert found.agrees(theory), (found, theory, [each.mean for each in estimates])
    assert abs(theory["third"]) > 5 * found.sem["third"]


def test_orders_that_there_are():
    with pytest.raises(
        ValueError, match=r"`order` must be 3 or 4 .`mean` and `cov` are orders 1 and 2.; got 2"
    ):
        forecast().cumulants(2)
    diverged = nk.forecast(network(), X, Y, nk.GradientDescent(3.0), NEW, theory=nk.FiniteWidth())
    assert not diverged.ok and np.isinf(diverged.cumulants(3)).all()
