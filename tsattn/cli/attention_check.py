"""`tsattn attention check`: is an attention what an attention has to be?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tsattn.cli.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tsattn.models.attention.laws import Finding


def check(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC", help="E.g. my/file.py:name, or any word of the list.", show_default=False
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Hold an attention to the laws that all obey, alone and joined with bn and sh.

    Padding, batches, masks, types and gradients, export to ONNX. A broken law ends with exit code 3.
    """
    from tsattn.cli import console
    from tsattn.errors import CheckFailed

    console.hear_remarks()
    with console.working("loading"):
        from tsattn.export.attention_law import examine as examine_export
        from tsattn.models.attention.foreign import resolve
        from tsattn.models.attention.laws import HEADS, examine, specs_around
        from tsattn.models.attention.registry import build

        plain = resolve(spec)
        build(plain, HEADS)  # a wrong option is a wrong command, not a broken law
    findings: list[Finding] = []
    for one in specs_around(plain):
        with console.working(f"measuring {one}"):
            findings += [*examine(one), examine_export(one)]
    broken = [finding for finding in findings if not finding.held]
    if as_json:
        console.show_json(
            {"attention": plain, "held": not broken, "laws": [vars(finding) for finding in findings]}
        )
    else:
        _draw(findings)
    if broken:
        laws = ", ".join(dict.fromkeys(f"'{finding.law}'" for finding in broken))
        raise CheckFailed(f"attention '{plain}' breaks {len(broken)} of {len(findings)} laws: {laws}.")


def _draw(findings: Sequence[Finding]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from tsattn.cli import console

    specs = list(dict.fromkeys(finding.spec for finding in findings))
    table = Table()
    table.add_column("law")
    table.add_column("allowed", justify="right")
    for spec in specs:
        table.add_column(escape(spec))
    for law in dict.fromkeys(finding.law for finding in findings):
        row = {finding.spec: finding for finding in findings if finding.law == law}
        allowed = next(iter(row.values())).allowed
        table.add_row(
            law,
            "" if allowed is None else f"{allowed:.0e}",
            *(_cell(row[spec]) for spec in specs),
        )
    console.show(table)
    for note in dict.fromkeys(finding.note for finding in findings if finding.note):
        first, *others = (finding for finding in findings if finding.note == note)
        more = f" and {len(others)} more" if others else ""
        console.show(escape(f"{first.spec}, {first.law}{more}: {note}"))


def _cell(finding: Finding) -> str:
    word = "held" if finding.held else "[bold red]broken[/]"
    return word if finding.difference is None else f"{word}, {finding.difference:.1e}"
