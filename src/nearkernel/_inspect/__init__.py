"""The command `nearkernel inspect`: what training will do to a network of your own, and how far to believe it."""
