"""NNGP and tangent kernels of infinitely wide networks."""
