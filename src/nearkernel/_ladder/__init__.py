"""The command `nearkernel ladder`: a network really trained, and predicted order by order. Private."""
