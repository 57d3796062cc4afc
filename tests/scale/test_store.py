"""Matrices on disk: what was computed comes back, what is damaged is found, what is another's is refused."""

import numpy as np
import pytest

import nearkernel as nk
from nearkernel.scale import store as _store
from nearkernel.scale.building import _BlockJob

rng = np.random.default_rng(7)
X = rng.normal(size=(700, 3))
KERNEL = nk.kernels.RBF(1.3)


def built(path, **options):
    return nk.scale.build(KERNEL, X, path / "K.zarr", **{"block": 300, **options})


def matrix_of(store) -> np.ndarray:
    found = np.full((store.n, store.n), np.nan)
    for i, j in store.blocks():
        found[store.rows(i), store.rows(j)] = store.read(i, j)
        found[store.rows(j), store.rows(i)] = store.read(i, j).T
    return found


def files_of(path) -> dict:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    "kernel",
    [
        KERNEL,
        nk.kernels.NTK(nk.MLP(3, (4, 4), 1, "relu")),
        2.0 * nk.kernels.Laplace(1.0) + nk.kernels.Linear(),
    ],
    ids=["rbf", "ntk", "sum"],
)
def test_blocks_are_those_of_the_matrix(tmp_path, kernel):
    store = nk.scale.build(kernel, X, tmp_path / "K.zarr", block=300)
    assert [*store.unsound()] == [] and len(store.blocks()) == 6
    expected = kernel(X)
    assert np.abs(matrix_of(store) - expected).max() <= 1e-14 * np.abs(expected).max()
    assert np.array_equal(store.x, X) and store.kernel == nk.scale.open_store(store.path).kernel


def test_float32_takes_half(tmp_path):
    store = built(tmp_path, dtype="float32")
    assert store.dtype == np.float32 and store.stored_bytes() == 6 * 300**2 * 4
    assert np.abs(matrix_of(store) - KERNEL(X)).max() < 1e-6


def test_damaged_and_missing_blocks_are_found_and_made_again(tmp_path):
    store = built(tmp_path)
    whole = files_of(store.path)
    flipped, cut, gone, empty = (store._file(*at) for at in ((2, 1), (1, 1), (2, 0), (1, 0)))
    content = bytearray(flipped.read_bytes())
    content[1234] ^= 4  # one bit
    flipped.write_bytes(content)
    cut.write_bytes(cut.read_bytes()[:1000])
    empty.write_bytes(b"")
    gone.unlink()
    assert sorted(store.unsound()) == [(1, 0, True), (1, 1, True), (2, 0, False), (2, 1, True)]
    with pytest.raises(ValueError, match="block 2, 1 is damaged"):
        store.read(2, 1)
    with pytest.raises(ValueError, match="block 2, 0 is missing"):
        store.read(2, 0)
    seen = []
    built(tmp_path, watch=lambda done, total: seen.append((done, total)))
    assert seen == [(3, 6), (4, 6), (5, 6), (6, 6)]
    assert files_of(store.path) == whole


def test_half_written_files_are_swept_up(tmp_path):
    store = built(tmp_path)
    whole = files_of(store.path)
    (store.path / "matrix/c/0/.1.0badcafe-1-12345678.unfinished").write_bytes(b"half")
    (store.path / "x/c/0/.0.0badcafe-1-12345678.unfinished").write_bytes(b"half")
    built(tmp_path)
    assert files_of(store.path) == whole


@pytest.mark.parametrize(
    "kernel, x, options, match",
    [
        (nk.kernels.RBF(1.4), X, {}, r"holds another kernel: RBF\(length=1.3\); requested RBF\(length=1.4\)"),
        (KERNEL, X + 1e-12, {}, "was made from other data. Use"),
        (KERNEL, X[:500], {}, r"from other data \(700 rows of 3; got 500 of 3\)"),
        (KERNEL, X, {"dtype": "float32"}, "`dtype` is float32, but .* holds float64"),
        (KERNEL, X, {"block": 200}, "has blocks of 300 rows. Leave it out"),
        (KERNEL, X, {"memory": "100kB"}, "too many for `memory`"),
    ],
)
def test_another_matrix_is_refused_and_left_alone(tmp_path, kernel, x, options, match):
    store = built(tmp_path)
    store._file(1, 1).unlink()
    before = files_of(store.path)
    with pytest.raises((ValueError, MemoryError), match=match):
        nk.scale.build(kernel, x, store.path, **options)
    assert files_of(store.path) == before


def test_another_version_is_refused(tmp_path, monkeypatch):
    store = built(tmp_path)
    monkeypatch.setattr(nk, "__version__", "9.9.9")
    with pytest.raises(ValueError, match=r"was begun by nearkernel .*, but this is 9\.9\.9"):
        built(tmp_path)
    assert nk.scale.open_store(store.path).n == 700  # reading is fine


