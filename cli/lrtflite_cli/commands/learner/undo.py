"""`lrtflite undo`: take back the last change of a state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lrtflite_cli.options.state import bundle_and_state, known_classes, opened, state_options
from lrtflite_cli.terminal.output import say, say_json


@click.command()
@bundle_and_state
@state_options
def command(bundle: str, state: Path, as_json: bool, **given: Any) -> None:
    """Take back the last change of STATE: a session, a rename or a forget.

    One change can be taken back. STATE is the state folder of a learner of BUNDLE.
    """
    with opened(bundle, state, given) as learner:
        sessions, before = learner.sessions, learner.labels
        learner.undo()
    what = f"session {sessions}" if learner.sessions < sessions else "a rename or a forget"
    gone = [label for label in before if label is not None and label not in learner.labels]
    back = [label for label in learner.labels if label is not None and label not in before]
    if as_json:
        record = {
            "undid_session": sessions if learner.sessions < sessions else None,
            "gone": gone,
            "back": back,
            "sessions": learner.sessions,
            "classes": learner.learned,
        }
        say_json(record)
        return
    changes = [f"{', '.join(gone)} is gone"] if gone else []
    changes += [f"{', '.join(back)} is back"] if back else []
    say(f"undid {what}{''.join(f', {each}' for each in changes)}; {known_classes(learner)}")
