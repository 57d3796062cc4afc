"""Implicit bias: which of many solutions training finds."""
