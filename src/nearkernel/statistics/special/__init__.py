"""Distributions and special functions."""
