"""Margins of kernels and of homogeneous networks."""

import numpy as np
import pytest

import nearkernel as nk

D, K = nk.dynamics, nk.kernels
RNG = np.random.default_rng(5)
X = RNG.normal(size=(14, 2))
LABELS = np.where(np.sum(X**2, axis=1) > 1.5, "out", "in")
SIGNS = np.where(LABELS == "out", 1.0, -1.0)


@pytest.mark.parametrize("bias", [False, True])
def test_a_kernel_with_features_has_their_margin(bias):
    kernel = K.Polynomial(2)
    found = nk.theory.kernel_margin(kernel, X, LABELS, bias)
    linear = nk.theory.max_margin(nk.theory.feature_map(kernel, X), LABELS, bias)
    assert found.margin == pytest.approx(linear.margin, rel=1e-8)
    assert found.function.weights() == pytest.approx(linear.w, rel=1e-6, abs=1e-8)
    assert found.b == pytest.approx(linear.b, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("bias", [False, True])
def test_it_is_a_support_vector_machine_without_slack(bias):
    kernel = K.RBF(1.0)
    found = nk.theory.kernel_margin(kernel, X, LABELS, bias)
    margins = SIGNS * found(X)
    assert margins.min() == pytest.approx(1.0, abs=1e-7)
    assert margins[found.support] == pytest.approx(1.0, abs=1e-7)
    assert found.function.norm() == pytest.approx(1 / found.margin, rel=1e-8)
    if bias:
        svm = pytest.importorskip("sklearn.svm")
        fitted = svm.SVC(C=1e9, kernel="precomputed", tol=1e-10).fit(np.asarray(kernel(X)), SIGNS)
        assert fitted.decision_function(np.asarray(kernel(X))) == pytest.approx(found(X), abs=1e-4)


def relu(depth):
    return nk.MLP(2, (6,) * depth, activation="relu", weight_var=2.0)


@pytest.mark.parametrize("depth", [1, 2])
def test_scaling_the_weights_leaves_a_normalized_margin_as_it_is(depth):
    net = relu(depth)
    params = net.init(0)
    larger = [{**entry, "weight": 3.0 * np.asarray(entry["weight"])} for entry in params]
    one, other = (nk.theory.normalized_margin(net, p, X, LABELS) for p in (params, larger))
    outputs = SIGNS * np.asarray(net(params, X))[:, 0]
    size = np.sqrt(sum(np.sum(np.asarray(entry["weight"]) ** 2) for entry in params))
    assert one == pytest.approx(outputs.min() / size ** (depth + 1), rel=1e-12)
    assert other == pytest.approx(one, rel=1e-12)


BIASED = nk.MLP(2, (3,), activation="relu", bias_var=0.1)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: nk.theory.kernel_margin(K.Linear(), X, LABELS),
            "no function in the space of `kernel` separates",
        ),
        (lambda: nk.theory.kernel_margin(K.RBF(), X, np.zeros(14)), "must have two values"),
        (lambda: nk.theory.normalized_margin(BIASED, BIASED.init(0), X, LABELS), "must have biases 0"),
        (
            lambda: nk.theory.normalized_margin(nk.MLP(2, (3,), 2), None, X, LABELS),
            "`net` must have one output; got 2",
        ),
        (
            lambda: nk.theory.normalized_margin(nk.MLP(2, (3,), activation="tanh"), None, X, LABELS),
            "must have relu-like activations",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message):
        call()
