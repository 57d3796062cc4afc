"""Networks of finite width: how far they are from Gaussian, and from each other."""
