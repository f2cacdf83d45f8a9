"""The trackers of experiments that a training can report to, each through its own library."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from tsattn.config import RunConfig

PROJECT = "tsattn"
"""Where runs are filed, unless MLFLOW_EXPERIMENT_NAME or WANDB_PROJECT says otherwise."""


class Tracker(Protocol):
    """One run as a tracker sees it. It may raise whatever its library raises, at any time.

    identity: what the tracker calls the run, to find it again when the training goes on; '' if it need not.
    """

    identity: str

    def figures(self, figures: Mapping[str, float], epoch: int) -> None:
        """Of an epoch, by their names in history.csv."""

    def end(self, figures: Mapping[str, float]) -> None:
        """Of the whole training, which has come to its end."""

    def close(self) -> None:
        """Nothing more will come; if `end` was not called, the training was stopped."""


@dataclass(frozen=True, kw_only=True)
class Tracking:
    """What a tracker begins with.

    run: the run folder. resumed: the training is gone on with.
    identity: what the tracker called the run before, '' if it has not seen it.
    """

    config: RunConfig
    run: Path
    resumed: bool = False
    identity: str = ""

    @property
    def name(self) -> str:
        """The run folder as a person would say it: the end of its path."""
        return "/".join(self.run.absolute().parts[-2:])

    def settings(self) -> dict[str, str]:
        """The resolved configuration, one value a name such as `training.epochs`."""
        found: dict[str, str] = {}
        for name, value in asdict(self.config).items():
            parts = value.items() if isinstance(value, dict) else [("", value)]
            found |= {f"{name}.{part}".rstrip("."): str(of) for part, of in parts}
        return found


class TensorBoard:
    """Event files in RUN/tensorboard; `tensorboard --logdir runs` shows all runs beside one another."""

    def __init__(self, tracking: Tracking) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.identity = ""
        self._settings = tracking.settings()
        self._open = partial(SummaryWriter, str(tracking.run / "tensorboard"))
        self._writer: SummaryWriter | None = None
        if not tracking.resumed:
            self._writer = self._open()
            shown = "\n".join(f"    {line}" for line in tracking.config.to_yaml().splitlines())
            self._writer.add_text("config", shown)
            self._writer.flush()

    def figures(self, figures: Mapping[str, float], epoch: int) -> None:
        """A scalar each."""
        if self._writer is None:  # epochs reported before a kill that come again leave the curves
            self._writer = self._open(purge_step=epoch)
        for name, value in figures.items():
            self._writer.add_scalar(name, value, epoch)
        self._writer.flush()

    def end(self, figures: Mapping[str, float]) -> None:
        """As final/NAME, and with the configuration as hyperparameters."""
        from torch.utils.tensorboard.summary import hparams

        self._writer = self._writer or self._open()
        named = {f"final/{name}": value for name, value in figures.items()}
        for summary in hparams(self._settings, named):  # the writer's own way begins another run for them
            self._writer._get_file_writer().add_summary(summary)
        for name, value in named.items():
            self._writer.add_scalar(name, value)

    def close(self) -> None:
        """Closes the file."""
        if self._writer is not None:
            self._writer.close()


class MLflow:
    """A run of the experiment `tsattn`, wherever MLFLOW_TRACKING_URI points."""

    def __init__(self, tracking: Tracking) -> None:
        # Its own patience is many minutes a call, during which the program could not end.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
        from mlflow import MlflowClient
        from mlflow.entities import Param

        self._client = MlflowClient()
        self._ended = False
        self.identity = tracking.identity
        if self.identity:
            self._client.update_run(self.identity, status="RUNNING")
            return
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        experiment = self._client.get_experiment_by_name(name)
        place = self._client.create_experiment(name) if experiment is None else experiment.experiment_id
        tags = {"mlflow.source.name": "tsattn", "run_folder": str(tracking.run.absolute())}
        self.identity = self._client.create_run(place, run_name=tracking.name, tags=tags).info.run_id
        params = [Param(name, value or "none") for name, value in tracking.settings().items()]
        self._client.log_batch(self.identity, params=params)

    def figures(self, figures: Mapping[str, float], epoch: int) -> None:
        """A metric each, the epoch being its step."""
        self._log(figures, epoch)

    def end(self, figures: Mapping[str, float]) -> None:
        """As metrics final/NAME."""
        self._log({f"final/{name}": value for name, value in figures.items()}, 0)
        self._ended = True

    def close(self) -> None:
        """The run is finished, or killed where it did not come to its end."""
        self._client.set_terminated(self.identity, status="FINISHED" if self._ended else "KILLED")

    def _log(self, figures: Mapping[str, float], step: int) -> None:
        from mlflow.entities import Metric

        now = round(1000 * time.time())
        self._client.log_batch(
            self.identity, metrics=[Metric(name, value, now, step) for name, value in figures.items()]
        )


class WandB:
    """A run of the project `tsattn`; WANDB_MODE=offline keeps it in the run folder."""

    def __init__(self, tracking: Tracking) -> None:
        import wandb

        self._ended = False
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=tracking.name,
            group=tracking.run.absolute().parent.name,
            config=asdict(tracking.config),
            dir=str(tracking.run),
            id=tracking.identity or None,
            resume="allow",
            settings=wandb.Settings(silent=True, console="off"),
        )
        self.identity: str = self._run.id

    def figures(self, figures: Mapping[str, float], epoch: int) -> None:
        """Logged together, the epoch being the step."""
        self._run.log(dict(figures), step=epoch)

    def end(self, figures: Mapping[str, float]) -> None:
        """Into the summary, as final/NAME."""
        self._run.summary.update({f"final/{name}": value for name, value in figures.items()})
        self._ended = True

    def close(self) -> None:
        """The run is finished, or failed where it did not come to its end."""
        self._run.finish(exit_code=0 if self._ended else 1)


@dataclass(frozen=True)
class Known:
    """A tracker that can be chosen. package: what has to be importable. begin: reports a run to it."""

    package: str
    begin: Callable[[Tracking], Tracker]


TRACKERS: dict[str, Known] = {
    "tensorboard": Known("tensorboard", TensorBoard),
    "mlflow": Known("mlflow", MLflow),
    "wandb": Known("wandb", WandB),
}
"""By the word that --track takes."""
