"""Signals and gradients over depth: criticality and phases."""
