"""Writing run folders: they appear whole, and end whole.

`begin_run` puts the folder there with all that is decided; `finish_run` adds what training came to, the
weights last, and takes the state away. A kill between the two leaves a folder that training goes on with.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from safetensors.torch import save
from torch import Tensor

from tsattn.card import ModelCard
from tsattn.config import RunConfig
from tsattn.errors import InputError
from tsattn.models.attention import foreign
from tsattn.runs.files import (
    CARD_KEY,
    CONFIG,
    ENVIRONMENT,
    HISTORY,
    MEMBERS,
    METRICS,
    SPLIT,
    STATE,
    TRACKING,
    WEIGHTS,
)
from tsattn.runs.members import Settled

LOCK = "lock"


def check_free(path: Path) -> None:
    """InputError where a run folder cannot be written at `path`, before any work is done."""
    try:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InputError(
                f"{path}: its training has not ended. `tsattn train --resume {path}` goes on with it; "
                "or choose another folder with --out."
                if (path / STATE).is_dir()
                else f"{path}: exists already and is not empty. Choose another folder with --out."
            )
        parent = next(folder for folder in path.absolute().parents if folder.exists())
        Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=parent)).rmdir()
    except OSError as error:
        raise _not_writable(path, error) from None


def begin_run(
    path: Path, *, config: RunConfig, split: Mapping[str, Any], environment: Mapping[str, Any]
) -> None:
    """Puts a folder there in which a training can be stopped and resumed. InputError where it cannot be."""
    check_free(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise _not_writable(path, error) from None
    try:
        (draft / STATE).mkdir()
        (draft / CONFIG).write_text(config.to_yaml(), "utf-8")
        for code in config.code:
            if code.file:
                (draft / code.file).parent.mkdir(exist_ok=True)
                (draft / code.file).write_bytes(foreign.content_of(code))
        for name, content in ((SPLIT, split), (ENVIRONMENT, environment)):
            (draft / name).write_text(_json(content), "utf-8")
        draft.chmod(0o755)
        if path.exists():  # empty, or check_free would have refused it
            path.rmdir()
        draft.replace(path)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise _not_writable(path, error) from None
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def abandon(path: Path) -> None:
    """Takes away the folder of a training that left nothing to go on with."""
    shutil.rmtree(path, ignore_errors=True)


def finish_run(
    path: Path,
    *,
    card: ModelCard,
    weights: Mapping[str, Tensor],
    history: Sequence[Any],
    metrics: Mapping[str, Any],
) -> None:
    """Adds what the training came to and takes its state away.

    history: dataclass instances of one type, an epoch each. InputError where that cannot be written; the
    state then stays.
    """
    table = io.StringIO(newline="")
    rows = csv.writer(table)
    rows.writerow([field.name for field in dataclasses.fields(history[0])])
    rows.writerows(dataclasses.astuple(epoch) for epoch in history)
    tensors = {name: value.detach().cpu().contiguous() for name, value in weights.items()}
    try:
        _replace(path / HISTORY, table.getvalue().encode())
        _replace(path / METRICS, _json(metrics).encode())
        _replace(path / WEIGHTS, save(tensors, metadata={CARD_KEY: card.to_json()}))
    except OSError as error:
        raise InputError(
            f"{path}: what was trained cannot be written ({error.strerror or error}). Make room and write it "
            f"with `tsattn train --resume {path}`."
        ) from None
    shutil.rmtree(path / STATE, ignore_errors=True)


def write_members(
    folder: Path, names: Sequence[str], *, ensemble: bool, settled: Settled | None = None
) -> None:
    """Notes which runs a folder holds, whether they are one model together and what settled it."""
    content: dict[str, Any] = {"format": 1, "ensemble": ensemble, "members": list(names)}
    if settled is not None:
        content["settled"] = dataclasses.asdict(settled)
    try:
        _replace(folder / MEMBERS, _json(content).encode())
    except OSError as error:
        raise _not_writable(folder, error) from None


def note_tracking(path: Path, identities: Mapping[str, str]) -> None:
    """Notes what trackers call this run. InputError where that cannot be written."""
    try:
        _replace(path / TRACKING, _json(identities).encode())
    except OSError as error:
        raise _not_writable(path, error) from None


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Keeps a run for this process alone; InputError where another one has it. A killed process lets go."""
    try:
        (path / STATE).mkdir(exist_ok=True)
        lock = FileLock(path / STATE / LOCK, timeout=0)
        lock.acquire()
    except Timeout:
        raise InputError(f"{path}: another process is training it. Wait for it, or stop it first.") from None
    except OSError as error:
        raise _not_writable(path, error) from None
    try:
        yield
    finally:
        lock.release()


def _replace(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all."""
    draft = path.with_name(f".{path.name}.part")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _not_writable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"{path}: the run folder cannot be written ({error.strerror or error}). Choose another with --out."
    )