def test_no_disk_space_is_said_before_and_during(tmp_path, monkeypatch):
    monkeypatch.setattr(_store.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 10_000}))
    with pytest.raises(OSError, match=r"needs 4\.1 MiB on disk, but 9\.8 KiB are free"):
        built(tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    write, count = _store.KernelStore.write, []

    def full(self, i, j, block):
        count.append((i, j))
        if len(count) > 2:
            raise OSError(28, "No space left on device")
        write(self, i, j, block)

    monkeypatch.setattr(_store.KernelStore, "write", full)
    with pytest.raises(
        OSError, match=r"no space left for .* of 6 blocks are stored; free .* and run this again"
    ):
        built(tmp_path)
    monkeypatch.undo()
    assert [*built(tmp_path).unsound()] == []


def test_what_is_no_store_is_not_touched(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for path in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(ValueError, match="is not a kernel matrix of nearkernel"):
            nk.scale.build(KERNEL, X, path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    with pytest.raises(FileNotFoundError, match="does not exist: make it with"):
        nk.scale.open_store(tmp_path / "none.zarr")


@pytest.mark.parametrize(
    "call, error, match",
    [
        (lambda path: nk.scale.build("rbf", X, path), TypeError, "`kernel` must be a kernel"),
        (lambda path: nk.scale.build(KERNEL, X[:, 0], path), ValueError, r"`x` must have shape \(n, d\)"),
        (lambda path: nk.scale.build(KERNEL, X, path, dtype="int8"), ValueError, "`dtype` must be one of"),
        (lambda path: nk.scale.build(KERNEL, X, path, memory="much"), ValueError, "`memory` must be a size"),
        (
            lambda path: nk.scale.build(KERNEL, X, path, memory=1000),
            MemoryError,
            "is too small for one block",
        ),
        (lambda path: nk.scale.build(KERNEL, X, path, block=0), ValueError, "`block` must be at least 1"),
    ],
)
def test_bad_input_leaves_nothing_behind(tmp_path, call, error, match):
    with pytest.raises(error, match=match):
        call(tmp_path / "K.zarr")
    assert list(tmp_path.iterdir()) == []


def test_too_many_blocks_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(_store, "MOST_BLOCKS", 2)
    with pytest.raises(
        ValueError, match=r"rows cuts \d+ points into \d+ blocks, more than 2: use larger blocks"
    ):
        built(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_worker_that_sees_another_matrix_is_one_line(tmp_path):
    path = str(built(tmp_path).path)
    with pytest.raises(ValueError, match=r"a worker sees a different matrix at .* than this machine"):
        _BlockJob(KERNEL, path, "seal of another").ready()


def test_fingerprints_tell_activations_and_parameters_apart():
    nets = [nk.MLP(3, (4,), 1, lambda z, a=a: z * a) for a in (1.0, 1.0)]
    texts = [_store.describe(nk.kernels.NTK(net)) for net in nets]
    assert texts[0] == texts[1]
    others = [
        nk.kernels.NTK(nk.MLP(3, (4,), 1, "tanh")),
        nk.kernels.NTK(nk.MLP(3, (4,), 1, "erf")),
        nk.kernels.NTK(nk.MLP(3, (4, 4), 1, "erf")),
        nk.kernels.NTK(nk.MLP(3, (4,), 1, "erf", bias_var=0.1)),
        nk.kernels.NNGP(nk.MLP(3, (4,), 1, "erf")),
        KERNEL, 2.0 * KERNEL, KERNEL * KERNEL, KERNEL + KERNEL,
    ]  # fmt: skip
    assert len({*map(_store.describe, others), texts[0]}) == len(others) + 1


def test_stored_products_solve(tmp_path, monkeypatch):
    store, y = built(tmp_path), np.sin(X[:, 0])
    reads = []
    read = _store.KernelStore.read
    monkeypatch.setattr(_store.KernelStore, "read", lambda self, *at: reads.append(at) or read(self, *at))
    solver = nk.dynamics.ConjugateGradients(blocks=store.path, tol=1e-10)
    found = nk.solve(KERNEL, X, y, nk.Ridge(0.1), solver=solver)
    expected = nk.solve(KERNEL, X, y, nk.Ridge(0.1), solver="direct")
    assert np.abs(found.predict(X[:20]).mean - expected.predict(X[:20]).mean).max() < 1e-8
    assert set(reads) == set(store.blocks()) and len(reads) == (found.iterations + 1) * len(store.blocks())
    with pytest.raises(ValueError, match="holds another kernel"):
        nk.solve(nk.kernels.RBF(2.0), X, y, nk.Ridge(0.1), solver=solver)
