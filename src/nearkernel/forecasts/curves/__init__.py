"""Learning curves: errors over the number of training points."""
