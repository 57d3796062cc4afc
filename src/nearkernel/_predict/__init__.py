"""The command `nearkernel predict`: data in, three answers, scores, pictures and files out. Private."""
