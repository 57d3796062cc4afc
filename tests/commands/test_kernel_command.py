"""`nearkernel kernel` as it is typed."""

import json

import numpy as np
import pytest

import nearkernel as nk
from support.commands import nearkernel

rng = np.random.default_rng(1)
X, X_NEW = rng.normal(size=(350, 4)), rng.normal(size=(5, 4))
Y = np.sin(X[:, 0])
BUILD = ("build", "data.npz", "--kernel", "rbf", "--length", "2", "--out", "K.zarr")


@pytest.fixture(autouse=True)
def folder(inside_an_empty_folder):
    np.savez("data.npz", x=X, y=Y, x_new=X_NEW)
    return inside_an_empty_folder


def typed(*words: str):
    return nearkernel("kernel", *words, code=None)


def test_build_info_verify_solve():
    done = typed(*BUILD, "--memory", "1MiB")
    assert done.exit_code == 0 and "blocks of a 350 x 350 matrix" in done.stdout
    about = json.loads(typed("info", "K.zarr", "--json").stdout)
    assert about["kernel"] == "RBF(length=2.0)" and about["blocks_there"] == about["blocks"] > 1
    assert "350 x 350 float64" in typed("info", "K.zarr").stdout
    assert typed("verify", "K.zarr").exit_code == 0
    solved = typed("solve", "K.zarr", "data.npz", "--ridge", "0.1", "--tol", "1e-9")
    assert solved.exit_code == 0 and "converged in" in solved.stdout
    with np.load("coefficients.npz") as found:
        expected = nk.solve(nk.kernels.RBF(2.0), X, Y, nk.Ridge(0.1))
        assert np.abs(found["coefficients"] - expected.coefficients[:, 0]).max() < 1e-6
        assert np.abs(found["prediction"] - expected.predict(X_NEW).mean).max() < 1e-6
        assert json.loads(str(found["about"]))["relative_residual"] <= 1e-9


def test_verify_says_what_is_wrong_and_build_mends_it(folder):
    typed(*BUILD, "--memory", "1MiB")
    file = folder / "K.zarr/matrix/c/1/0"
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(content)
    (folder / "K.zarr/matrix/c/1/1").unlink()
    found = typed("verify", "K.zarr")
    assert (
        found.exit_code == 1
        and "block 1, 0: damaged" in found.stdout
        and "block 1, 1: missing" in found.stdout
    )
    bad = json.loads(typed("verify", "K.zarr", "--json").stdout)["bad"]
    assert [entry["what"] for entry in bad] == ["damaged", "missing"]
    assert typed("solve", "K.zarr", "data.npz", "--ridge", "1").exit_code == 2
    assert typed(*BUILD).exit_code == 0 and typed("verify", "K.zarr").exit_code == 0


@pytest.mark.parametrize("kernel", ["ntk", "nngp", "laplace"])
def test_every_kernel_is_made_again_from_its_store(kernel):
    length = ("--length", "3") if kernel == "laplace" else ("--depth", "2", "--activation", "erf")
    assert typed("build", "data.npz", "--kernel", kernel, *length, "--out", "K.zarr").exit_code == 0
    solved = typed("solve", "K.zarr", "data.npz", "--ridge", "0.5", "--json")
    about = json.loads(solved.stdout)
    assert about["ok"] and about["status_kind"] == "converged" and "converged in" in about["status"]


def test_a_tolerance_out_of_reach_gives_exit_code_1_and_the_coefficients(folder):
    typed(*BUILD)
    found = typed("solve", "K.zarr", "data.npz", "--ridge", "1e-9", "--tol", "1e-15", "--max-iterations", "3")
    assert found.exit_code == 1 and "not converged" in found.stdout and (folder / "coefficients.npz").exists()


def test_interrupted_it_keeps_what_is_done(monkeypatch):
    from nearkernel.scale import store as _store

    write, count = _store.KernelStore.write, []

    def interrupted(self, i, j, block):
        count.append((i, j))
        if len(count) == 3:
            raise KeyboardInterrupt
        write(self, i, j, block)

    monkeypatch.setattr(_store.KernelStore, "write", interrupted)
    found = typed(*BUILD, "--memory", "500kB")
    assert found.exit_code == 130 and "the same command resumes" in found.stderr
    monkeypatch.undo()


@pytest.mark.parametrize(
    "words, match",
    [
        (("build", "none.npz", *BUILD[2:]), "none.npz: no such file"),
        (("build", "data.npz", "--kernel", "rbf", "--out", "K.zarr"), "--kernel rbf needs --length"),
        (("build", "data.npz", "--kernel", "ntk", "--length", "1", "--out", "K.zarr"), "--length belongs to"),
        (
            ("build", "data.npz", "--kernel", "rbf", "--length", "-1", "--out", "K.zarr"),
            "--length -1.0: give",
        ),
        (
            ("build", "data.npz", "--kernel", "rbf", "--length", "1", "--depth", "2", "--out", "K.zarr"),
            "--depth belongs to --kernel ntk or nngp, not rbf",
        ),
        (
            (
                "build",
                "data.npz",
                "--kernel",
                "laplace",
                "--length",
                "1",
                "--bias-var",
                "0",
                "--out",
                "K.zarr",
            ),
            "--bias-var belongs to --kernel ntk or nngp, not laplace",
        ),
        (
            ("plan", "--n", "100", "--d", "3", "--kernel", "rbf", "--activation", "relu"),
            "--activation belongs to --kernel ntk or nngp, not rbf",
        ),
        (("build", "data.npz", "--kernel", "cubic", "--out", "K.zarr"), "--kernel cubic: "),
        (
            ("build", "data.npz", "--kernel", "ntk", "--activation", "rleu", "--out", "K.zarr"),
            "Did you mean 'relu'",
        ),
        ((*BUILD, "--memory", "lots"), "`--memory` must be a size"),
        ((*BUILD, "--scheduler", "nowhere"), "no Dask scheduler responds"),
        (("info", "none.zarr"), "none.zarr does not exist"),
        (("verify", "data.npz"), "is not a kernel matrix"),
    ],
)
def test_bad_input_costs_one_line(folder, words, match, monkeypatch):
    from nearkernel._run import cluster as _cluster

    monkeypatch.setattr(_cluster, "_TIMEOUT", 1)
    found = typed(*words)
    assert found.exit_code == 2 and match in found.stderr and found.stderr.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["data.npz"]


def test_a_matrix_of_a_program_is_solved_there():
    nk.scale.build(nk.kernels.RBF(1.0), X, "K.zarr")
    found = typed("solve", "K.zarr", "data.npz", "--ridge", "1")
    assert found.exit_code == 2 and "this matrix was made by a Python program, which defines" in found.stderr


def test_data_without_targets_and_stores_of_other_data():
    typed(*BUILD)
    np.savez("bare.npz", x=X)
    assert "has no array 'y'" in typed("solve", "K.zarr", "bare.npz", "--ridge", "1").stderr
    np.savez("other.npz", x=X + 1, y=Y)
    assert "made from other data" in typed("solve", "K.zarr", "other.npz", "--ridge", "1").stderr
    assert "made from other data" in typed("build", "other.npz", *BUILD[2:]).stderr
    assert "--out a.csv" in typed("solve", "K.zarr", "data.npz", "--ridge", "1", "--out", "a.csv").stderr
