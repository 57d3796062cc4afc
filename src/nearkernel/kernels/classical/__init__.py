"""Kernels that need no network."""
