"""The command `nearkernel curve`: how the error falls with the number of rows. Private."""
