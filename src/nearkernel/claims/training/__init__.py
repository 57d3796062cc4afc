"""Linear models, kernels and Gaussian processes, trained."""
