"""Trials of engines, each in a process of its own: an engine that crashes or hangs then harms nobody.

    python -m tsattn.doctor.trials ANSWER.json torch
    python -m tsattn.doctor.trials ANSWER.json onnxruntime CUDAExecutionProvider

What a trial found is written to the file, because engines write to stdout as they like.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PATIENCE = 180.0
"""Seconds; building an engine for TensorRT takes tens of them."""


def tried(*words: str) -> dict[str, Any]:
    """What the trial found, or `{"failed": why}`, and the seconds it took as `took`."""
    with tempfile.TemporaryDirectory() as scratch:
        answer = Path(scratch) / "answer.json"
        command = [sys.executable, "-m", "tsattn.doctor.trials", str(answer), *words]
        began = time.perf_counter()
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            return {"failed": f"no answer within {PATIENCE:.0f} s", "took": PATIENCE}
        took = round(time.perf_counter() - began, 1)
        found: dict[str, Any] = {"failed": _last_words(done)}
        if answer.exists():
            found = json.loads(answer.read_text("utf-8"))
    return {**found, "took": took}


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode < 0:
        return f"the process was ended by {signal.Signals(-done.returncode).name}"
    return next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no answer").strip()


def main(answer: Path, engine: str, *words: str) -> None:
    """Tries one engine in this process and writes what was found."""
    if engine == "torch":
        from tsattn.doctor.torch_trial import try_torch

        found = try_torch()
    else:
        from tsattn.doctor.onnx_trial import onnxruntime_here, try_provider

        found = try_provider(*words) if words else onnxruntime_here()
    draft = answer.with_suffix(".part")
    draft.write_text(json.dumps(found), "utf-8")
    os.replace(draft, answer)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
