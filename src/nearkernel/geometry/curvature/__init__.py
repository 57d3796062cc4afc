"""Curvature of a loss, its spectrum, and its structure by classes."""
