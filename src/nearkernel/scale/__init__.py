"""Kernel matrices that do not fit: products, iterations, blocks on disk, clusters. No new mathematics."""
