"""Linear regions of networks with piecewise linear activations."""
