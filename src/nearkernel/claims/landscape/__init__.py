"""How a loss is shaped where training goes: steep directions, gradients, noise."""
