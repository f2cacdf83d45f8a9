"""`tsattn attention weights`: what the heads of a run look at in one case, as arrays to draw."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tsattn.cli.options import AllowCode, AsJson, Registry

if TYPE_CHECKING:
    from tsattn.data.collection import Collection
    from tsattn.evaluation.heads import CaseHeads


def weights(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.", show_default=False)],
    case: Annotated[
        str,
        typer.Option("--case", metavar="ID", help="The case to look at, by its id.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE.npz", help="Where to write.", show_default=False),
    ],
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[SOURCE]",
            help="Name of a data set, folder or file; what the run was trained on if not given.",
            show_default=False,
        ),
    ] = None,
    split: Annotated[
        Literal["test", "train"], typer.Option("--split", help="Which part of SOURCE the case is in.")
    ] = "test",
    registry: Registry = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Write the attention weights of a case as arrays.

    FILE.npz holds weights_layer0, weights_layer1, …, each (heads, N, N): rows are
    queries, columns keys. Beside them observed (N,), starts (N,), the first
    timepoint of each token, and ids. N counts tokens: of a run trained with
    --tokens patch a token is several timepoints, else it is one.
    """
    import numpy as np

    from tsattn.cli import console
    from tsattn.cli.model_source import read_split
    from tsattn.cli.open_model import refuse_model_file
    from tsattn.data.atomic import whole_file
    from tsattn.data.columns import TableOptions
    from tsattn.evaluation.heads import as_trained, heads_of_case
    from tsattn.runs import read_run

    console.hear_remarks()
    refuse_model_file(run, "`attention weights`")
    trained = read_run(run, allow_code=allow_code)
    part = read_split(trained.card, source, split, TableOptions(), registry)
    cases = as_trained(trained, part.collection)
    place = _place(cases, case, part.origin)
    found = heads_of_case(trained, cases.take(np.array([place])), weights=True)
    arrays: dict[str, Any] = {f"weights_layer{layer}": one for layer, one in enumerate(found.weights)}
    with whole_file(output) as partial, partial.open("wb") as file:
        np.savez(file, **arrays, observed=found.observed, starts=found.starts, ids=np.array([found.id]))
    _show(found, output, trained.single().tokens.stride, as_json)


def _place(cases: Collection, case: str, origin: str) -> int:
    """The place of the case. InputError with near ids where there is none of that id."""
    import difflib

    from tsattn.errors import InputError

    if case in cases.ids:
        return cases.ids.index(case)
    near = difflib.get_close_matches(case, cases.ids, n=3)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise InputError(
        f"{origin}: there is no case '{case}'.{hint} "
        f"The ids of its {len(cases):,} cases go from '{cases.ids[0]}' to '{cases.ids[-1]}'."
    )


def _show(found: CaseHeads, output: Path, stride: int, as_json: bool) -> None:
    from tsattn.cli import console

    heads, tokens, _ = found.weights[0].shape
    if as_json:
        console.show_json(
            {
                "file": str(output),
                "case": found.id,
                "layers": len(found.weights),
                "heads": heads,
                "tokens": tokens,
                "timepoints_per_token": stride,
            }
        )
        return
    if stride > 1:
        console.remark(f"A token starts every {stride} timepoints; `starts` in the file says where.")
    console.show(
        f"{output}  case {found.id}: {len(found.weights)} layers × {heads} heads × {tokens} × {tokens} tokens"
    )
