"""Quadratic and cubic models, which learn features."""
