"""Tangent kernels of given parameters."""
