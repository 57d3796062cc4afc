"""Labs to ask, and a browser to look at them."""

import os
import shutil

import pytest

from support.labs import ODD, STRICT, listening


@pytest.fixture(scope="module")
def lab():
    with listening() as address:
        yield address


@pytest.fixture(scope="module")
def odd():
    """A lab whose experiments misbehave as `odd_worker.py` says, with strict limits."""
    with listening(command=ODD, limits=STRICT) as address:
        yield address


@pytest.fixture(scope="session")
def chromium():
    """Where the browser is. Its tests are skipped where there is none, but not where nobody would notice."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        give_up = pytest.fail if os.environ.get("CI") else pytest.skip
        give_up("no Chromium here: `make browser` installs it where it can")
    return found


@pytest.fixture(scope="session")
def browser(chromium):
    from playwright.sync_api import sync_playwright

    quiet = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-component-update"]  # fmt: skip
    with sync_playwright() as tools:
        opened = tools.chromium.launch(executable_path=chromium, args=quiet)
        yield opened
        opened.close()
