"""The console script, and `python -m tsattn`."""

import sys


def main() -> None:
    """Runs the command line; a Ctrl-C while it is still being loaded leaves like a later one, with 130."""
    try:
        from tsattn.cli.app import main as command_line
    except KeyboardInterrupt:
        sys.exit(130)
    command_line()


if __name__ == "__main__":
    main()
