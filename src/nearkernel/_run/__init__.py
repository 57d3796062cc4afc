"""How work is run: threads, clusters, memory, precision, compiled programs, progress, interrupts."""
