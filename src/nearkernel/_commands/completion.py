"""What the shell may complete. Looked up at every press of a key, so nothing heavy is imported."""

from collections.abc import Callable
from pathlib import Path

ACTIVATIONS = (
    "relu", "tanh", "erf", "gelu", "silu", "sin", "cos", "sigmoid", "softplus", "gaussian", "leaky_relu", "abs",
    "linear", "mish", "swish", "elu", "selu", "monomial(2)", "monomial(3)",
)  # fmt: skip
KINKED = ("relu", "leaky_relu", "abs", "selu")  # those with `kinks`: to ask them would import JAX
DATA_SETS = ("digits", "diabetes", "breast_cancer", "wine", "iris")


def _among(words: Callable[[], list[str]]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [word for word in words() if word.startswith(incomplete)]

    return complete


def _claims() -> list[str]:
    """The names of all claims, by the names of their files."""
    files = sorted((Path(__file__).parents[1] / "claims").glob("[!_]*/[!_]*.py"))
    return [path.stem.replace("_", "-") for path in files]


activations = _among(lambda: [name for name in ACTIVATIONS if "(" not in name])
smooth_activations = _among(lambda: [name for name in ACTIVATIONS if "(" not in name and name not in KINKED])
data_sets = _among(lambda: list(DATA_SETS))
claims = _among(_claims)


def script(shell: str) -> str:
    """What `shell` must run to complete `nearkernel`."""
    from typer.completion import get_completion_script

    return (
        get_completion_script(prog_name="nearkernel", complete_var="_NEARKERNEL_COMPLETE", shell=shell) + "\n"
    )
