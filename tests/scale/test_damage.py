"""Stores that rotted, were tampered with, or come from strangers: nothing wrong is read, and nothing in them is run."""

import dataclasses
import json
import shutil
import tracemalloc

import numpy as np
import pytest

import nearkernel as nk
from nearkernel.scale import blocks as _layout
from support.commands import nearkernel

X = np.random.default_rng(3).normal(size=(130, 3))
Y = np.sin(X[:, 0])
KERNEL = nk.kernels.RBF(1.5)
SETTINGS = {"kernel": "rbf", "length": 1.5}
NETWORK = {"kernel": "ntk", "depth": 2, "activation": "erf", "weight_var": 1.5, "bias_var": 0.0}


def make(path, kernel=KERNEL):
    return nk.scale.build(kernel, X, path, block=50, settings=SETTINGS)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return make(tmp_path_factory.mktemp("whole") / "K.zarr").path


@pytest.fixture
def store(whole, tmp_path):
    """A copy to damage."""
    return nk.scale.open_store(shutil.copytree(whole, tmp_path / "K.zarr"))


def content(path) -> dict:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def verified(path) -> int:
    found = nearkernel("kernel", "verify", path, code=None)
    assert found.exit_code in (0, 1, 2) and (found.stdout + found.stderr).count("error: unexpected") == 0
    return found.exit_code


def flip(file, at: int, bit: int = 0) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 1 << bit
    file.write_bytes(data)


def test_verify_finds_a_flipped_bit_in_any_file(store):
    draw = np.random.default_rng(0)
    assert verified(store.path) == 0
    for file in sorted(store.path.rglob("*")):
        if not file.is_file():
            continue
        sound = file.read_bytes()
        places = {0, len(sound) - 1, *draw.integers(len(sound), size=6).tolist()}
        places |= {len(sound) - k for k in (4, 8, 20, 24, 28)} if file.suffix != ".json" else set()
        for at in sorted(places):
            flip(file, at, int(draw.integers(7)))
            if not (file.suffix == ".json" and json_equal(file.read_bytes(), sound)):
                assert verified(store.path) != 0, (file, at)
            file.write_bytes(sound)
    assert verified(store.path) == 0


def json_equal(one: bytes, other: bytes) -> bool:
    try:
        return json.loads(one) == json.loads(other)
    except ValueError:
        return False


def swap(store):
    one, two = store._file(1, 0), store._file(2, 1)
    kept = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(kept)


def from_another_matrix(store):
    other = make(store.path.with_name("other.zarr"), nk.kernels.RBF(1.6))
    shutil.copy(other._file(1, 0), store._file(1, 0))


@pytest.mark.parametrize(
    "damage, bad",
    [
        (swap, [[1, 0], [2, 1]]),
        (from_another_matrix, [[1, 0]]),
        (lambda store: shutil.copy(store._file(2, 2), store._file(1, 1)), [[1, 1]]),
        (lambda store: (store._file(1, 1).unlink(), store._file(1, 1).mkdir()), [[1, 1]]),
        (lambda store: store._file(0, 0).write_bytes(store._file(0, 0).read_bytes() + b"more"), [[0, 0]]),
        (lambda store: np.full(50 * 50, 7.0).tofile(store._file(0, 0)), [[0, 0]]),
    ],
    ids=["swapped", "of another matrix", "copied", "a folder", "longer", "without checksums"],
)
def test_a_sound_block_in_a_wrong_place_is_damage(store, damage, bad):
    damage(store)
    found = nearkernel("kernel", "verify", store.path, "--json", code=1)
    assert [each["block"] for each in json.loads(found.stdout)["bad"]] == bad
    with pytest.raises(ValueError, match=r"is (damaged|missing)"):
        store.read(*bad[0])


