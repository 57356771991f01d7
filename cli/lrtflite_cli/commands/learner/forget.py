"""`lrtflite forget`: unlearn a class of a state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lrtflite_cli.options.state import bundle_and_state, known_classes, opened, state_options
from lrtflite_cli.terminal.output import say, say_json


@click.command()
@bundle_and_state
@click.argument("label")
@state_options
def command(bundle: str, state: Path, label: str, as_json: bool, **given: Any) -> None:
    """Unlearn the class LABEL of STATE, and free its slot.

    Removes its weights, its latents in the replay memory and its label. STATE is the state folder
    of a learner of BUNDLE.
    """
    with opened(bundle, state, given) as learner:
        learner.forget(label)
    if as_json:
        say_json({"forgot": label, "classes": learner.learned})
        return
    say(f"forgot {label}; {known_classes(learner)}")
