"""`nearkernel kernel`: matrices on disk from the command line."""
