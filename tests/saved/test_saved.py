"""Models in files: the same to the last bit, nothing but data inside, and one line for everything else."""

import hashlib
import io
import json
import math
import os
import pickle
import subprocess
import sys
import zipfile

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nearkernel as nk
from nearkernel import estimators
from nearkernel._base.npz import npz_arrays
from nearkernel._saved.codec import Encoder
from nearkernel._saved.file import model_bytes
from public_calls._good import X_NEW, X, Y

METHODS = ("predict", "predict_proba", "decision_function")


def fitted(name):
    y = np.where(Y > 0, "up", "down") if name.endswith("Classifier") else Y
    return getattr(estimators, name)().fit(X, y)


def same_predictions(one, other, x=X_NEW):
    for method in METHODS:
        if hasattr(one, method):
            np.testing.assert_array_equal(getattr(one, method)(x), getattr(other, method)(x), strict=True)


@pytest.mark.parametrize(
    "name", [name for name in estimators.__all__ if hasattr(getattr(estimators, name), "predict")]
)
def test_every_estimator_comes_back_to_the_last_bit(name, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "model.nk")
    again = nk.load(tmp_path / "model.nk")
    assert type(again) is type(model) and repr(again) == repr(model)
    same_predictions(again, model)
    again.save(tmp_path / "again.nk")
    assert (tmp_path / "again.nk").read_bytes() == (tmp_path / "model.nk").read_bytes()


MODELS = {
    "standard deviations": lambda: estimators.NTKRegressor(algorithm=nk.Ridge(0.1)).fit(X, Y),
    "several outputs": lambda: estimators.NNGPRegressor(1, "tanh", noise=0.1).fit(X, np.column_stack([Y, -Y])),
    "a kernel": lambda: estimators.KernelMachine(
        nk.kernels.Laplace(2.0) + 0.1 * nk.kernels.Linear(), nk.GradientFlow(time=3.0)
    ).fit(X, Y),
    "few centers": lambda: estimators.KernelMachine(
        nk.kernels.RBF(1.0), nk.Ridge(0.1), solver=nk.dynamics.Nystrom(centres=3)
    ).fit(X, Y),
    "a pipeline": lambda: make_pipeline(StandardScaler(), estimators.NTKRegressor()).fit(X, Y),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_models_with_parts(name, tmp_path):
    model = MODELS[name]()
    nk.save(model, tmp_path / "model.nk")
    again = nk.load(str(tmp_path / "model.nk"))
    same_predictions(again, model)
    if name == "standard deviations":
        for one, other in zip(model.predict(X_NEW, True), again.predict(X_NEW, True), strict=True):
            np.testing.assert_array_equal(one, other)


def test_another_process_predicts_the_same(tmp_path):
    model = fitted("NTKRegressor")
    model.save(tmp_path / "model.nk")
    np.save(tmp_path / "x.npy", X_NEW)
    program = (
        "import sys, numpy as np, nearkernel as nk\n"
        "np.save(sys.argv[3], nk.load(sys.argv[1]).predict(np.load(sys.argv[2])))\n"
        "import jax; assert not jax.config.jax_enable_x64"
    )
    paths = [str(tmp_path / name) for name in ("model.nk", "x.npy", "found.npy")]
    done = subprocess.run([sys.executable, "-c", program, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "found.npy"), model.predict(X_NEW), rtol=1e-12)


# What cannot be saved


def square(x):
    return x**2


@pytest.mark.parametrize(
    "model, error, match",
    [
        (3, TypeError, "`model` must be a fitted estimator, .*; got 3"),
        (estimators.NTKRegressor, TypeError, "`model` must be a fitted estimator"),
        (estimators.NTKRegressor(), NotFittedError, "not fitted"),
        (LinearRegression().fit(X, Y), TypeError, "`model` of the model is sklearn.*:LinearRegression, which a model"),
        (estimators.NTKRegressor(1, jnp.sin).fit(X, Y), TypeError, "`activation` of NTKRegressor is .* cannot hold"),
        (estimators.QuadraticRegressor(square).fit(X, Y), TypeError, "`features` of QuadraticRegressor is a function"),
    ],
)  # fmt: skip
def test_what_cannot_be_saved_is_said(model, error, match, tmp_path):
    with pytest.raises(error, match=match):
        nk.save(model, tmp_path / "model.nk")
    assert list(tmp_path.iterdir()) == []


def test_moments_cannot_be_saved():
    with pytest.raises(
        TypeError, match=r"`when` of the model holds datetime64\[D\], which a model file cannot hold"
    ):
        Encoder().node(np.array(["2024-01-01"], "datetime64[D]"), "when")


def test_bad_paths(tmp_path):
    model = fitted("DeepLinearBayes")
    for path, error, match in (
        (7, TypeError, "`path` must be the name of a file, e.g. 'model.nk'; got 7"),
        (tmp_path / "no" / "model.nk", ValueError, "the folder .* does not exist"),
        (tmp_path, ValueError, "is a folder: name a file"),
    ):
        with pytest.raises(error, match=match):
            nk.save(model, path)
    with pytest.raises(ValueError, match=r"absent\.nk: no such file"):
        nk.load(tmp_path / "absent.nk")
    with pytest.raises(ValueError, match=r"is a folder"):
        nk.load(tmp_path)
    with pytest.raises(TypeError, match="`path` must be the name of a file"):
        nk.load(None)
    os.mkfifo(tmp_path / "pipe.nk")
    with pytest.raises(ValueError, match=r"pipe\.nk is not a regular file"):
        nk.load(tmp_path / "pipe.nk")


# Strangers' files


def rewritten(tmp_path, change, compress=zipfile.ZIP_STORED):
    """A model file whose document went through `change`, its checksum made right again."""
    data = model_bytes(fitted("DeepLinearBayes"))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(entries["model.json"])
    change(document)
    return packed(tmp_path, entries, json.dumps(document).encode(), compress)


def packed(tmp_path, entries, text, compress=zipfile.ZIP_STORED):
    entries |= {"model.json": text, "model.json.sha256": hashlib.sha256(text).hexdigest().encode()}
    with zipfile.ZipFile(tmp_path / "model.nk", "w", compress) as archive:
        for name, each in entries.items():
            archive.writestr(name, each)
    return tmp_path / "model.nk"


def of_class(text):
    return lambda document: document["model"].update(object=text)


@pytest.mark.parametrize(
    "change, match",
    [
        (lambda d: d.update(version=3), "has format 3; this version reads 1 to 2: install the nearkernel that"),
        (lambda d: d.update(format="other"), "its format has another name"),
        (of_class("os:system"), "it names 'os:system', which is not allowed in a model file"),
        (of_class("nearkernel.cli:main"), "which is not allowed in a model file"),
        (of_class("nearkernel.scale.store:KernelStore"), "which is not allowed in a model file"),
        (of_class("sklearn.pipeline:FeatureUnion"), "which is not allowed in a model file"),
        (of_class("nearkernel.estimators._gone:Gone"), "which is not allowed in a model file"),
        (of_class("nearkernel.estimators.kernel_machine:solve"), "which is not allowed in a model file"),
        (of_class("nearkernel._status:StatusKind"), "does not support"),
        (lambda d: d.update(model={"pickle": "x"}), "it contains 'pickle', which this version does not support"),
        (lambda d: d["model"]["state"].append(["__class__", 1]), "it contains '__class__'"),
        (lambda d: d.update(model={"array": "999"}), "is damaged or not a model file: '999'"),
        (lambda d: d["arrays"].update({"0.npy": "0"}), "the checksum of 0.npy is wrong"),
        (lambda d: d.update(arrays=[]), "its 'arrays' is not an object"),
        (lambda d: d.update(about=None), "its 'about' is not an object"),
        (lambda d: d.update(model=3), "holds no estimator, but 3"),
        (lambda d: d.update(model=math.nan), "holds no estimator, but nan"),
        (lambda d: d.update(model=None), "holds no estimator, but None"),
        (lambda d: d.update(model=[]), "holds no estimator, but "),
        (lambda d: d.update(model={}), "is damaged or not a model file"),
        (lambda d: d.update(model={"float": "x"}), "is damaged or not a model file"),
        (lambda d: d.update(model={"tuple": 3}), "is damaged or not a model file"),
        (lambda d: d.update(model={"same": 3}), "is damaged or not a model file"),
        (lambda d: d.update(model={"activation": "relu"}), "holds no estimator, but "),
    ],
)  # fmt: skip
def test_a_strangers_file_is_refused(change, match, tmp_path):
    with pytest.raises(ValueError, match=match) as caught:
        nk.load(rewritten(tmp_path, change))
    assert "\n" not in str(caught.value)


def array_with_header(header: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64)


@pytest.mark.parametrize(
    "header",
    [
        b"(" * 40 + b"\n",
        b"(" * 9000 + b"\n",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (10**30,), }\n",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000000,), }\n",
        b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': ('a',), }\n",
        b"1e999j\n",
        b"\x00\n",
        b"",
    ],
)
def test_headers_of_arrays_that_python_cannot_read(header, tmp_path):
    data = array_with_header(header)
    document = {"format": "nearkernel model", "version": 1, "about": {}, "model": {"array": "0"}}
    document["arrays"] = {"0.npy": hashlib.sha256(data).hexdigest()}
    path = packed(tmp_path, {"0.npy": data}, json.dumps(document).encode())
    with pytest.raises(ValueError, match=r"model\.nk is damaged or not a model file") as caught:
        nk.load(path)
    assert "\n" not in str(caught.value)
    with zipfile.ZipFile(tmp_path / "data.npz", "w") as archive:
        archive.writestr("x.npy", data)
    with pytest.raises(ValueError, match=r"data\.npz (is damaged|holds Python objects)") as caught:
        npz_arrays(tmp_path / "data.npz", "data.npz", {"x": ""})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [b"[" * 200_000, b"3", b"[]", b"\xff", b"", b"null", b"1" * 9000])
