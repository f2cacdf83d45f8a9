"""Run folders: what a training leaves behind. `files` says what lies in one."""

from tsattn.runs.reading import (
    Run,
    TorchPredictor,
    is_finished,
    load_predictor,
    read_card,
    read_config,
    read_run,
    read_split_places,
    record_test,
)
from tsattn.runs.writing import abandon, begin_run, check_free, finish_run, held

__all__ = [
    "Run",
    "TorchPredictor",
    "abandon",
    "begin_run",
    "check_free",
    "finish_run",
    "held",
    "is_finished",
    "load_predictor",
    "read_card",
    "read_config",
    "read_run",
    "read_split_places",
    "record_test",
]
