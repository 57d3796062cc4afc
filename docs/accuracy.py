"""How accurate Gaussian averages of an unknown function are: prints the table of `guides/any-activation.md`.

    python docs/accuracy.py

Each function has a closed form in the library. Here it is handed over as a plain callable, so that the library
must find its kinks and its parity and average it by series and quadrature; the closed form is the reference.
"""

import jax
import jax.numpy as jnp
import numpy as np

from nearkernel.activations import get
from nearkernel.theory import dual

CALLABLES = {
    "erf": lambda z: jax.scipy.special.erf(z),
    "gelu": lambda z: jax.nn.gelu(z, approximate=False),
    "sin": lambda z: jnp.sin(z),
    "gaussian": lambda z: jnp.exp(-z * z),
    "monomial(3)": lambda z: z**3,
    "relu": lambda z: jnp.maximum(z, 0.0),
    "abs": lambda z: jnp.abs(z),
    "leaky_relu(0.1)": lambda z: jnp.where(z > 0, z, 0.1 * z),
}
CORRELATIONS = np.array([-1.0, -0.9, 0.0, 0.5, 0.99, 1 - 1e-6, 1 - 1e-12, 1.0])


def worst(name: str, low: float, high: float) -> str:
    """Errors of E[s s] and E[s' s'] relative to their size at equal inputs, over all pairs of variances."""
    q = np.geomspace(low, high, 5)
    q1, q2, correlation = np.meshgrid(q, q, CORRELATIONS)
    known, unknown = get(name), get(CALLABLES[name])
    try:
        found = dual(unknown, q1, q2, correlation)
    except ValueError:
        return "refused"
    size1, size2 = dual(known, q1, q1, 1.0), dual(known, q2, q2, 1.0)
    errors = (
        np.abs(a - b).ravel() / np.sqrt(s1 * s2).ravel()
        for a, b, s1, s2 in zip(found, dual(known, q1, q2, correlation), size1, size2, strict=True)
    )
    return ", ".join(f"{error.max():.0e}" for error in errors)


if __name__ == "__main__":
    print("| function | variances 0.01 to 100 | variances 1e-6 to 1e6 |\n|---|---|---|")
    for name in CALLABLES:
        print(f"| `{name}` | {worst(name, 1e-2, 1e2)} | {worst(name, 1e-6, 1e6)} |", flush=True)
