"""Catapults, margins, stationary noise: what training does beyond its solution."""
