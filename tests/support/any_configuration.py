"""Random valid configurations of kernels, training and estimators, of few shapes so that little is compiled."""

import numpy as np
from hypothesis import strategies as st

import nearkernel as nk

K = nk.kernels
N, NEW, D = 10, 4, 3
ACTIVATIONS = ("relu", "erf", "gelu", "sin", "abs", "leaky_relu(0.2)", "tanh")


def numbers(low: float, high: float):
    """Of two decimals: what is shown when a law breaks can be read."""
    return st.integers(round(100 * low), round(100 * high)).map(lambda i: i / 100)


@st.composite
def data(draw):
    """Inputs, new inputs and targets: Gaussian, at some scale, shifted or not."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    scale, shift = draw(numbers(0.5, 2.0)), draw(st.sampled_from((0.0, 1.0)))
    x, x_new = (shift + scale * rng.normal(size=(n, D)) for n in (N, NEW))
    return x, x_new, rng.normal(size=N), rng.normal(size=N)


@st.composite
def networks(draw):
    depth = draw(st.integers(1, 2))
    activation = draw(st.sampled_from(ACTIVATIONS))
    kind = draw(st.sampled_from(("ntk", "standard")))
    return nk.MLP(D, (8,) * depth, 1, activation, draw(numbers(0.5, 2.5)), draw(numbers(0.0, 1.0)), kind)


def plain_kernels():
    length = numbers(0.5, 3.0)
    return st.one_of(
        st.builds(K.RBF, length),
        st.builds(K.Laplace, length),
        st.builds(K.Polynomial, st.integers(1, 3), numbers(0.0, 1.0)),
        st.builds(K.NNGP, networks()),
        st.builds(K.NTK, networks()),
        st.builds(
            lambda length, a: K.Mahalanobis(K.RBF(length), np.diag([a, 1.0, 2.0])), length, numbers(0.1, 2.0)
        ),
    )


def kernels():
    one = plain_kernels()
    return st.one_of(
        one,
        st.builds(lambda a, b: a + b, one, one),
        st.builds(lambda a, b: a * b, one, one),
        st.builds(lambda c, a: c * a, numbers(0.1, 5.0), one),
    )


def definite_kernels():
    """Those whose matrices are well enough conditioned for all times of training."""
    return st.one_of(st.builds(K.Laplace, numbers(0.5, 2.0)), st.builds(K.RBF, numbers(0.4, 0.9)))


def regularized():
    """Algorithms that forgive a kernel that is nearly singular."""
    return st.one_of(
        st.builds(nk.Ridge, numbers(0.05, 2.0)),
        st.builds(nk.GradientFlow, numbers(0.1, 5.0)),
        st.builds(nk.GradientDescent, st.just(1e-3), st.integers(1, 200)),
        st.builds(nk.GradientDescent, st.just(1e-3), st.integers(1, 200), numbers(0.1, 0.9)),
    )
