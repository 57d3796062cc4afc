"""Linearized training of a given network, and how far to trust it."""
