"""Series in: every source a user has becomes one Collection. Imports neither torch nor aeon."""
