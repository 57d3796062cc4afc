"""The command `nearkernel advise`: how to start a deep network, what its gradients will do, how fast to train it."""
