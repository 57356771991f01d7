"""The options of `evaluate` and `unknown`, which test a state on a data set."""

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
from lrtflite_cli.options.learner import all_of
from lrtflite_cli.options.state import bundle_and_state, opened_to_answer, state_options
from lrtflite_cli.terminal.output import say
from lrtflite_cli.terminal.session import WORDS

if TYPE_CHECKING:
    from lrtflite.workbench.evaluation import Evaluation

all_frames = click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Use all frames, not only the held-out ones: for pictures that were never taught.",
)


def evaluate_options(command: Any) -> Any:
    """Add BUNDLE, STATE and the options that `evaluated` takes."""
    options = (
        bundle_and_state,
        dataset_option(),
        all_frames,
        seed_option,
        split_seed_option,
        skip_unreadable,
        state_options,
    )
    return all_of(*options)(command)


def evaluated(
    bundle: str, state: Path, given: Mapping[str, Any], **options: Any
) -> tuple[Evaluation, tuple[str, ...]]:
    """Evaluate a state with the options `given` to a command; also name the files left out."""
    from lrtflite.bundle.bundle import Bundle
    from lrtflite.data import skipped_files, source_notes
    from lrtflite.progress import Phase
    from lrtflite.workbench.evaluation import evaluate_clips
    from lrtflite_cli.terminal.progress import phases

    checked = Bundle.open(bundle, require_signature=given["require_signature"])
    names = ("seed", "split_seed", "skip_unreadable")
    source = open_dataset(
        given["dataset"],
        size=checked.manifest.input_size,
        **{name: given[name] for name in names},
    )
    for note in source_notes(source):
        say(note, err=True)
    clips = [*source.train_clips(), *source.test_clips()] if given["everything"] else None
    with (
        opened_to_answer(checked, state, given) as learner,
        phases({**WORDS, Phase.TEST: "testing frames"}) as step,
    ):
        found = evaluate_clips(
            learner,
            source.test_clips() if clips is None else clips,
            source.classes,
            on_progress=step,
            **options,
        )
    return found, skipped_files(source)