@pytest.mark.parametrize("how", ["flipped", "gone", "other"])
def test_damaged_inputs_are_found_refused_and_mended(store, how):
    before, file = content(store.path), store.path / "x/c/0/0"
    if how == "flipped":
        flip(file, 17)
    elif how == "gone":
        file.unlink()
    else:
        store.write_inputs(X + 1.0)  # with checksums that fit
    word = "missing" if how == "gone" else "damaged"
    found = nearkernel("kernel", "verify", store.path, code=1)
    assert f"inputs: {word}" in found.stdout and "Build again to repair it" in found.stdout
    assert json.loads(nearkernel("kernel", "verify", store.path, "--json", code=1).stdout)["inputs"] == word
    with pytest.raises(ValueError, match=f"the inputs `x` are {word}: run `nearkernel kernel build` again"):
        nk.solve(KERNEL, X, Y, nk.Ridge(0.1), solver=nk.dynamics.ConjugateGradients(blocks=store.path))
    make(store.path)
    assert content(store.path) == before and verified(store.path) == 0


@pytest.mark.parametrize("solver", ["ConjugateGradients", "Richardson", "EigenPro"])
@pytest.mark.parametrize("how", ["damaged", "missing"])
def test_every_solver_refuses_a_damaged_block_wherever_it_is(store, solver, how):
    """Not by chance: no block is computed anew because that is faster."""
    solver = getattr(nk.dynamics, solver)(blocks=store.path, tol=1e-2)
    assert np.isfinite(nk.solve(KERNEL, X, Y, nk.Ridge(1.0), solver=solver).coefficients).all()
    for i, j in store.blocks():
        file = store._file(i, j)
        sound = file.read_bytes()
        flip(file, 1000) if how == "damaged" else file.unlink()
        with pytest.raises(ValueError, match=f"block {i}, {j} is {how}"):
            nk.solve(KERNEL, X, Y, nk.Ridge(1.0), solver=solver)
        file.write_bytes(sound)


def rewrite(file, change) -> None:
    document = json.loads(file.read_bytes())
    change(document)
    file.write_text(json.dumps(document))


def resealed(path, **fields):
    """A stranger's store: whatever stands in it, with the checksum that belongs to it."""
    about = dataclasses.replace(_layout.read_about(path), **fields)
    rewrite(path / "zarr.json", lambda document: document.update(attributes=about.attributes()))
    n, d, block = about.points, about.features, about.block
    for name, shape, chunk in (("matrix", [n, n], [block, block]), ("x", [n, d], [n, d])):

        def falsify(document, shape=shape, chunk=chunk):
            document["shape"] = shape
            document["chunk_grid"]["configuration"]["chunk_shape"] = chunk
            document["codecs"][0]["configuration"]["chunk_shape"] = chunk

        rewrite(path / name / "zarr.json", falsify)


ATTRIBUTES = {
    "seal": "0" * 32,
    "block": 0,
    "points": 131,
    "settings": {},
    "kernel": "RBF(length=2.5)",
    "dtype": "int8",
}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_a_falsified_description_is_refused(store, name):
    rewrite(
        store.path / "zarr.json", lambda document: document["attributes"].update({name: ATTRIBUTES[name]})
    )
    with pytest.raises(ValueError, match=r"zarr\.json is damaged or was not written by nearkernel"):
        nk.scale.open_store(store.path)
    for command in (("info",), ("verify",), ("solve", "data.npz", "--ridge", 1)):
        found = nearkernel("kernel", command[0], store.path, *command[1:], code=2)
        assert found.stderr.count("\n") == 1 and "zarr.json is damaged" in found.stderr


@pytest.mark.parametrize(
    "fields",
    [
        {"block": 0},
        {"block": -1},
        {"block": True},
        {"block": 1, "points": 10**7},
        {"points": 10**30},
        {"points": 2.5},
        {"features": "3"},
        {"version": 3},
        {"settings": []},
        {"dtype": ["float64"]},
    ],
    ids=str,
)
def test_a_strangers_numbers_are_not_believed(store, fields):
    resealed(store.path, **fields)
    with pytest.raises(ValueError, match=r"zarr\.json is damaged or was not written by nearkernel"):
        nk.scale.open_store(store.path)


