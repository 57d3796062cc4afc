"""What GPyTorch is timed on; runs in an environment of its own. Parameters of the kernel are fixed, nothing is
learned."""

import contextlib

import gpytorch
import numpy as np
import torch
from _worker import load, serve

TOLERANCE = 1e-3  # of conjugate gradients, as ours


class Regression(gpytorch.models.ExactGP):
    """A Gaussian process of mean 0, exact or on inducing points."""

    def __init__(self, x, y, likelihood, kernel):
        super().__init__(x, y, likelihood)
        self.mean_module, self.covar_module = gpytorch.means.ZeroMean(), kernel

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def _mean(folder, length, ridge, inducing, rank=None):
    x, y, x_new = (torch.tensor(each, dtype=torch.float32) for each in load(folder, "x", "y", "x_new"))
    points = (
        None if inducing is None else torch.tensor(load(folder, "centers")[0][:inducing], dtype=torch.float32)
    )

    def run():
        likelihood = gpytorch.likelihoods.GaussianLikelihood()
        likelihood.noise = ridge
        kernel = gpytorch.kernels.RBFKernel()
        kernel.lengthscale = length
        if points is not None:
            kernel = gpytorch.kernels.InducingPointKernel(
                kernel, inducing_points=points.clone(), likelihood=likelihood
            )
        model = Regression(x, y, likelihood, kernel)
        model.eval(), likelihood.eval()
        with (
            torch.no_grad(),
            gpytorch.settings.skip_posterior_variances(),
            gpytorch.settings.eval_cg_tolerance(TOLERANCE),
            contextlib.nullcontext() if rank is None else gpytorch.settings.max_preconditioner_size(rank),
        ):
            return {"mean": model(x_new).mean.numpy().astype(np.float64)}

    return run


def machine(folder, length, ridge, rank=None):
    """All points, by conjugate gradients; `rank` of the preconditioner, its own choice (15) unless given."""
    return _mean(folder, length, ridge, None, rank)


def centers(folder, length, ridge, m):
    """Inducing points: the same m that the others take as centers."""
    return _mean(folder, length, ridge, m)


if __name__ == "__main__":
    serve(machine, centers)
