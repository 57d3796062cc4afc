"""`python -m nearkernel` is the command line."""

from .cli import main

main()
