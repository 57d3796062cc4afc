"""Distributions of outputs, and what they say of classes and losses."""
