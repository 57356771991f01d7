"""`lrtflite evaluate`: test a state on a data set."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite_cli.options.evaluate import evaluate_options, evaluated
from lrtflite_cli.options.state import unknown_option
from lrtflite_cli.terminal.output import say, say_json
from lrtflite_cli.terminal.table import table

if TYPE_CHECKING:
    from lrtflite.workbench.evaluation import Evaluation

# Maximum number of confusions that are printed.
CONFUSIONS = 10


@click.command()
@evaluate_options
@unknown_option
def command(bundle: str, state: Path, as_json: bool, **given: Any) -> None:
    """Test STATE on the held-out frames of a data set.

    Prints the accuracy, a line for each class, the most frequent confusions, and how the threshold
    of unknown would answer. Classes that STATE has not learned stand for unknown things; they are
    not part of the accuracy. STATE is the state folder of a learner of BUNDLE; it is not changed,
    and may be in use.

    Use the seed with which the state was taught. Pictures that `lrtflite learn` was given may be
    among the held-out ones; such an accuracy says nothing about new pictures.
    """
    found, skipped = evaluated(bundle, state, given)
    if as_json:
        say_json({**asdict(found), "skipped_files": skipped})
    else:
        say("\n".join(_lines(found)))


def _lines(found: Evaluation) -> list[str]:
    from lrtflite.workbench.unknown import unknown_line

    learned = [each for each in found.classes if each.learned]
    classes = f"{len(learned)} learned class{'es' * (len(learned) != 1)}"
    others = f"; {found.others} frames of classes that were not learned" if found.others else ""
    rows = [("class", "frames", "right", "recall", "taken for")]
    for each in found.classes:
        name = each.label if each.learned else f"{each.label} (not learned)"
        wrong = "" if each.taken_for is None else f"{each.taken_for} {each.taken_for_frames}"
        rows.append((name, f"{each.frames:,}", f"{each.right:,}", f"{each.recall:.0%}", wrong))
    lines = [
        f"accuracy {found.accuracy:.1%} of {found.frames:,} frames of {classes}{others}",
        "",
        *table(rows, left=(0, 4)),
    ]
    frames = {each.label: each.frames for each in found.classes}
    if found.confusions:
        lines.append("")
    lines += [
        f"{each.frames} of {frames[each.label]} {each.label} as {each.answer}"
        for each in found.confusions[:CONFUSIONS]
    ]
    if len(found.confusions) > CONFUSIONS:
        lines.append(f"and {len(found.confusions) - CONFUSIONS} rarer confusions, see --json")
    if found.unknown is not None:
        lines += ["", unknown_line(found.unknown)]
    return lines
