"""The command `nearkernel predict`: data in; predictions, scores, figures and files out. Private."""
