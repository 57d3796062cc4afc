"""Class structure of trained networks: outliers, features and gradients, with labels and without."""
