"""Many files to many files by the actors of a Ray cluster, each with a session of its own.

    names ─▶ Ray Data: map_batches ─▶ an actor: bring a file, predict it as ever, put the rows there

Each file goes through `predict_files` whole, in one actor, so its rows are those of a local run to the byte.
An output appears when it is whole; a file whose actor died is predicted again by another one.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tsattn.data.columns import TableOptions
from tsattn.errors import CheckFailed, InputError, TsattnError
from tsattn.inference import places
from tsattn.inference.outside import Outside
from tsattn.inference.pipeline import PredictSummary, Wanted, predict_files
from tsattn.inference.session import OnnxPredictor, open_model

MOST_TOLD = 5
"""Files that failed of which a message names the reason."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Where the work is done, and what an actor takes of it.

    address: as `ray.init` takes it; None for RAY_ADDRESS, else this machine. threads: cores an actor takes.
    gpu_share: of a GPU an actor takes, where it computes on one.
    """

    address: str | None = None
    threads: int = 1
    gpu_share: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Work:
    """What every actor does alike; see `predict_files`."""

    options: TableOptions
    wanted: Wanted
    batch_size: int | None
    device: str
    threads: int


class FilePredictor:
    """An actor's callable: rows with the name of a file and of its output → what came of each."""

    def __init__(self, model: bytes, work: Work) -> None:
        self._work = work
        self._scratch = tempfile.TemporaryDirectory(prefix="tsattn-")
        place = Path(self._scratch.name) / "model.onnx"
        place.write_bytes(model)
        self._predictor: OnnxPredictor | None = None
        self._refusal: TsattnError | None = None
        try:
            self._predictor = open_model(place, work.device, work.threads, parallel_calls=True)
        except TsattnError as error:
            self._refusal = error  # told with each file: an actor that cannot begin is begun again and again

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, list[str]]:
        """{"file": names, "output": names} → {"answer": a JSON document each}."""
        pairs = zip(batch["file"], batch["output"], strict=True)
        return {"answer": [json.dumps(self._answer(str(file), str(output))) for file, output in pairs]}

    def _answer(self, file: str, output: str) -> dict[str, Any]:
        with _remarks() as said:
            try:
                if self._predictor is None:
                    assert self._refusal is not None
                    raise self._refusal
                summary = self._predict(self._predictor, file, output)
            except TsattnError as error:
                return {"file": file, "failed": str(error), "code": error.exit_code, "said": said}
        return {
            "file": file,
            "said": said,
            "cases": summary.cases,
            "skipped": summary.skipped,
            "marked": summary.marked,
            "outside": summary.outside.as_dict(),
            "provider": summary.provider,
        }

    def _predict(self, predictor: OnnxPredictor, file: str, output: str) -> PredictSummary:
        work = self._work
        with tempfile.TemporaryDirectory(dir=self._scratch.name) as scratch:
            source = places.brought(file, Path(scratch))
            remote = places.is_remote(output)
            target = Path(scratch) / f"rows{Path(output).suffix}" if remote else Path(output)
            if not remote:
                _made(target.parent)
            summary = predict_files(
                predictor,
                [source],
                target,
                work.options,
                batch_size=work.batch_size,
                wanted=work.wanted,
                threads=work.threads,
            )
            if remote:
                places.delivered(target, output)
        return summary


def predict_with_ray(
    model: Path,
    words: Sequence[str],
    folder: str,
    options: TableOptions,
    *,
    batch_size: int | None,
    wanted: Wanted,
    device: str,
    cluster: Cluster,
    progress: Callable[[int], None] | None = None,
) -> PredictSummary:
    """Classifies every file into one of its own below `folder`; the summary is that of all.

    words: files, patterns and folders, or names with a scheme (see `places`). wanted.resume: what has its
    output already is left as it is. device: auto takes GPUs where the cluster has some.
    InputError for what is wrong with a file, after all others are done; CheckFailed where a device cannot be
    had.
    """
    if not model.is_file():
        raise InputError(f"{model}: --engine ray takes a model file. Make one: `tsattn export onnx {model}`.")
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"--device {device}: Ray gives each actor its GPU. Type auto, cpu or cuda.")
    open_model(model, "cpu")  # what is wrong with it is said here, once
    pairs = places.outputs_of(words, folder, wanted.format or "csv")
    there = [output for _, output in pairs if wanted.resume and places.exists(output)]
    left = [pair for pair in pairs if pair[1] not in set(there)]
    if there:
        logger.warning(
            "%d of %d files have their output already and stay as they are.", len(there), len(pairs)
        )
    began = time.perf_counter()
    done = []
    work = Work(
        options=options,
        wanted=replace(wanted, resume=False),
        batch_size=batch_size,
        device=device,
        threads=cluster.threads,
    )
    if left:
        for answer in _answers(model.read_bytes(), left, work, cluster):
            for sentence in answer["said"]:
                logger.warning("%s", sentence)
            done.append(answer)
            if progress is not None:
                progress(sum(one.get("cases", 0) for one in done))
    _tell([one for one in done if "failed" in one], len(left))
    return PredictSummary(
        sum(one["cases"] for one in done),
        time.perf_counter() - began,
        ", ".join(sorted({one["provider"] for one in done})) or "none",
        None,
        sum(one["skipped"] for one in done),
        sum(one["marked"] for one in done),
        sum((Outside(**one["outside"]) for one in done), Outside()),
    )


