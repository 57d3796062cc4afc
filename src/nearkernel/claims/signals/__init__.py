"""Initialization: how signals and gradients pass through many layers."""
