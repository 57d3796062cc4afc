"""Entropy, widths and regularity of function classes."""
