"""`lrtflite diagnose`: find out what to improve in what a state was taught."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite_cli.options.data import (
    dataset_option,
    open_dataset,
    seed_option,
    skip_unreadable,
    split_seed_option,
)
from lrtflite_cli.options.state import bundle_and_state, opened_to_answer, state_options
from lrtflite_cli.terminal.output import say, say_json

if TYPE_CHECKING:
    from lrtflite.advice import Findings, Shown
    from lrtflite.learner import Learner

NOTHING = "nothing to improve was found"


@click.command()
@bundle_and_state
@dataset_option(required=False)
@seed_option
@split_seed_option
@skip_unreadable
@state_options
def command(bundle: str, state: Path, as_json: bool, **given: Any) -> None:
    """Find out what to improve in what STATE was taught, one action per line.

    Looks for classes that are confused, pictures that show another class, pictures that repeat
    others, blurred and dark pictures, and classes with few or too similar pictures. All pictures of
    the data set are used, at most 200 of a class; classes that STATE does not have are left out.

    Without --dataset, the pictures kept beside STATE are used, in STATE.pictures. If there are none
    either, the command judges classes by what STATE itself holds: the number of patterns taught,
    and the latents stored for replay. STATE is the state folder of a learner of BUNDLE; it is not
    changed, and may be in use.
    """
    from lrtflite.advice import diagnose
    from lrtflite.progress import Phase
    from lrtflite_cli.terminal.progress import phases

    with opened_to_answer(bundle, state, given) as learner:
        shown = _pictures(learner, state, given)
        with phases({Phase.READ: "looking at pictures"}) as step:
            found = diagnose(learner, shown, on_progress=step)
    if as_json:
        say_json(found.to_json())
    else:
        say("\n".join(_lines(found)))


def _pictures(learner: Learner, state: Path, given: Mapping[str, Any]) -> list[Shown] | None:
    """Return the pictures of the data set, else those kept beside the state; None without any."""
    from lrtflite.advice import shown_by, shown_kept
    from lrtflite.data import source_notes
    from lrtflite.pictures import KeptPictures

    if given["dataset"] is None:
        return shown_kept(KeptPictures.beside(state), learner.labels) or None
    source = open_dataset(
        given["dataset"],
        size=learner.bundle.manifest.input_size,
        **{name: given[name] for name in ("seed", "split_seed", "skip_unreadable")},
    )
    for note in source_notes(source):
        say(note, err=True)
    return shown_by(source)


def _lines(found: Findings) -> list[str]:
    return [
        f"looked at {found.looked_at}",
        "",
        *(found.lines or (NOTHING,)),
        *([""] if found.notes else []),
        *(f"note: {note}" for note in found.notes),
    ]
