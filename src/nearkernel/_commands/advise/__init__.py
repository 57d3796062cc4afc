"""The command `nearkernel advise`: how to initialize a deep network, how its gradients behave, how fast to train it."""
