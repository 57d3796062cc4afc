"""Networks of PyTorch, Flax, Equinox and Keras, and of any function."""
