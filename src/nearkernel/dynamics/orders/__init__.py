"""Training to orders 1 and 2: the kernel moves."""
