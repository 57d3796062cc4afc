"""Linear regions of piecewise linear networks."""
