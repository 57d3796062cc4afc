"""Large learning rates and noisy steps."""
