"""Many threads at once, and 64 bits switched on and off between calls: the same answers, and nothing global changes."""

import concurrent.futures
import contextlib
import functools
import os
import random
import threading
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import threadpoolctl

import nearkernel as nk
from support.verbs import NEW, VERBS, K, X, Y, same

THREADS = 8


@functools.cache
def alone():
    """What each verb gives when nothing else happens."""
    return {name: verb() for name, verb in VERBS.items()}


def globals_of_the_process():
    blas = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    flags = {name: getattr(jax.config, name) for name in ("jax_enable_x64", "jax_default_matmul_precision")}
    flags |= {name: getattr(jax.config, name) for name in ("jax_debug_nans", "jax_numpy_dtype_promotion")}
    return random.getstate(), state, np.geterr(), dict(os.environ), list(warnings.filters), blas, flags


@contextlib.contextmanager
def sixty_four_bits(on: bool):
    """As a program does it that sets the flag for all of its threads."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", on)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def test_eight_threads_over_all_verbs_give_the_answers_of_one():
    alone()
    names, before = list(VERBS), globals_of_the_process()
    gate = threading.Barrier(THREADS)

    def work(thread: int):
        own_bits = jax.enable_x64(True) if thread % 2 else contextlib.nullcontext()
        with own_bits:
            gate.wait()
            shift = thread * len(names) // THREADS  # each begins elsewhere
            found = {name: VERBS[name]() for name in names[shift:] + names[:shift]}
            return found, jnp.ones(1).dtype

    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(work, range(THREADS)))
    for thread, (found, dtype) in enumerate(answers):
        assert dtype == (jnp.float64 if thread % 2 else jnp.float32)
        for name in names:
            same(found[name], alone()[name], name)
    assert globals_of_the_process() == before


@pytest.mark.parametrize("fresh", ("sin", "softplus"))
def test_what_is_met_first_by_eight_threads_is_made_once_and_right(fresh):
    """Series of an activation, programs that are compiled, factors: all begin at the same moment."""
    net = nk.MLP(3, (6, 7), activation=fresh, weight_var=1.37, bias_var=0.21)
    gate = threading.Barrier(THREADS)

    def work(_):
        gate.wait()
        return nk.forecast(net, X, Y, nk.GradientFlow(3.0), NEW).mean

    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(work, range(THREADS)))
    for found in answers:
        same(found, answers[0], fresh)
    same(answers[0], nk.forecast(net, X, Y, nk.GradientFlow(3.0), NEW).mean, fresh)


def test_one_solution_is_asked_by_eight_threads():
    """Its factor is replaced by a spectrum at the first finite time, in the middle of other questions."""
    solution = nk.solve(K.NTK(nk.MLP(3, activation="erf", bias_var=0.1)), X, Y, nk.GradientFlow())
    times = [np.inf, 0.5, 3.0, np.inf, 10.0, 0.5, np.inf, 3.0]
    expected = {
        t: nk.solve(K.NTK(nk.MLP(3, activation="erf", bias_var=0.1)), X, Y, nk.GradientFlow(t))
        .predict(NEW)
        .mean
        for t in set(times)
    }
    gate = threading.Barrier(THREADS)

    def work(t):
        gate.wait()
        return solution.predict(NEW, None if np.isinf(t) else t).mean

    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        for t, found in zip(times, pool.map(work, times), strict=True):
            same(found, expected[t], f"time {t}", rtol=1e-9)


def test_precision_belongs_to_the_thread_that_asked_for_it():
    gate = threading.Barrier(2)

    def work(dtype):
        with nk.precision(dtype):
            gate.wait()
            found = K.NTK(nk.MLP(3))(X)
            gate.wait()
            return found.dtype

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, ("float32", "float64"))) == [np.float32, np.float64]
    assert K.NTK(nk.MLP(3))(X).dtype == np.float64


@pytest.mark.parametrize("name", VERBS)
def test_answers_do_not_depend_on_the_flag_for_64_bits(name):
    for on in (True, False, True):
        with sixty_four_bits(on):
            before = globals_of_the_process()
            same(VERBS[name](), alone()[name], name, rtol=0.0 if name != "measure" else 1e-12)
            assert globals_of_the_process() == before
            assert jnp.ones(1).dtype == (jnp.float64 if on else jnp.float32)


def test_objects_made_under_one_flag_are_used_under_the_other():
    net = nk.MLP(3, (5,), activation="tanh", bias_var=0.1)
    with sixty_four_bits(True):
        solution = nk.solve(nk.expand(net, net.init(0)), X, Y, nk.Ridge(0.1))
        kernel, before = K.EmpiricalNTK(net, net.init(0)), solution.predict(NEW).mean
        matrix = kernel(X)
    np.testing.assert_array_equal(solution.predict(NEW).mean, before)
    np.testing.assert_array_equal(kernel(X), matrix)
    with sixty_four_bits(True):
        np.testing.assert_array_equal(
            nk.solve(nk.expand(net, net.init(0)), X, Y, nk.Ridge(0.1)).predict(NEW).mean, before
        )
