"""Classify time series with transformers whose attention is chosen by a word."""

__version__ = "0.1.0"
