"""From a data file to a matrix of numbers."""
