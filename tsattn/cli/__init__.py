"""The command line, one file a command: parse, call one workflow, draw what it returns.

Commands import their workflow inside their body, so that `tsattn --help` and shell completion
cost no more than typer alone.
"""
