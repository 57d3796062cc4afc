"""The command `nearkernel inspect`: predicts the training of a network, and checks the prediction."""
