"""What makes two kernels the same kernel: every part of a function that can change its values, and nothing else."""

import collections
import dataclasses
import enum
import functools
import os
import re
import subprocess
import sys
import threading
import types

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nearkernel as nk
from nearkernel.scale.fingerprint import describe

X = np.random.default_rng(0).normal(size=(20, 3))


def scaled(factor, x):
    return factor * x


def with_default(factor):
    def phi(x, factor=factor):
        return factor * x

    return phi


def with_keyword(factor):
    def phi(x, *, factor=factor):
        return factor * x

    return phi


def with_closure(factor):
    return lambda x: factor * x


def with_global(factor):
    """The same code in two modules that differ by a constant."""
    scope = {"__name__": "mine"}
    exec(f"FACTOR = {factor}\ndef phi(x):\n    return FACTOR * x", scope)
    return scope["phi"]


def with_global_of_inner(factor):
    scope = {"__name__": "mine"}
    exec(f"FACTOR = {factor}\ndef phi(x):\n    return (lambda z: FACTOR * z)(x)", scope)
    return scope["phi"]


def with_module(factor):
    """A constant in a user's module, reached as an attribute."""
    inner, outer = types.ModuleType("mine.inner"), types.ModuleType("mine")
    inner.factor, outer.inner = factor, inner
    scope = {"__name__": "main", "mine": outer}
    exec("def phi(x):\n    return mine.inner.factor * x", scope)
    return scope["phi"]


def from_source(text):
    def make(factor):
        scope = {"__name__": "mine"}
        exec(f"phi = {text.replace('FACTOR', repr(factor))}", scope)
        return scope["phi"]

    return make


class Callable_:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return self.factor * x

    def times(self, x):
        return self.factor * x


class Slotted:
    __slots__ = ("factor",)

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return self.factor * x


@dataclasses.dataclass
class Late:
    """With state beside its fields."""

    name: str

    def __call__(self, x):
        return self.factor * x


def late(factor):
    found = Late("a")
    found.factor = factor
    return found


def with_method(factor):
    class Same:
        def __call__(self, x):
            return self.inside() * x

        inside = (lambda self: 1.0) if factor == 1.0 else (lambda self: 3.0)

    return Same()


def with_class_attribute(factor):
    return type("Same", (), {"factor": factor, "__call__": lambda self, x: self.factor * x})()


def with_base(factor):
    base = type("Base", (), {"factor": factor})
    return type("Same", (base,), {"__call__": lambda self, x: self.factor * x})()


class Pair(collections.namedtuple("Pair", "factor other")):
    def __call__(self, x):
        return self.factor * x


class Size(enum.Enum):
    one = 1.0
    three = 3.0


VARIANTS = {
    "partial": lambda a: functools.partial(scaled, a),
    "partial of a keyword": lambda a: functools.partial(lambda x, factor: factor * x, factor=a),
    "jax partial": lambda a: jax.tree_util.Partial(scaled, a),
    "default": with_default,
    "keyword default": with_keyword,
    "closure": with_closure,
    "closure of a closure": lambda a: (lambda phi: lambda x: phi(x))(with_closure(a)),
    "global": with_global,
    "global of an inner function": with_global_of_inner,
    "user's module": with_module,
    "constant": from_source("lambda x: FACTOR * x"),
    "constant of an inner lambda": from_source("lambda x: (lambda z: FACTOR * z)(x)"),
    "tuple of constants": from_source("lambda x: sum((FACTOR, 2.0)) * x"),
    "nested constants": from_source("lambda x: dict((('a', (FACTOR, 2.0)),))['a'][0] * x"),
    "complex constant": from_source("lambda x: (FACTOR + 0j).real * x"),
    "bytes": from_source("lambda x: len(bytes(str(FACTOR), 'ascii')) * x * FACTOR"),
    "callable object": Callable_,
    "slots": Slotted,
    "attribute beside the fields": late,
    "bound method": lambda a: Callable_(a).times,
    "method": with_method,
    "class attribute": with_class_attribute,
    "base class": with_base,
    "named tuple": lambda a: Pair(a, 0.0),
    "enumeration": lambda a: functools.partial(lambda s, x: s.value * x, Size(a)),
    "jit": lambda a: jax.jit(with_closure(a)),
    "vmap": lambda a: jax.vmap(with_closure(a)),
    "cache": lambda a: functools.lru_cache(with_closure(a)),
    "array": lambda a: (lambda w: lambda x: x * w)(np.array([a, 1.0, 1.0])),
    "one entry of a large array": lambda a: (lambda w: lambda x: x * w[4000])(np.r_[np.zeros(4000), a]),
    "array of objects": lambda a: (lambda w: lambda x: x * w[0])(np.array([a, "x"], dtype=object)),
    "masked array": lambda a: (lambda w: lambda x: x * float(w.sum()))(np.ma.array([1.0, 2.0], mask=[0, a == 1.0])),
    "key": lambda a: (lambda k: lambda x: x * jax.random.uniform(k))(jax.random.key(int(a))),
    "dict": lambda a: (lambda d: lambda x: x * d["a"])({"b": 1.0, "a": a}),
    "large int": lambda a: (lambda n: lambda x: x * (n % 4))(2**60 + int(a)),
    "int or float": lambda a: (lambda n: lambda x: x * (1.0 if isinstance(n, int) else 3.0))(2 if a == 1.0 else 2.0),
    "type": lambda a: (lambda t: lambda x: x.astype(t))(np.float32 if a == 1.0 else np.float64),
}  # fmt: skip


