"""`python -m tsattn` is the console script."""

from tsattn.cli.app import main

main()
