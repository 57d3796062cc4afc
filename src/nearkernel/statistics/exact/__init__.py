"""Exact laws of relu and deep linear networks."""