def test_a_stranger_cannot_ask_for_memory(store):
    """More points than there are: the size of the file is looked at first."""
    resealed(store.path, points=10**6, block=10**6)
    tracemalloc.start()
    try:
        foreign = nk.scale.open_store(store.path)
        assert foreign.inputs_state() == "damaged" and not foreign.is_sound(0, 0)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"kernel": ["rbf"], "length": 1},
        {"kernel": "rbf"},
        {"kernel": "rbf", "length": "long"},
        {"kernel": "rbf", "length": -1},
        {"kernel": "rbf", "length": 10**400},
        {"kernel": "rbf", "length": 1.5, "more": 1},
        {**NETWORK, "depth": 10**9},
        {**NETWORK, "depth": 0},
        {**NETWORK, "depth": 2.0},
        {**NETWORK, "activation": 3},
        {**NETWORK, "weight_var": None},
        {**NETWORK, "bias_var": -1.0},
    ],
    ids=str,
)
def test_a_strangers_settings_are_checked_as_if_typed(store, settings):
    np.savez(store.path.with_name("data.npz"), x=X, y=Y)
    resealed(store.path, settings=settings)
    tracemalloc.start()
    try:
        words = ("kernel", "solve", store.path, store.path.with_name("data.npz"), "--ridge", 1)
        found = nearkernel(*words, "--out", store.path.with_name("a.npz"), code=2)
        assert "settings that no `nearkernel kernel build` writes" in found.stderr
        assert found.stderr.count("\n") == 1 and len(found.stderr) < 500
        assert tracemalloc.get_traced_memory()[1] < 2**27  # depth = 10**9 took 8.7 GB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["zarr.json", "matrix/zarr.json", "x/zarr.json"])
@pytest.mark.parametrize(
    "text", ["", "{", "[1, 2]", "null", "\0\1\2", "[" * 5000, '{"attributes": {"format": 2}}']
)
def test_corrupt_json_costs_one_line(store, name, text):
    (store.path / name).write_text(text)
    for command in ("info", "verify"):
        found = nearkernel("kernel", command, store.path, code=2)
        assert found.stderr.count("\n") == 1
        assert f"{name} is damaged or was not written by nearkernel" in found.stderr
        assert "restore that file from a backup" in found.stderr


FOREIGN = {
    "shape": lambda document: document.update(shape=[131, 131]),
    "codec": lambda document: document.update(codecs=[{"name": "numcodecs.pickle", "configuration": {}}]),
    "inner codec": lambda document: document["codecs"][0]["configuration"]["codecs"].append({"name": "gzip"}),
    "type": lambda document: document.update(data_type="float32"),
    "transformer": lambda document: document.update(storage_transformers=[{"name": "any"}]),
    "another": lambda document: document.update(anything=1),
    "version": lambda document: document.update(zarr_format=2),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_only_what_is_written_here_is_read(store, what):
    rewrite(store.path / "matrix/zarr.json", FOREIGN[what])
    with pytest.raises(ValueError, match=r"matrix/zarr\.json is damaged or was not written by nearkernel"):
        nk.scale.open_store(store.path)


def test_other_formats_are_refused(store, tmp_path):
    for number in (1, 3, "2", None):
        rewrite(store.path / "zarr.json", lambda document, n=number: document["attributes"].update(format=n))
        with pytest.raises(
            ValueError, match=rf"has format {number!r}, but this nearkernel reads format 2: build"
        ):
            nk.scale.open_store(store.path)
    import zarr

    old = zarr.create_group(str(tmp_path / "old.zarr"), zarr_format=2, attributes={"format": 2})
    old.create_array("matrix", shape=(3, 3), dtype="float64", chunks=(3, 3))
    with pytest.raises(ValueError, match="is not a kernel matrix of nearkernel"):
        nk.scale.open_store(tmp_path / "old.zarr")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_zarr_reads_what_is_stored(tmp_path, dtype):
    """By its own rules and checksums."""
    import zarr

    store = nk.scale.build(KERNEL, X, tmp_path / "K.zarr", block=50, dtype=dtype)
    group = zarr.open_group(str(store.path), mode="r")
    matrix = np.asarray(group["matrix"])
    assert np.array_equal(np.asarray(group["x"]), X) and matrix.dtype == dtype
    lower = np.tril_indices(len(X))
    assert np.abs(matrix[lower] - KERNEL(X)[lower]).max() < (1e-14 if dtype == "float64" else 1e-6)
    flip(store._file(1, 0), 100)
    with pytest.raises(ValueError, match="checksum"):
        np.asarray(group["matrix"])


def test_a_store_opened_to_be_read_is_not_written(store):
    with pytest.raises(ValueError, match="was opened for reading only"):
        store.write(0, 0, np.zeros((50, 50)))
