"""The package as a stranger meets it: README, versions, spelling, what is built, the wheel in an empty environment."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

import nearkernel as nk

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROSE = [*ROOT.glob("*.md"), ROOT / "benchmarks/README.md", *(ROOT / "docs").rglob("*.md")]
_FENCED = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
# British forms of words that stand in these pages; `make lint` looks for misspelled words by codespell.
BRITISH = re.compile(
    r"\b(behaviour\w*|centres?|colour\w*|favour\w*|grey|honour\w*|learnt|licence|neighbour\w*|labelled|modelled|modelling"
    r"|\w*(?:initial|normal|optim|regular|general|standard|parametr|linear|real|minim|maxim|summar|vector|factor)is"
    r"(?:e|ed|es|ing|ation|ations))\b",
    re.IGNORECASE,
)


def script(path: str):
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def between(text: str, name: str) -> str:
    return re.search(rf"<!-- {name}: begin -->\n(.*?)<!-- {name}: end -->", text, re.DOTALL)[1]


def test_the_readme_is_read_in_five_minutes():
    assert len(README.split()) <= 700  # as `wc -w` counts
    for needed in (
        "pip install 'nearkernel[cli]'",
        "nearkernel predict houses.csv --target price",
        "make run",
        "make lab",
        "make test",
        "## Limits",
    ):
        assert needed in README


def test_the_readme_and_the_guide_show_the_same_measurement():
    table = between(README, "advised")
    assert table == between((ROOT / "docs/guides/initialize.md").read_text(encoding="utf-8"), "advised")
    assert re.findall(r"\d ± \d", table)


def test_words_are_spelled_in_american_english():
    for page in PROSE:
        text = _FENCED.sub(" ", page.read_text(encoding="utf-8"))
        assert not [found[0] for found in BRITISH.finditer(text)], page.relative_to(ROOT)


def test_british_forms_alone_are_found():
    assert BRITISH.findall("the colours of learnt initialisations") == [
        "colours",
        "learnt",
        "initialisations",
    ]
    assert not BRITISH.search("advised, raised, precise, a comparison of noise, otherwise; centers of gray")


def test_one_version_everywhere():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", changes, re.MULTILINE)
    assert [version for version, _ in released] == ["0.2.0", "0.1.0"] and released[0][0] == nk.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {nk.__version__}\n" in citation and f"\ndate-released: {released[0][1]}\n" in citation


def test_links_of_the_readme_lead_somewhere_from_an_index():
    pytest.importorskip("hatchling")
    for_an_index = script("hatch_build.py").for_an_index
    alone = for_an_index(README, "")
    assert not re.search(r"\]\((?!https?:)", alone) and "![" not in alone and "Five minutes" in alone
    hosted = for_an_index(README, "https://host.example/nearkernel/blob/v1")
    assert "](https://host.example/nearkernel/blob/v1/docs/quickstart.md)" in hosted
    assert "](https://host.example/nearkernel/blob/v1/docs/figures/band.png?raw=true)" in hosted
    assert not re.search(r"\]\((?!https?:)", hosted)


def test_the_source_distribution_has_what_its_tests_need(tmp_path):
    sdist = pytest.importorskip("hatchling.builders.sdist")
    (path,) = sdist.SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode == 0:  # an unpacked source distribution has no history
        wanted = {name for name in tracked.stdout.split("\n") if name and not name.startswith(".")}
        assert not wanted - names
    assert {"PKG-INFO", "Makefile", "constraints.txt", "tests/conftest.py", "benchmarks/README.md"} <= names
    assert not [
        name for name in names if re.match(r"\.|out/|site/|.*__pycache__", name) and name != ".gitignore"
    ]


# What each extra must be able to do, in an environment that has nothing else.
PARTS = {
    "": """
        import numpy as np, nearkernel as nk
        x = np.linspace(-1, 1, 6)[:, None]
        net = nk.MLP(in_dim=1, widths=(16,), activation="relu", weight_var=2.0, bias_var=0.1)
        law = nk.forecast(net, x, x[:, 0], nk.GradientFlow(), x)
        assert np.allclose(law.mean, x[:, 0], atol=1e-3)
        assert nk.estimators.KernelMachine().fit(x, x[:, 0]).score(x, x[:, 0]) > 0.9
        try:
            law.plot()
        except ImportError as error:
            assert "nearkernel[plot]" in str(error)
        else:
            raise AssertionError("Matplotlib came along")
    """,
    "plot": """
        import matplotlib; matplotlib.use("Agg")
        import numpy as np, nearkernel as nk
        x = np.linspace(-1, 1, 6)[:, None]
        nk.solve(nk.kernels.RBF(1.0), x, x[:, 0], nk.Ridge(0.1)).plot().figure.savefig("fit.png")
    """,
    "cli": """
        import subprocess, sys
        from pathlib import Path
        program = str(Path(sys.executable).with_name("nearkernel"))
        Path("table.csv").write_text("a,b,y\\n" + "".join(f"{i},{i % 5},{i / 3}\\n" for i in range(40)))
        subprocess.run([program, "predict", "table.csv", "--target", "y", "--save", "model.nk"], check=True)
        assert Path("out/report.html").exists() and Path("model.nk").exists()
    """,
    "scale": """
        import numpy as np, nearkernel as nk
        x = np.random.default_rng(0).normal(size=(50, 2))
        store = nk.scale.build(nk.kernels.RBF(1.0), x, "K.zarr")
        assert np.allclose(store.read(0, 0), nk.kernels.RBF(1.0)(x))
    """,
    "optax": """
        import numpy as np, optax, nearkernel as nk
        x = np.linspace(-1, 1, 6)[:, None]
        net = nk.MLP(in_dim=1, widths=(16,), activation="tanh")
        run = nk.simulate(net, net.init(0), x, x[:, 0], nk.Optax(optax.adam(1e-2), steps=50))
        assert run.history["loss"][-1] < run.history["loss"][0]
    """,
    "torch": """
        import numpy as np, torch, nearkernel as nk
        module = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        x = np.random.default_rng(0).normal(size=(4, 3))
        model, params = nk.from_torch(module, torch.zeros(2, 3))
        with torch.no_grad():
            wanted = module.double()(torch.from_numpy(x)).numpy()
        assert np.allclose(model(params, x), wanted, atol=1e-6)
    """,
    "all": """
        import importlib, subprocess, sys
        from pathlib import Path
        import nearkernel as nk
        from nearkernel._base.extra import EXTRAS
        for modules in EXTRAS.values():
            for name in modules:
                importlib.import_module(name)
        program = str(Path(sys.executable).with_name("nearkernel"))
        for command in ("predict", "lab", "kernel", "claims"):
            subprocess.run([program, command, "--help"], check=True, capture_output=True)
    """,
    "lab": """
        import subprocess, sys, urllib.request, json
        from pathlib import Path
        program = str(Path(sys.executable).with_name("nearkernel"))
        lab = subprocess.Popen([program, "lab", "--no-browser", "--json"], stdout=subprocess.PIPE, text=True)
        try:
            lines = ""
            while not lines.rstrip().endswith("}"):
                assert lab.poll() is None
                lines += lab.stdout.readline()
            address = json.loads(lines)["address"]
            for page in ("", "plotly.js", "static/look.css", "api/experiments"):
                assert urllib.request.urlopen(address + page, timeout=120).status == 200
        finally:
            lab.terminate()
            lab.wait()
    """,
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(build, check=True)
    return next(folder.glob("*.whl"))


@pytest.mark.slow
@pytest.mark.parametrize("extra", PARTS, ids=lambda extra: extra or "core")
def test_the_wheel_runs_in_an_empty_environment(extra, wheel, tmp_path):
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env/bin/python"
    wanted = f"nearkernel[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
    pip = [python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    # What another test may have put on the path would count as installed.
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    pip += ["-c", ROOT / "constraints.txt"]
    if extra in ("torch", "all"):
        got = subprocess.run([*pip, "torch"], capture_output=True, text=True, env=clean)
        if got.returncode:
            said = got.stderr.strip().rpartition("\n")[2]
            pytest.skip(f"PyTorch cannot be installed here, so nearkernel[{extra}] is not tried: {said}")
    subprocess.run([*pip, wanted], check=True, env=clean)
    program = tmp_path / "part.py"
    program.write_text("\n".join(line[8:] for line in PARTS[extra].split("\n")))
    subprocess.run(
        [python, program], check=True, cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    )
    shutil.rmtree(tmp_path / "env")  # most of a gigabyte
