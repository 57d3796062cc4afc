"""Order width^(-1/2): neurons that cross a kink."""
