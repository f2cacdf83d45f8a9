"""Sweeps: data sets × methods × seeds, each cell a folder and a process of its own; see `cell`."""
