"""`lrtflite rename`: rename a class of a state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lrtflite_cli.options.state import bundle_and_state, known_classes, opened, state_options
from lrtflite_cli.terminal.output import say, say_json


@click.command()
@bundle_and_state
@click.argument("label")
@click.argument("new")
@state_options
def command(bundle: str, state: Path, label: str, new: str, as_json: bool, **given: Any) -> None:
    """Give the class LABEL of STATE the name NEW.

    STATE is the state folder of a learner of BUNDLE.
    """
    with opened(bundle, state, given) as learner:
        learner.rename(label, new)
    if as_json:
        record = {"renamed": label, "new": new, "classes": learner.learned}
        say_json(record)
        return
    say(f"renamed {label} to {new}; {known_classes(learner)}")
