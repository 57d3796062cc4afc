"""What a kernel makes: Mercer pairs, its Hilbert space, processes."""
