"""Gradient descent of a network whose third derivatives are constant, in outputs alone."""


def descended(theta, h, mu, nu, kap, z, y, lr, steps):
    """Outputs after steps of the closed recursion for (z, k, mu), in plain NumPy; complex numbers welcome."""
    n, k = len(y), theta + h
    for _ in range(steps):
        e = z[:n] - y
        dz = lr * k[:, :n] @ e - lr**2 / 2 * mu[:, :n, :n] @ e @ e + lr**3 / 6 * nu[:, :n, :n, :n] @ e @ e @ e
        drift, bent = mu[:, :, :n] @ e, nu[:, :, :n, :n] @ e @ e
        dk = lr * (drift + drift.T) - lr**2 * (0.5 * (bent + bent.T) + kap[:, :, :n, :n] @ e @ e)
        turned = kap[:, :, :, :n] @ e
        mu = mu - lr * (nu[:, :, :, :n] @ e + turned + turned.swapaxes(1, 2))
        z, k = z - dz, k - dk
    return z[n:]
