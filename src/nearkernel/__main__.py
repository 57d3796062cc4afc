"""`nearkernel`, the program, which is also `python -m nearkernel`."""

import sys

from ._base.extra import MissingExtra, needing
from ._run.interrupt import run_program


def _command_line() -> None:
    try:
        with needing("the command line"):
            from .cli import main  # here, since loading it can already be interrupted
    except MissingExtra as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    main()


def main() -> None:
    run_program(_command_line)


if __name__ == "__main__":
    main()
