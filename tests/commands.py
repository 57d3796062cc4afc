"""The command line as tests type it."""

from typer.testing import CliRunner

from nearkernel.cli import app


def nearkernel(*words, code: int | None = 0):
    """The result of `nearkernel WORDS`, whose exit code must be `code` (any if None)."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert code is None or result.exit_code == code, result.output + result.stderr
    return result
