"""`nearkernel`, the program, which is also `python -m nearkernel`."""

from ._interrupt import run_program


def _command_line() -> None:
    from .cli import main  # here, since loading it can already be interrupted

    main()


def main() -> None:
    run_program(_command_line)


if __name__ == "__main__":
    main()
