"""Bounds on kernels, eigenvalues and training at finite width."""
