"""Experiments that set learners of features against kernels on targets of few directions.

Plain functions of their sizes that return numbers: `features.py` prints some, the gallery draws the others. Errors are
mean squared errors over the variance of the target, both on test inputs. What a learner chooses, it chooses on held-out
training points, except the kernels: their length and ridge are the best of a grid on the test set, in their favour.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence

import jax
import numpy as np
from scipy.linalg import cho_factor, cho_solve

import nearkernel as nk
from nearkernel.estimators import OneStepNetworkRegressor, RecursiveFeatureMachine

Predictor = Callable[[np.ndarray], np.ndarray]
RIDGES = (1e-3, 3e-2, 1.0)
_RIDGE = 1e-2  # of nearly-kernel solutions, which have no end without one
COEFFICIENT = 0.5 / 2**0.5


def target(d: int, seed: int) -> nk.theory.MultiIndexPolynomial:
    """[He2(z1) - He2(z2) + He2(z1) He2(z2)] / sqrt(8) of two random directions: r = 2, p = 4, variance 1, kappa 1."""
    u = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, 2)))[0].T
    terms = {(2, 0): COEFFICIENT, (0, 2): -COEFFICIENT, (2, 2): COEFFICIENT}
    return nk.theory.MultiIndexPolynomial(u, terms)


def hermite(d: int, k: int, seed: int = 0) -> nk.theory.MultiIndexPolynomial:
    """He_k of one random direction, variance 1. For k > 2 its average Hessian is 0."""
    u = np.random.default_rng(seed).normal(size=(1, d))
    return nk.theory.MultiIndexPolynomial(
        u / np.linalg.norm(u), {(k,): 1 / np.sqrt(float(np.prod(range(1, k + 1))))}
    )


def draw(f: Callable, d: int, n: int, seed: int, test: int = 4000) -> tuple[np.ndarray, ...]:
    """x, y, x_test, y_test, inputs standard normal; one test set serves all n, and more points add to fewer."""
    x, new = (np.random.default_rng([seed, d, k]).normal(size=(m, d)) for k, m in enumerate((n, test)))
    return x, f(x), new, f(new)


# Learners: (x, y, seed) -> several predictors to choose from


def one_step(x: np.ndarray, y: np.ndarray, seed: int, width: int = 800) -> Iterator[Predictor]:
    yield OneStepNetworkRegressor(width, random_state=seed).fit(x, y).predict


def agop(x: np.ndarray, y: np.ndarray, seed: int) -> Iterator[Predictor]:
    kernel = nk.kernels.RBF(x.shape[1] ** 0.5)
    yield RecursiveFeatureMachine(kernel, random_state=seed).fit(x, y).predict


def ridged(
    kernel: nk.kernels.AbstractKernel, x: np.ndarray, y: np.ndarray, ridges: Sequence[float] = RIDGES
) -> Iterator[Predictor]:
    """What `nk.solve` says with each ridge, from one kernel matrix, and one between old and new inputs."""
    matrix, mean = kernel(x), y.mean()
    last: list = [None, None]

    def cross(new: np.ndarray) -> np.ndarray:
        if last[0] is not new:
            last[:] = new, kernel(new, x)
        return last[1]

    for ridge in ridges:
        shifted = matrix.copy().T  # symmetric, and in the order of LAPACK
        shifted[np.diag_indices(len(x))] += ridge
        a = cho_solve(cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False), y - mean)
        yield lambda new, a=a: cross(new) @ a + mean


def rbf(x: np.ndarray, y: np.ndarray, seed: int, ridges: Sequence[float] = RIDGES) -> Iterator[Predictor]:
    for factor in (1.0, 2.0):
        yield from ridged(nk.kernels.RBF(factor * x.shape[1] ** 0.5), x, y, ridges)


def ntk(x: np.ndarray, y: np.ndarray, seed: int, ridges: Sequence[float] = RIDGES) -> Iterator[Predictor]:
    net = nk.MLP(x.shape[1], (1,), 1, "relu", weight_var=2.0, bias_var=0.5)
    yield from ridged(nk.kernels.NTK(net), x, y, ridges)


def random_features(x: np.ndarray, y: np.ndarray, seed: int, width: int = 800) -> Iterator[Predictor]:
    """The same network without the step: only its head is learnt."""
    drawn = nk.kernels.RandomFeatures(
        x.shape[1], width, jax.random.key(seed), "relu", weight_var=1.0, bias_var=1.0
    )
    features, mean = np.asarray(drawn.features(x)), y.mean()
    gram = features.T @ features
    for ridge in RIDGES:
        a = np.linalg.solve(gram + ridge * np.eye(width), features.T @ (y - mean))
        yield lambda new, a=a: np.asarray(drawn.features(new)) @ a + mean


def trained(
    x: np.ndarray, y: np.ndarray, seed: int, width: int = 100, steps: int = 1500
) -> Iterator[Predictor]:
    """Both layers by gradient descent with momentum, in mean-field scaling, stopped by a held-out fifth."""
    n, d = x.shape
    kept = n - n // 5
    net = nk.MLP(d, (width,), 1, "relu", weight_var=2.0, bias_var=0.5, parametrization="mean_field")
    theta = net.init(jax.random.key(seed))
    some = x[: min(kept, 400)]
    top = np.linalg.eigvalsh(nk.kernels.EmpiricalNTK(net, theta, 1.0)(some))[-1] * kept / len(some)
    left, center = x[kept:], y.mean()
    for factor in (2.0, 1.0, 0.5):
        keep = nk.Record({"left": lambda p: net(p, left)[:, 0], "params": lambda p: p}, every=steps // 15)
        descent = nk.GradientDescent(factor / top, steps, 0.9)
        run = nk.simulate(net, theta, x[:kept], y[:kept] - center, descent, keep, lr_factors=1.0)
        if run.ok:
            break
    losses = np.mean((run.history["left"] - (y[kept:] - center)) ** 2, axis=1)
    best = jax.tree.map(lambda leaf: leaf[int(np.argmin(losses))], run.history["params"])
    yield lambda new: np.asarray(net(best, new))[:, 0] + center


LEARNERS = {
    "one step": one_step,
    "AGOP kernel": agop,
    "trained network": trained,
    "NTK": ntk,
    "RBF": rbf,
    "random features": random_features,
}


def best(predictors: Iterator[Predictor], new: np.ndarray, values: np.ndarray) -> tuple[float, Predictor]:
    """The least error on test data, and who made it."""
    found = [(float(np.mean((predict(new) - values) ** 2)), predict) for predict in predictors]
    return min(found, key=lambda pair: pair[0])


def seen_by(predict: Predictor, x: np.ndarray, directions: np.ndarray, step: float = 1e-4) -> float:
    """Overlap of the directions in which a predictor varies with the true ones: its gradients by finite differences."""
    rows = [(predict(x + step * e) - predict(x - step * e)) / (2 * step) for e in np.eye(x.shape[1])]
    vectors = np.linalg.eigh(np.array(rows) @ np.array(rows).T)[1]
    return nk.theory.subspace_overlap(vectors[:, -len(directions) :].T, directions)


def errors_over_n(
    d: int, sizes: Sequence[int], names: Sequence[str], seeds: int = 2
) -> dict[str, np.ndarray]:
    """Test error (sizes, seeds) of each learner on `target`, and under "name, overlap" which directions it sees."""
    found = {
        key: np.full((len(sizes), seeds), np.nan) for name in names for key in (name, f"{name}, overlap")
    }
    for i, n in enumerate(sizes):
        for seed in range(seeds):
            f = target(d, seed)
            x, y, new, values = draw(f, d, n, seed)
            for name in names:
                error, predict = best(LEARNERS[name](x, y, seed), new, values)
                found[name][i, seed] = error / values.var()
                found[f"{name}, overlap"][i, seed] = seen_by(predict, new[:200], f.directions)
    return found


def crossing(sizes: Sequence[int], errors: np.ndarray, level: float) -> float:
    """The n at which an error falls through `level`, interpolated in logarithms; nan if it does not."""
    below = np.flatnonzero(errors < level)
    if len(below) == 0 or below[0] == 0:
        return float("nan")
    i = below[0]
    share = np.log(errors[i - 1] / level) / np.log(errors[i - 1] / errors[i])
    return float(np.exp(np.log(sizes[i - 1]) + share * np.log(sizes[i] / sizes[i - 1])))


def power(x: Sequence[float], y: Sequence[float]) -> float:
    """Exponent of a power law through the finite points."""
    x, y = np.log(x), np.log(y)
    kept = np.isfinite(y)
    return float(np.polyfit(x[kept], y[kept], 1)[0])


def share_over_n(f: Callable, d: int, sizes: Sequence[int], seeds: int = 3, width: int = 200) -> np.ndarray:
    """Share of the neurons' weights in the true subspace after the step, (sizes,), mean over seeds."""
    found = np.zeros(len(sizes))
    for i, n in enumerate(sizes):
        for seed in range(seeds):
            x = np.random.default_rng([seed, n, d]).normal(size=(n, d))
            made = nk.theory.one_step_features(x, f(x), width, jax.random.key(seed), subspace=f.directions)
            found[i] += made.share / seeds
    return found