@pytest.mark.parametrize("make", VARIANTS.values(), ids=VARIANTS)
def test_functions_that_differ_are_told_apart_and_those_that_do_not_are_not(make):
    one, same, other = (describe(nk.kernels.FeatureKernel(make(factor))) for factor in (1.0, 1.0, 3.0))
    assert one == same != other
    assert "0x" not in one  # no address, which another process would not have


@pytest.mark.parametrize(
    "name", ["partial", "default", "callable object", "global", "constant of an inner lambda"]
)
def test_a_store_refuses_another_kernel(tmp_path, name):
    kernels = [nk.kernels.FeatureKernel(VARIANTS[name](factor)) for factor in (1.0, 1.0, 3.0)]
    for kernel in kernels[:2]:
        nk.scale.build(kernel, X, tmp_path / "K.zarr")
    with pytest.raises(ValueError, match="holds another kernel"):
        nk.scale.build(kernels[2], X, tmp_path / "K.zarr")
    solver = nk.dynamics.ConjugateGradients(blocks=tmp_path / "K.zarr")
    with pytest.raises(ValueError, match="holds another kernel"):
        nk.solve(kernels[2], X, X[:, 0], nk.Ridge(0.1), solver=solver)


def test_classes_of_one_name_are_told_apart():
    def kernel(power):
        class Mine(nk.kernels.RBF.__base__):
            length: float = 1.0

            def pairs(self, rows1, rows2, gap):
                return (rows1["norm"] * rows2["norm"] * (1.0 - gap) ** power,)

            def diagonals(self, rows):
                return (rows["norm"] ** 2,)

        return Mine()

    texts = [describe(kernel(power)) for power in (1, 1, 3)]
    assert texts[0] == texts[1] != texts[2]


class RBF(nk.kernels.Linear.__base__):
    """A user's class with a name of the library's."""

    length: float = 1.0

    def pairs(self, rows1, rows2, gap):
        return (1.0 - gap,)

    def diagonals(self, rows):
        return (1.0 + 0.0 * rows["norm"],)


def test_names_of_the_library_belong_to_it():
    assert describe(nk.kernels.RBF(2.0)) == "RBF(length=2.0)" != describe(RBF(2.0))
    assert describe(nk.kernels.FeatureKernel(jnp.tanh)) == "FeatureKernel(phi=jax.numpy.tanh)"


def test_what_changes_nothing_does_not_count():
    assert (
        describe(nk.kernels.RBF(2))
        == describe(nk.kernels.RBF(2.0))
        == describe(nk.kernels.RBF(np.float64(2)))
    )
    kernel = nk.kernels.RBF(2)
    assert describe(kernel + kernel) == describe(nk.kernels.RBF(2) + nk.kernels.RBF(2))

    class Cached:
        @functools.cached_property
        def table(self):
            return np.arange(3.0)

        def __call__(self, x):
            return x * self.table

    phi = Cached()
    before = describe(phi)
    phi(X)
    assert describe(phi) == before
    comments = ["def phi(x):\n    return 2 * x", "\n\n# more\ndef phi(x):  # of it\n    return 2 * x"]
    scopes = [{"__name__": "a"}, {"__name__": "b"}]
    for text, scope in zip(comments, scopes, strict=True):
        exec(text, scope)
    assert describe(scopes[0]["phi"]) == describe(scopes[1]["phi"])


