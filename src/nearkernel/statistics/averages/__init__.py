"""Gaussian averages of products of derivatives of an activation."""
