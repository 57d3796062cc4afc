"""Products, solves, decompositions, distances and Fourier transforms."""

import math

import jax
import jax.numpy as jnp

from .reductions import vector_norm
from .table import enter_all, operation

enter_all(
    {
        "bmm": jnp.matmul,
        "dot": jnp.dot,
        "linear": lambda x, weight, bias=None: _plus(x @ weight.T, bias),
        "linalg_cross": lambda x, other, dim=-1: jnp.cross(x, other, axis=dim),
        "linalg_matrix_exp": lambda x: _each_matrix(jax.scipy.linalg.expm, x),
        "matmul": jnp.matmul,
        "mm": jnp.matmul,
        "mv": jnp.matmul,
    }
)


def _plus(x, bias):
    return x if bias is None else x + bias


def _each_matrix(function, x):
    """A function of one matrix, of each in a batch."""
    return jax.vmap(function)(x.reshape(-1, *x.shape[-2:])).reshape(x.shape)


@operation("addmm", "addmv", "baddbmm")
def add_product(x, first, second, beta=1, alpha=1):
    product = first @ second
    product = product if alpha == 1 else alpha * product
    return product if beta == 0 else product + (x if beta == 1 else beta * x)


@operation("bilinear")
def bilinear(input1, input2, weight, bias=None):
    return _plus(jnp.einsum("...i,oij,...j->...o", input1, weight, input2), bias)


@operation("einsum")
def einsum(equation, tensors, path=None):
    return jnp.einsum(equation.replace(" ", ""), *tensors)


@operation("_linalg_solve_ex")
def solve(A, B, left=True, check_errors=False):
    vector = B.ndim == 1 or (B.ndim + 1 == A.ndim and B.shape == A.shape[:-1])
    if vector:
        B = B[..., None]
    if left:
        solution = jnp.linalg.solve(A, B)
    else:
        solution = jnp.swapaxes(jnp.linalg.solve(jnp.swapaxes(A, -1, -2), jnp.swapaxes(B, -1, -2)), -1, -2)
    return (solution[..., 0] if vector else solution), None, None, jnp.zeros(A.shape[:-2])


@operation("linalg_inv_ex")
def inverse(A, check_errors=False):
    return jnp.linalg.inv(A), jnp.zeros(A.shape[:-2])


@operation("linalg_cholesky_ex")
def cholesky(A, upper=False, check_errors=False):
    factor = jnp.linalg.cholesky(A)
    return (jnp.swapaxes(factor, -1, -2) if upper else factor), jnp.zeros(A.shape[:-2])


@operation("_linalg_det")
def determinant(A):
    return jnp.linalg.det(A), None, None


@operation("_linalg_slogdet")
def log_determinant(A):
    sign, value = jnp.linalg.slogdet(A)
    return sign, value, None, None


@operation("_linalg_eigh")
def eigen(A, UPLO="L", compute_v=True):
    """Eigenvectors are determined up to a sign; what depends on it is not a function of the matrix."""
    values, vectors = jnp.linalg.eigh(A, UPLO=UPLO, symmetrize_input=False)
    return values, vectors


@operation("linalg_solve_triangular")
def solve_triangular(A, B, upper, left=True, unitriangular=False):
    batch = jnp.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    A, B = (jnp.broadcast_to(each, batch + each.shape[-2:]) for each in (A, B))
    return jax.lax.linalg.triangular_solve(A, B, left_side=left, lower=not upper, unit_diagonal=unitriangular)


@operation("_cdist_forward", "_euclidean_dist")
def distances(x1, x2, p=2.0, compute_mode=None):
    return vector_norm(x1[..., :, None, :] - x2[..., None, :, :], p, -1)


@operation("_pdist_forward")
def pair_distances(x, p=2.0):
    first, second = jnp.triu_indices(len(x), 1)
    return vector_norm(x[first] - x[second], p, -1)


def _fourier_scale(x, dim, normalization, shape=None):
    """Numbers 0, 1, 2 for no factor, 1/sqrt(n), 1/n."""
    count = math.prod((x.shape if shape is None else shape)[axis] for axis in dim)
    return (1.0, count**-0.5, 1.0 / count)[normalization]


@operation("_fft_r2c")
def fourier_of_real(x, dim, normalization, onesided):
    scale = _fourier_scale(x, dim, normalization)
    return scale * (jnp.fft.rfftn(x, axes=dim) if onesided else jnp.fft.fftn(x, axes=dim))


@operation("_fft_c2c")
def fourier(x, dim, normalization, forward):
    scale = _fourier_scale(x, dim, normalization)
    # JAX divides its inverse by n.
    return scale * (jnp.fft.fftn(x, axes=dim) if forward else jnp.fft.ifftn(x, axes=dim, norm="forward"))


@operation("_fft_c2r")
def fourier_to_real(x, dim, normalization, last_dim_size):
    sizes = [x.shape[axis] for axis in dim[:-1]] + [last_dim_size]
    shape = dict(zip(dim, sizes, strict=True))
    count = math.prod(shape.values())
    return (1.0, count**-0.5, 1.0 / count)[normalization] * jnp.fft.irfftn(
        x, s=sizes, axes=dim, norm="forward"
    )