def test_functions_that_call_each_other_are_described():
    def even(x, n=4):
        return x if n == 0 else odd(x, n - 1)

    def odd(x, n):
        return 2.0 * even(x, n - 1)

    assert re.fullmatch(r"even \w{16}", describe(even))


def test_networks_of_other_libraries_count_by_their_content():
    import flax.linen as nn
    from flax import nnx

    class Net(nn.Module):
        width: int

        @nn.compact
        def __call__(self, x):
            return nn.Dense(1)(nn.relu(nn.Dense(self.width)(x)))

    flax = [describe(nk.from_function(Net(width).apply)) for width in (4, 4, 5)]
    static = [
        eqx.partition(eqx.nn.MLP(3, 1, 4, depth, key=jax.random.key(0)), eqx.is_array)[1]
        for depth in (1, 1, 2)
    ]
    equinox = [describe(nk.from_function(lambda p, x, s=s: jax.vmap(eqx.combine(p, s))(x))) for s in static]
    graphs = [nnx.split(nnx.Linear(n, 1, rngs=nnx.Rngs(0)))[0] for n in (3, 3, 4)]
    nnx_ = [describe(nk.from_function(lambda p, x, g=g: nnx.merge(g, p)(x))) for g in graphs]
    for one, same, other in (flax, equinox, nnx_):
        assert one == same != other


def hidden():
    lock = threading.Lock()

    def phi(x):
        with lock:
            return x

    return phi


@pytest.mark.parametrize(
    "phi, what",
    [
        (hidden(), "_thread.lock"),
        (functools.partial(scaled, (n for n in range(3))), "builtins.generator"),
        (np.frompyfunc(lambda x: x, 1, 1), "numpy.ufunc"),
        (functools.partial(scaled, types.ModuleType("mine")), "builtins.module"),
    ],
)
def test_what_cannot_be_compared_is_refused_and_can_be_named(tmp_path, phi, what):
    path = tmp_path / "K.zarr"
    line = rf"tell it from another kernel, because it contains a {what}, .*nk\.scale\.Named\(.a name., function\)"
    with pytest.raises(ValueError, match=line):
        nk.scale.build(nk.kernels.FeatureKernel(phi), X, path)
    assert not path.exists()
    named = [describe(nk.kernels.FeatureKernel(nk.scale.Named(name, phi))) for name in ("one", "one", "two")]
    assert named[0] == named[1] == "FeatureKernel(phi=Named('one'))" != named[2]


def test_a_named_function_is_stored_and_solved(tmp_path):
    kernel = nk.kernels.FeatureKernel(nk.scale.Named("as it is", hidden()))
    store = nk.scale.build(kernel, X, tmp_path / "K.zarr")
    assert np.abs(store.read(0, 0) - X @ X.T).max() < 1e-12
    solver = nk.dynamics.ConjugateGradients(blocks=store.path)
    assert nk.solve(kernel, X, X[:, 0], nk.Ridge(0.1), solver=solver).ok


@pytest.mark.parametrize(
    "call, error, match",
    [
        (
            lambda: nk.scale.Named(" ", abs),
            ValueError,
            "`name` of nk.scale.Named must be a non-empty string",
        ),
        (lambda: nk.scale.Named(3, abs), ValueError, "non-empty string; got 3"),
        (
            lambda: nk.scale.Named("a", 3),
            TypeError,
            "`function` of nk.scale.Named must be a function; got int",
        ),
    ],
)
def test_a_bad_name_costs_one_line(call, error, match):
    with pytest.raises(error, match=match):
        call()


SCRIPT = """
import functools
import jax, jax.numpy as jnp, numpy as np
import nearkernel as nk
from nearkernel.scale.fingerprint import describe

FACTOR, WORDS = 3.0, {"one", "two", "three"}

class Scaled:
    def __init__(self, factor):
        self.factor = factor
    def __call__(self, x):
        return x * self.factor if "one" in {"one", "two", "three"} else x

def phi(a, x, *, b=frozenset(("u", "v", "w"))):
    return np.where(len(WORDS) > 2, FACTOR * jnp.tanh(a * x), sum(map(len, b)))

for found in (functools.partial(phi, 2.0), Scaled(2.0), jax.jit(lambda x: Scaled(FACTOR)(x))):
    print(describe(nk.kernels.FeatureKernel(found)))
"""


def test_another_process_gives_the_same_text():
    """Whose addresses, and whose order of sets, are others."""
    texts = set()
    for seed in ("1", "2"):
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), PYTHONHASHSEED=seed)
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        texts.add(done.stdout)
    assert len(texts) == 1 and texts.pop().count("\n") == 3
