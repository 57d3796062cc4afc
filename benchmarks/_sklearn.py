"""What scikit-learn is timed on; runs in the environment of the benchmark itself."""

from _worker import load, serve
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline


def ridge(folder, gamma, alpha):
    """Kernel ridge regression with k(x, y) = exp(-gamma |x - y|^2): fit and predict."""
    x, y, x_new = load(folder, "x", "y", "x_new")
    return lambda: {"mean": KernelRidge(kernel="rbf", gamma=gamma, alpha=alpha).fit(x, y).predict(x_new)}


def centers(folder, length, ridge, m):
    """Nystroem features of m points that it draws, then linear ridge regression."""
    x, y, x_new = load(folder, "x", "y", "x_new")

    def run():
        features = Nystroem(gamma=0.5 / length**2, n_components=m, random_state=0)
        return {
            "mean": make_pipeline(features, Ridge(alpha=ridge, fit_intercept=False)).fit(x, y).predict(x_new)
        }

    return run


if __name__ == "__main__":
    serve(ridge, centers)
