"""What scikit-learn is timed on; runs in the environment of the benchmark itself."""

from _worker import load, serve
from sklearn.kernel_ridge import KernelRidge


def ridge(folder, gamma, alpha):
    """Kernel ridge regression with k(x, y) = exp(-gamma |x - y|^2): fit and predict."""
    x, y, x_new = load(folder, "x", "y", "x_new")
    return lambda: {"mean": KernelRidge(kernel="rbf", gamma=gamma, alpha=alpha).fit(x, y).predict(x_new)}


if __name__ == "__main__":
    serve(ridge)