def _answers(
    model: bytes, pairs: Sequence[tuple[str, str]], work: Work, cluster: Cluster
) -> Iterator[dict[str, Any]]:
    """What came of each file, as they end."""
    with connected(cluster) as ray:
        resources = ray.cluster_resources()
        gpus = resources.get("GPU", 0)
        on_gpu = work.device == "cuda" or (work.device == "auto" and gpus > 0)
        if work.device == "cuda" and not gpus:
            raise CheckFailed("--device cuda was asked for, and the Ray cluster has no GPU.")
        if not on_gpu:
            work = replace(work, device="cpu")
        cores = resources.get("CPU", 0)
        if cores < cluster.threads:
            raise InputError(
                f"--threads {cluster.threads}: each actor would take as many cores, and the Ray cluster has "
                f"{cores:g}. Type a smaller --threads."
            )
        room = [cores / cluster.threads, gpus / cluster.gpu_share if on_gpu else len(pairs)]
        actors = max(1, min(len(pairs), *map(int, room)))
        rows = ray.data.from_items(
            [{"file": file, "output": output} for file, output in pairs], override_num_blocks=len(pairs)
        )
        answers = rows.map_batches(
            FilePredictor,
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=actors),
            fn_constructor_kwargs={"model": model, "work": work},
            num_cpus=cluster.threads,
            num_gpus=cluster.gpu_share if on_gpu else None,
        )
        for row in answers.iter_rows():
            yield json.loads(row["answer"])


@contextmanager
def connected(cluster: Cluster) -> Iterator[Any]:
    """ray, connected to the cluster, or to one that is begun on this machine and ends with the block."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # what goes on inside Ray is no remark of ours
    # Left to itself Ray would also take a cluster that somebody began on this machine and that may be gone.
    address = cluster.address or os.environ.get("RAY_ADDRESS") or "local"
    try:
        import ray
        import ray.data
    except ImportError:
        raise InputError(
            "--engine ray needs the package ray, which is not installed here. "
            "Type `pip install 'tsattn[ray]'`, here and on every node."
        ) from None
    try:
        with _silence():
            ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(
            f"--address {address}: no Ray cluster answers there ({str(error).splitlines()[0]}). "
            "`ray status` on a node tells its address."
        ) from None
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield ray
    finally:
        ray.shutdown()


@contextmanager
def _silence() -> Iterator[None]:
    """Nothing goes to stderr, not even from native code, which says that it was told to be quiet."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _tell(failed: Sequence[Mapping[str, Any]], files: int) -> None:
    """InputError or CheckFailed with the reasons of files that could not be predicted."""
    if not failed:
        return
    told = [
        one["failed"] if one["file"] in one["failed"] else f"{one['file']}: {one['failed']}" for one in failed
    ]
    more = f" And {len(failed) - MOST_TOLD} more." if len(failed) > MOST_TOLD else ""
    text = f"{len(failed)} of {files} files could not be predicted; the others are written. "
    text += " ".join(told[:MOST_TOLD]) + more
    if all(one["code"] == CheckFailed.exit_code for one in failed):
        raise CheckFailed(text)
    raise InputError(text)


@contextmanager
def _remarks() -> Iterator[list[str]]:
    """What the library says while the block runs, to be told where the command was typed."""
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    library = logging.getLogger("tsattn")
    library.addHandler(handler)
    try:
        yield said
    finally:
        library.removeHandler(handler)


def _made(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder {folder} cannot be made: {error.strerror}. Type another -o.") from None
