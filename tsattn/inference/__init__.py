"""Classify files with a trained model: read ahead, infer, write. Imports neither torch nor aeon."""
