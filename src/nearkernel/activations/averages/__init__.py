"""Gaussian averages of activations: closed forms, series, tables, quadrature."""