def test_documents_that_are_no_objects(text, tmp_path):
    with pytest.raises(ValueError, match=r"model\.nk is damaged or not a model file") as caught:
        nk.load(packed(tmp_path, {}, text))
    assert "\n" not in str(caught.value)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "model.nk"
    path.write_bytes(pickle.dumps(fitted("DeepLinearBayes")))
    with pytest.raises(ValueError, match=r"is not a model file: write one with `nk\.save`"):
        nk.load(path)
    np.savez(path.with_suffix(".npz"), x=X)
    with pytest.raises(ValueError, match=r"is not a model file: write one with `nk\.save`"):
        nk.load(path.with_suffix(".npz"))
    with pytest.raises(ValueError, match="it is compressed, which model files are not"):
        nk.load(rewritten(tmp_path, lambda d: None, zipfile.ZIP_DEFLATED))


def test_a_changed_byte_is_noticed(tmp_path):
    right = model_bytes(fitted("DeepLinearBayes"))
    path = tmp_path / "model.nk"
    for at in np.random.default_rng(0).integers(len(right), size=60):
        data = bytearray(right)
        data[at] ^= 1 << int(at) % 8
        path.write_bytes(data)
        try:
            model = nk.load(path)
        except ValueError as error:
            assert "\n" not in str(error)
        else:  # a byte that means nothing, such as a date
            np.testing.assert_array_equal(model.predict(X_NEW), fitted("DeepLinearBayes").predict(X_NEW))
