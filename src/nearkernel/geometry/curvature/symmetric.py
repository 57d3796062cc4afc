"""A symmetric matrix that is known by its products with vectors."""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..._base.check import numeric
from ..._run.memory import require_fits, rows_that_fit
from ..._run.precision import Portable, in_float64


class AbstractOperator(Portable, eqx.Module):
    """A symmetric (P, P) matrix; calling it returns its product with a vector (P,) or with columns (P, k)."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """The number of parameters P."""

    @abc.abstractmethod
    def product(self, vector: jax.Array) -> jax.Array:
        """The product with one `vector` (P,), as a JAX expression."""

    @in_float64
    def __call__(self, vectors) -> np.ndarray:
        vectors = numeric(vectors, "vectors")
        if vectors.ndim not in (1, 2) or len(vectors) != self.size:
            raise ValueError(
                f"`vectors` must have shape ({self.size},) or ({self.size}, k); got {vectors.shape}."
            )
        if vectors.ndim == 1:
            return np.asarray(one_product(self, vectors))
        return np.stack([np.asarray(one_product(self, column)) for column in vectors.T], axis=1)

    @in_float64
    def dense(self) -> np.ndarray:
        """The whole matrix (P, P), for small networks."""
        require_fits(
            16 * self.size**2, f"a matrix of {self.size} parameters squared", "use products or eigenpairs"
        )
        chunk = rows_that_fit(8 * self.size, 64 * 2**20, 64)
        matrix = np.asarray(many_products(self, jnp.eye(self.size), chunk))
        return 0.5 * (matrix + matrix.T)


one_product = jax.jit(lambda operator, vector: operator.product(vector))


@jax.jit(static_argnums=2)
def many_products(operator: AbstractOperator, rows: jax.Array, together: int) -> jax.Array:
    return jax.lax.map(operator.product, rows, batch_size=together)
