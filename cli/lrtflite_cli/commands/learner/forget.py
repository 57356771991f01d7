"""`lrtflite forget`: unlearn a class of a state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from lrtflite_cli.options.state import bundle_and_state, known_classes, opened, state_options


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
        click.echo(json.dumps({"forgot": label, "classes": learner.learned}, indent=2))
        return
    click.echo(f"forgot {label}; {known_classes(learner)}")
