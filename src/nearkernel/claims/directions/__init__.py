"""Targets of few directions: what one gradient step finds and fixed kernels do not."""
