"""`lrtflite predict`: name pictures with what a state has learned."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite_cli.options.state import (
    bundle_and_state,
    opened_to_answer,
    state_options,
    unknown_option,
)
from lrtflite_cli.terminal.output import say, say_json

if TYPE_CHECKING:
    from lrtflite.answers.prediction import Prediction


@click.command()
@bundle_and_state
@click.argument(
    "pictures", metavar="PICTURE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Number of labels to print for each picture.",
)
@unknown_option
@state_options
def command(
    bundle: str, state: Path, pictures: tuple[Path, ...], top: int, as_json: bool, **given: Any
) -> None:
    """Name each PICTURE, a file or a folder of pictures, with what STATE has learned.

    STATE is the state folder of a learner of BUNDLE; it is not changed, and may be in use. Pictures
    that cannot be read are named at the end, and the exit code is then 1.
    """
    from lrtflite.data.folders.pictures import find_pictures, read_pictures, refuse_pictures

    files = find_pictures(pictures)
    unreadable: dict[Path, str] = {}
    found: list[dict[str, Any]] = []
    with opened_to_answer(bundle, state, given) as learner:
        for file in files:
            picture = read_pictures([file], learner.bundle.manifest.input_size)
            unreadable.update(picture.unreadable)
            for frame in picture.frames.values():
                [answers] = learner.predict(frame, top=top)
                found.append({"picture": str(file), "answers": [asdict(each) for each in answers]})
                if not as_json:
                    say(f"{file}: {_as_text(answers)}")
            found += [{"picture": str(file), "error": why} for why in picture.unreadable.values()]
    if as_json:
        say_json(found)
    refuse_pictures(unreadable, len(files), advice="replace or remove them")


def _as_text(answers: list[Prediction]) -> str:
    from lrtflite.answers.prediction import NO_SLOT, UNKNOWN

    named = [f"{each.label} {each.probability:.0%}" for each in answers if each.slot != NO_SLOT]
    if answers[0].slot != NO_SLOT:
        return ", ".join(named)
    said = f"{UNKNOWN} (familiarity {answers[0].familiarity:.3f})"
    return f"{said}; looks most like {', '.join(named)}" if named else said
