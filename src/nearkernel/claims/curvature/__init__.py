"""Hessians, their parts, and neural collapse."""
