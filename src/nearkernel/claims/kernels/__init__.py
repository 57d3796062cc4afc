"""Kernels, their Hilbert spaces and what they make."""
