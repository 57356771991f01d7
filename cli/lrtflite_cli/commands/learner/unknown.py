"""`lrtflite unknown`: choose the threshold of the answer "unknown"."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite.workbench.unknown import MAX_REFUSED, unknown_line
from lrtflite_cli.options.evaluate import evaluate_options, evaluated
from lrtflite_cli.terminal.output import say, say_json
from lrtflite_cli.terminal.table import table

if TYPE_CHECKING:
    from lrtflite.workbench.unknown import UnknownAnswers


@click.command()
@evaluate_options
@click.option(
    "--most-refused",
    type=click.FloatRange(0, 1),
    default=MAX_REFUSED,
    show_default=True,
    help="Largest share of known frames that the recommended threshold may refuse.",
)
def command(bundle: str, state: Path, as_json: bool, most_refused: float, **given: Any) -> None:
    """Show what each threshold of unknown does to a data set, and recommend one.

    With a threshold, a frame that is less familiar is answered as unknown. The command counts the
    frames of learned classes that would be refused by mistake, and the frames of all other classes
    that would be caught.

    The recommended threshold refuses at most --most-refused of the known frames, and catches the
    most. Ranges in brackets are 95 % confidence intervals, which are wide
    for few frames. STATE is not changed, and may be in use.
    """
    from lrtflite.errors import InputError

    found, skipped = evaluated(bundle, state, given, most_refused=most_refused)
    if found.unknown is None:
        raise InputError(
            f"Expected a bundle whose head reports familiarity, got {bundle}",
            "convert one with --strategy lda",
        )
    if as_json:
        say_json({**asdict(found.unknown), "skipped_files": skipped})
    else:
        say("\n".join(_lines(found.unknown, bundle, state)))


def _lines(found: UnknownAnswers, bundle: str, state: Path) -> list[str]:
    rows = [("threshold", "known refused", "unknown caught")]
    for each in found.thresholds:
        caught = _share(each.caught, found.unknown)
        mark = " *" if each.value == found.recommended else ""
        own = " (the bundle's)" if each.value == found.default else ""
        rows.append((f"{each.value:g}{own}{mark}", _share(each.refused, found.known), caught))
    lines = [*table(rows, left=(0,)), "", unknown_line(found)]
    if not found.unknown:
        lines.append("to measure it, add folders of things that the state was never taught")
    if found.recommended is not None:
        words = ["lrtflite", "predict", bundle, str(state), "--unknown", f"{found.recommended:g}"]
        lines.append(f"next: {shlex.join(words)} PICTURE...")
    return lines


def _share(count: int, total: int) -> str:
    return f"{count:,} of {total:,} {count / total:6.1%}" if total else "not measured"
