"""Classify time series with transformers whose attention is chosen by a word."""

import os

__version__ = "0.1.0"

# OpenMP threads that spin while they wait stop each other where the cores are also used by others: a
# training then makes no progress at all. OpenMP reads this once, when torch is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
