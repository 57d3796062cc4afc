"""From a table of any library to a matrix of numbers."""
