"""`lrtflite learn`: teach a state one class from pictures."""

from __future__ import annotations

import difflib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite_cli.options.data import skip_unreadable
from lrtflite_cli.options.learner import learner_options
from lrtflite_cli.options.state import bundle_and_state, known_classes, opened
from lrtflite_cli.terminal.output import say, say_json
from lrtflite_cli.terminal.session import WORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lrtflite.learner import Learner
    from lrtflite.session.session import SessionReport


@click.command()
@bundle_and_state
@click.argument(
    "pictures", metavar="PICTURE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option("--label", help="Name of the class that the pictures show.")
@click.option(
    "--background",
    is_flag=True,
    help="The pictures show a place without a thing: answer unknown for pictures like them.",
)
@learner_options(replay_size="state's, or bundle's", policy="state's, or bundle's")
@skip_unreadable
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    bundle: str,
    state: Path,
    pictures: tuple[Path, ...],
    label: str | None,
    background: bool,
    skip_unreadable: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Teach STATE the class --label from each PICTURE, a file or a folder of pictures.

    All pictures are learned in one session, which is saved whole or not at all. STATE is the state
    folder of a learner of BUNDLE, and is created if it does not exist. A label that STATE knows is
    taught again; any other label becomes a new class. With --background in place of --label, these
    are pictures of a place without a thing, which is never an answer.
    """
    from lrtflite.bundle.bundle import Bundle
    from lrtflite.data.folders.pictures import find_pictures, named, read_pictures, refuse_pictures
    from lrtflite.errors import InputError
    from lrtflite.labels import BACKGROUND, check_label
    from lrtflite.progress import Phase
    from lrtflite.state.folder import StateFolder
    from lrtflite_cli.terminal.progress import phases

    if (label is None) == (not background):
        got = "neither" if label is None else "both"
        raise InputError(f"Expected --label or --background, got {got}", "give one of them")
    name = BACKGROUND if background else check_label(label)
    checked = Bundle.open(bundle, require_signature=given["require_signature"])
    files = find_pictures(pictures)
    words = {**WORDS, Phase.READ: "reading pictures"}
    if checked.manifest.training.feeding.extra_steps:
        words[Phase.TRAIN] = "training steps, at least"
    with phases(words) as step:
        size = checked.manifest.input_size
        found = read_pictures(files, size, on_progress=step)
        if not (skip_unreadable and found.frames):
            advice = "replace or remove them, or add --skip-unreadable"
            refuse_pictures(found.unreadable, len(files), advice=advice)
        frames = list(found.frames.values())
        is_new_state = StateFolder(state).is_new
        with opened(checked, state, given, may_be_new=True) as learner:
            before = [known for known in learner.labels if known is not None]
            labels = None if background else name
            report = learner.learn(frames, labels, background=background, on_progress=step)
    if is_new_state:
        say(f"{state} is a new state", err=True)
    skipped = named(found.unreadable)
    if skipped:
        say(f"left out: {', '.join(skipped)}", err=True)
    if name not in before and not background:
        _hint(name, before, bundle, state)
    if as_json:
        record = _record(report, learner, new=name not in before)
        say_json({**record, "skipped_files": skipped})
        return
    kind = "again" if name in before else "never an answer" if background else "a new class"
    taught = f"{report.frames} picture{'s' * (report.frames != 1)}"
    say(
        f"learned {name}, {kind}, from {taught} in {report.ready_to_committed_ms:.0f} ms; "
        f"{known_classes(learner)}"
    )


def _record(report: SessionReport, learner: Learner, *, new: bool) -> dict[str, Any]:
    """Return the result of a session for JSON."""
    return {
        "label": report.labels[0],
        "new": new,
        "pictures": report.frames,
        "session": report.session,
        "steps": report.steps,
        "loss": report.loss,
        "session_ms": report.ready_to_committed_ms,
        "replay_patterns": report.replay_patterns,
        "classes": learner.learned,
    }


def _hint(name: str, known: Sequence[str], bundle: str, state: Path) -> None:
    """Print how to undo a new label that looks like a misspelling."""
    folded = {label.casefold(): label for label in known}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.75)
    if near:
        undo = shlex.join(["lrtflite", "undo", bundle, str(state)])
        say(
            f"{name!r} is a new class, similar to {folded[near[0]]!r}; to take it back, run: "
            f"{undo}",
            err=True,
        )