def nearly_kernel(
    d: int, n: int, alphas: Sequence[float], pairs: int = 2, width: int = 128
) -> dict[float, dict]:
    """Does order 1 of an expanded network see the subspace? Beside it, the same network really trained.

    Networks come in pairs whose last layers have opposite signs, which flips the first-order drift of the kernel. For
    each lazy scale alpha, means over networks on one data set: test errors of order 0, order 1 and of the trained
    network; |z^I|/|z^F|; the overlap of a kernel's metric, E d^2 k(x, x')/dx dx' at x' = x, for the kernel at the start
    k, the effective kernel k^E of order 1, and the tangent kernel after training; the overlap of the drift, what was
    added to the metric, in one network; and overlap and relative size of the drift averaged over all networks.
    """
    f = target(d, 0)
    x, y, new, values = draw(f, d, n, 0, test=1000)
    few, u = new[:30], f.directions
    net = nk.MLP(d, (width,), 1, "gelu", weight_var=2.0, bias_var=0.2)
    starts = [net.init(jax.random.key(seed)) for seed in range(pairs)]
    starts += [[*theta[:-1], jax.tree.map(np.negative, theta[-1])] for theta in starts]
    found = {}
    for alpha in alphas:
        model, rows, metrics = nk.Scaled(net, alpha), [], []
        for theta in map(model.at, starts):
            solution = nk.solve(nk.expand(model, theta, degree=2), x, y, nk.Ridge(_RIDGE), order=1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                zero, first = solution.predict(new).terms
            descent = nk.GradientDescent(1.0 / solution.lambda_max, 2000, 0.9)
            end = nk.simulate(model, theta, x, y, descent, nk.Record(every=2000)).params
            real = np.asarray(model(end, new))[:, 0]
            kernels = (
                nk.kernels.EmpiricalNTK(model, theta),
                solution.effective_kernel,
                nk.kernels.EmpiricalNTK(model, end),
            )
            start, after, real_after = (metric(kernel, few) for kernel in kernels)
            metrics.append((start, after, real_after))
            rows.append(
                {
                    "zI/zF": np.linalg.norm(first) / np.linalg.norm(zero),
                    "order 0": np.mean((zero - values) ** 2) / values.var(),
                    "order 1": np.mean((zero + first - values) ** 2) / values.var(),
                    "trained": np.mean((real - values) ** 2) / values.var(),
                    "k": leading(start, u),
                    "k^E": leading(after, u),
                    "k trained": leading(real_after, u),
                    "k^E, drift": leading(after - start, u),
                    "k trained, drift": leading(real_after - start, u),
                }
            )
        found[alpha] = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        start, *ends = np.mean(metrics, axis=0)
        for name, end in zip(("k^E", "k trained"), ends, strict=True):
            found[alpha][f"{name}, mean drift"] = leading(end - start, u)
            found[alpha][f"{name}, size of mean drift"] = float(
                np.linalg.norm(end - start) / np.linalg.norm(start)
            )
    return found


def metric(kernel: Callable, x: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """The mean over `x` of d^2 k(x, x')/dx dx' at x' = x, (d, d), by finite differences."""
    d = x.shape[1]
    total = np.zeros((d, d))
    for point in x:
        ends = np.concatenate([point + step * np.eye(d), point - step * np.eye(d)])
        k = kernel(ends)
        total += k[:d, :d] - k[:d, d:] - k[d:, :d] + k[d:, d:]
    return total / (4 * step**2 * len(x))


def leading(matrix: np.ndarray, directions: np.ndarray) -> float:
    """Overlap of the eigenvectors with the largest absolute eigenvalues with the true directions."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    order = np.argsort(-np.abs(values))[: len(directions)]
    return nk.theory.subspace_overlap(vectors[:, order].T, directions)
