"""The command `nearkernel ladder`: a network actually trained, and predicted order by order. Private."""
