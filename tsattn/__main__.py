"""`python -m tsattn` is the console script."""

from tsattn.cli.app import main

if __name__ == "__main__":
    main()
