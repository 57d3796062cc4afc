"""Layers: the function of one draw beside its law at infinite width."""
