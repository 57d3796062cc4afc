"""The command line as tests type it."""

import re

from typer.testing import CliRunner

from nearkernel.cli import app


def nearkernel(*words, code: int | None = 0):
    """The result of `nearkernel WORDS`, whose exit code must be `code` (any if None)."""
    result = CliRunner().invoke(app, [str(word) for word in words], prog_name="nearkernel")
    assert code is None or result.exit_code == code, result.output + result.stderr
    return result


def self_contained(page: str) -> None:
    """A report asks for no other file, runs nothing, and suits light and dark."""
    addresses = re.findall(r"(?:src|href)\s*=\s*[\"']([^\"']*)|url\(([^)]*)\)|@import", page)
    assert all(address.startswith(("#", "data:")) for pair in addresses for address in pair if address)
    assert "<script" not in page and "prefers-color-scheme" in page and "How to make this again" in page
