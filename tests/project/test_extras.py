"""What is installed is enough: imports are declared, extras may be absent, and a missing one costs one line."""

import ast
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from nearkernel._base.extra import EXTRAS, MissingExtra, needing, require

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/nearkernel"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Imported only where the caller's own object comes from there, so it is installed.
GUESTS = {"IPython", "flax", "keras", "openpyxl"}  # without openpyxl, a file of Excel costs one line
PACKAGES = {"sklearn": "scikit-learn", "google_crc32c": "google-crc32c", "distributed": "dask"}
# Commands and the lab are imported as a whole behind `needing` of __main__.py, cli.py and lab/server/serve.py;
# what traces a PyTorch module, behind that of nk.from_torch.
BEHIND_A_GATE = re.compile(r"cli\.py|_commands/|lab/|models/interop/torch_trace\.py")


def declared(names: list[str]) -> set[str]:
    """Names of packages in a list of requirements, extras of our own left out."""
    found = {re.match(r"[\w-]+", name)[0].lower() for name in names}
    return found - {"nearkernel"}


def imports():
    """(file, top-level module, whether it is for types only, whether `needing` is around it), line by line."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield from _imports(ast.parse(path.read_text(encoding="utf-8")), path.relative_to(SOURCE).as_posix())


def _imports(node, path, typing=False, gated=False):
    for child in ast.iter_child_nodes(node):
        names = []
        if isinstance(child, ast.Import):
            names = [each.name for each in child.names]
        elif isinstance(child, ast.ImportFrom) and child.level == 0:
            names = [child.module]
        for name in names:
            module = name.partition(".")[0]
            if module not in sys.stdlib_module_names and module != "nearkernel":
                yield path, module, typing, gated
        for_types = typing or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test))
        within = gated or (
            isinstance(child, ast.With)
            and any(ast.unparse(item).startswith("needing(") for item in child.items)
        )
        yield from _imports(child, path, for_types, within)


def test_every_import_is_declared():
    core = declared(PROJECT["dependencies"])
    extras = {name for names in EXTRAS.values() for name in names}
    for path, module, typing, gated in imports():
        if module in GUESTS or typing:
            continue
        if module in extras:
            assert gated or BEHIND_A_GATE.match(path), f"{path} imports {module} without `needing`"
        else:
            assert PACKAGES.get(module, module) in core, f"{path} imports {module}: not in `dependencies`"


def test_the_table_of_extras_is_that_of_the_project():
    optional = PROJECT["optional-dependencies"]
    for extra, modules in EXTRAS.items():
        assert declared(optional[extra]) == {PACKAGES.get(name, name) for name in modules}, extra
    assert set(optional) == {*EXTRAS, "all", "docs", "dev"}
    assert all(f"nearkernel[{','.join(EXTRAS)}]" == name for name in optional["all"])
    used = {module for _, module, _, _ in imports()}
    assert {name for names in EXTRAS.values() for name in names} - used == {
        "dask",
        "plotly",
    }  # read, not imported


def test_a_missing_package_is_named_and_others_are_left_alone():
    with pytest.raises(
        MissingExtra, match=r"^plot\(\) needs matplotlib: pip install 'nearkernel\[plot\]'\.$"
    ):
        with needing("plot()"):
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib.pyplot")
    with pytest.raises(ModuleNotFoundError, match="nowhere"), needing("plot()"):
        import nowhere  # noqa: F401
    require("plotly", "the lab")


# Runs where no extra is installed: a finder in front of all others says so.
WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


def run_without(absent, code, *args):
    whole = WITHOUT.format(absent=set(absent)) + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", whole, *args], capture_output=True, text=True)


def test_core_works_without_any_extra(tmp_path):
    code = """
        import jax, numpy as np, nearkernel as nk
        x = np.linspace(-1, 1, 8)[:, None]
        y = np.sin(3 * x[:, 0])
        net = nk.MLP(in_dim=1, widths=(32,), activation="erf", weight_var=2.0, bias_var=0.2)
        law = nk.forecast(net, x, y, nk.GradientFlow(), x)
        assert np.allclose(law.mean, y, atol=1e-3)
        descent = nk.GradientDescent(lr=0.05, steps=10)
        assert nk.simulate(net, net.init(jax.random.key(0)), x, y, descent).status.ok
        assert nk.solve(nk.kernels.RBF(1.0), x, y, nk.Ridge(1e-3)).ok
        assert nk.estimators.KernelMachine().fit(x, y).score(x, y) > 0.9
        assert nk.estimators.PrepareTable().fit_transform(x).shape == (8, 1)
        assert nk.claims.find("sawtooth").statement and nk.geometry and nk.scale and nk.statistics

        def line(call):
            try:
                call()
            except ImportError as error:
                print(error)

        line(law.plot)
        line(lambda: nk.scale.build(nk.kernels.RBF(1.0), x, sys.argv[1] + "/K.zarr"))
        line(lambda: nk.scale.build(nk.kernels.RBF(1.0), x, sys.argv[1] + "/K.zarr", scheduler="tcp://127.0.0.1:1"))
        line(lambda: nk.estimators.PrepareTable().fit({"a": [1, 2]}))
        line(lambda: nk.from_torch(None, x))
        line(lambda: nk.Optax(None, steps=1))
        from nearkernel.__main__ import main
        sys.argv = ["nearkernel", "predict", "iris"]
        main()
    """
    run = run_without((name for names in EXTRAS.values() for name in names), code, str(tmp_path))
    assert run.stdout.splitlines() == [
        "plot() needs matplotlib: pip install 'nearkernel[plot]'.",
        "a kernel matrix on disk needs zarr: pip install 'nearkernel[scale]'.",
        "`scheduler` needs distributed: pip install 'nearkernel[scale]'.",
        "a table of named columns or text needs pyarrow: pip install 'nearkernel[cli]'.",
        "nk.from_torch needs torch: pip install 'nearkernel[torch]'.",
        "nk.Optax needs optax: pip install 'nearkernel[optax]'.",
    ], run.stdout + run.stderr
    # Before it, JAX's compiler may complain of programs kept from another run.
    last = run.stderr.splitlines()[-1]
    assert last == "error: the command line needs typer: pip install 'nearkernel[cli]'."
    assert run.returncode == 2


@pytest.mark.parametrize(
    ("words", "package", "extra"),
    [
        (["lab", "--no-browser"], "starlette", "lab"),
        (["lab", "--no-browser"], "plotly", "lab"),
        (["advise", "--depth", "3"], "matplotlib", "plot"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else value,
)
def test_a_command_without_its_extra_costs_one_line(words, package, extra, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = run_without([package], "from nearkernel.__main__ import main\nmain()", *words)
    line = f"error: nearkernel {words[0]} needs {package}: pip install 'nearkernel[{extra}]'."
    assert run.stderr == f"{line}\n"
    assert run.returncode == 2 and run.stdout == ""
