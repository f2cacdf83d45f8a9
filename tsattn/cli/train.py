"""`tsattn train`: a source in, a run folder out."""

from __future__ import annotations

from typing import Any

import typer

from tsattn.cli.options import (
    AllowCode,
    AsJson,
    Device,
    GroupColumn,
    IdColumn,
    LabelColumn,
    LabelPattern,
    LabelsFile,
    Layout,
    Registry,
    TimeColumn,
)
from tsattn.cli.recipe_options import (
    Augment,
    Averaging,
    ClassWeight,
    Compile,
    Convolutions,
    Dropout,
    EnsembleFlag,
    LabelSmoothing,
    Normalise,
    Optimiser,
    Patience,
    Pretrained,
    PrintConfig,
    ProtocolWord,
    Resume,
    Sampling,
    Schedule,
    Seeds,
    StochasticDepth,
    Track,
)
from tsattn.cli.train_options import (
    Attention,
    Epochs,
    HeadCount,
    Layers,
    LearningRate,
    Out,
    Preset,
    Resample,
    Seed,
    Source,
    Stride,
    Threads,
    TimeOrdered,
    Tokens,
    TrainingBatch,
    Validation,
    ValidationFile,
    Width,
    Window,
)
from tsattn.errors import InputError


def train(
    context: typer.Context,
    source: Source = None,
    attention: Attention = None,
    tokens: Tokens = None,
    width: Width = None,
    heads: HeadCount = None,
    layers: Layers = None,
    preset: Preset = "base",
    epochs: Epochs = None,
    batch_size: TrainingBatch = None,
    learning_rate: LearningRate = None,
    optimiser: Optimiser = None,
    schedule: Schedule = None,
    dropout: Dropout = None,
    stochastic_depth: StochasticDepth = None,
    normalise: Normalise = None,
    convolutions: Convolutions = None,
    label_smoothing: LabelSmoothing = None,
    class_weight: ClassWeight = None,
    sampling: Sampling = None,
    augment: Augment = None,
    averaging: Averaging = None,
    patience: Patience = None,
    pretrained: Pretrained = None,
    compile_step: Compile = None,
    protocol: ProtocolWord = "auto",
    validation: Validation = None,
    time_ordered: TimeOrdered = False,
    validation_file: ValidationFile = None,
    resample: Resample = None,
    window: Window = None,
    stride: Stride = None,
    seed: Seed = 0,
    seeds: Seeds = None,
    ensemble: EnsembleFlag = False,
    device: Device = "auto",
    threads: Threads = None,
    out: Out = None,
    layout: Layout = None,
    id_column: IdColumn = None,
    time_column: TimeColumn = None,
    label_column: LabelColumn = None,
    group_column: GroupColumn = None,
    labels_file: LabelsFile = None,
    label_pattern: LabelPattern = None,
    registry: Registry = None,
    track: Track = None,
    resume: Resume = None,
    allow_code: AllowCode = False,
    print_config: PrintConfig = False,
    as_json: AsJson = False,
) -> None:
    """Train a transformer with the chosen attention and write a run folder.

    The test split is not looked at; `tsattn eval RUN` does that. Ctrl-C keeps what was done for --resume.
    """
    from tsattn.cli import console
    from tsattn.cli.train_several import of_seed, train_several
    from tsattn.cli.training_view import (
        joined,
        prepare_visibly,
        prepared_again,
        run_visibly,
        show_trained,
    )
    from tsattn.data.columns import TableOptions

    console.hear_remarks()
    company = joined()
    if resume is not None:
        _refuse_beside_resume(context)
        with company.alike():
            prepared = prepared_again(resume, resume, allow_code)
        show_trained(run_visibly(prepared, company), as_json)
        return
    from tsattn.training.plan import parse_batch_size
    from tsattn.training.protocols import parse_protocol, refuse_parts_of_several
    from tsattn.training.several import several_of

    if source is None:
        raise InputError("What is to be trained on? `tsattn train SOURCE`, or `tsattn train --resume RUN`.")
    choices: dict[str, Any] = {
        "source": source,
        "asked": {
            "attention": attention,
            "tokens": tokens,
            "width": width,
            "heads": heads,
            "layers": layers,
            "epochs": epochs,
            "batch_size": None if batch_size is None else parse_batch_size(batch_size),
            "learning_rate": learning_rate,
            "optimiser": optimiser,
            "schedule": schedule,
            "dropout": dropout,
            "stochastic_depth": stochastic_depth,
            "normalise": normalise,
            "convolutions": convolutions,
            "label_smoothing": label_smoothing,
            "class_weight": class_weight,
            "sampling": sampling,
            "augment": augment,
            "averaging": averaging,
            "patience": patience,
            "pretrained": None if pretrained is None else str(pretrained),
            "compile": compile_step,
            "validation": validation,
            "track": "+".join(track) if track else None,
            "seed": seed,
        },
        "cutting": {"resample": resample, "window": window, "stride": stride},
        "holding": {"latest": time_ordered, "file": validation_file},
        "preset": preset,
        "device": device,
        "threads": threads,
        "out": out,
        "table": TableOptions(
            layout=layout,
            id=id_column,
            time=time_column,
            label=label_column,
            group=group_column,
            labels=None if labels_file is None else str(labels_file),
            label_pattern=label_pattern,
        ),
        "registry": registry,
    }
    asked_for = parse_protocol(protocol)
    if seeds is not None and "seed" in _typed(context):
        raise InputError("--seed and --seeds both say which: type one of them.")
    refuse_parts_of_several(asked_for, preset)
    own_parts = protocol == "auto" and validation is None and validation_file is None and not time_ordered
    several = several_of(
        preset, seed, seeds, ensemble=ensemble, own_tokens=tokens is None, own_parts=own_parts
    )
    alone = seeds is None and not several.ensemble and asked_for.name not in ("kfold", "refit")
    if not alone and not print_config:
        if company.size > 1:
            raise InputError(
                "torchrun trains one model in all its processes, and --seeds, ensembles, kfold and refit "
                "train several. Start them without it, or each training by itself, e.g. --protocol holdout "
                "--seed 1."
            )
        train_several(choices, asked_for, several, as_json=as_json)
        return
    with company.alike():
        prepared = prepare_visibly(**of_seed(choices, several, several.seeds[0]), protocol=protocol)
    if print_config:
        if len(several.seeds) > 1:
            console.show_text(f"# {several}. Here is the first.")
        console.show_text(prepared.config.to_yaml().rstrip())
    else:
        show_trained(run_visibly(prepared, company), as_json)


def _refuse_beside_resume(context: typer.Context) -> None:
    """--resume takes everything from the folder; what is typed beside it would be ignored."""
    if typed := [name for name in _typed(context) if name not in ("resume", "allow_code", "as_json")]:
        words = {p.name: p.opts[0] for p in context.command.params}
        raise InputError(
            f"--resume takes everything from the run folder; leave {words[typed[0]]} away, or train anew "
            "with another --out."
        )


def _typed(context: typer.Context) -> list[str]:
    """Names of the parameters that stand on the command line."""
    return [
        name for name in context.params if str(context.get_parameter_source(name)).endswith("COMMANDLINE")
    ]
