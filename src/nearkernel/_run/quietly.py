"""Imports what draws from global generators meanwhile, and puts these back. Every room imports this first.

JAX then keeps compiled programs, if `NEARKERNEL_CACHE` says so.
"""

from .random_state import random_state_kept

with random_state_kept():
    import jax as jax  # its retries wait for random times, drawn beforehand

from .cache import by_environment

by_environment()
