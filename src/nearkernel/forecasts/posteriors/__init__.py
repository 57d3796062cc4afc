"""Bayesian networks of infinite and finite width."""
