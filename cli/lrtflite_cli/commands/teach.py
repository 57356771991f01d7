"""`lrtflite teach`: teach a bundle a data set before it ships."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lrtflite.progress import Phase
from lrtflite_cli.options.data import (
    dataset_option,
    open_dataset,
    skip_unreadable,
    split_seed_option,
)
from lrtflite_cli.options.learner import chosen_learner, learner_options
from lrtflite_cli.options.rates import chosen_rates, rate_options
from lrtflite_cli.terminal.cautions import caution
from lrtflite_cli.terminal.interrupts import raising
from lrtflite_cli.terminal.output import say, say_json, without_runtime_notes
from lrtflite_cli.terminal.session import WORDS
from lrtflite_cli.terminal.teaching import taught_as_json, taught_as_text


@click.command()
@click.argument("bundle", type=click.Path())
@dataset_option()
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Bundle to write.")
@click.option("--replace", is_flag=True, help="Replace the bundle that --out holds.")
@click.option(
    "--batch-frames",
    type=click.IntRange(min=1),
    help="Maximum number of frames per class, evenly spread.",
    show_default="all",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Teach the held-out frames too, after a test without them. The printed accuracy is that "
    "of the test. By default, the bundle that was tested ships.",
)
@rate_options(epochs="bundle's", lr="bundle's")
@learner_options(replay_size="bundle's", policy="bundle's")
@split_seed_option
@skip_unreadable
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    bundle: str,
    dataset: str,
    out: Path,
    replace: bool,
    batch_frames: int | None,
    everything: bool,
    split_seed: int | None,
    skip_unreadable: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Teach BUNDLE a data set, and write a bundle that has learned it.

    The device's own learner runs here, in one session with all training frames. A latent is the
    output of the replay layer, at which the network is split, for one frame. The new bundle ships
    with a replay memory of latents. A device trains with them again whenever it learns something
    new, so that it does not forget these classes. TensorFlow is not needed.
    """
    from lrtflite.bundle.bundle import Bundle
    from lrtflite.bundle.destination import Destination
    from lrtflite.data import skipped_files, source_notes
    from lrtflite.labels import label_warnings
    from lrtflite.learner import Learner
    from lrtflite.session.run import without_effect
    from lrtflite.workbench.teaching import AGAIN, teach
    from lrtflite_cli.terminal.progress import phases

    opened = Bundle.open(bundle, require_signature=given["require_signature"])
    destination = Destination.at(out, replace=replace)
    source = open_dataset(
        dataset,
        size=opened.manifest.input_size,
        seed=given["seed"],
        split_seed=split_seed,
        skip_unreadable=skip_unreadable,
    )
    for note in source_notes(source):
        say(note, err=True)
    rates = chosen_rates(given)
    training = opened.manifest.training.with_options(**rates)
    for warning in (*label_warnings(opened.manifest.labels), *without_effect(opened, rates)):
        say(f"Warning: {warning}", err=True)
    with without_runtime_notes():
        learner = Learner.open_with(opened, None, chosen_learner(given))
    if training.feeding.replays:
        caution(replay_size=given["replay_size"])
    learned_before = frozenset(learner.learned)
    more = {Phase.TRAIN: "training steps, at least"} if training.feeding.extra_steps else {}
    words = {**WORDS, **more}
    words.update({f"{AGAIN}{phase}": f"{AGAIN}{text}" for phase, text in words.items()})
    with raising(), phases(words) as step:
        taught = teach(
            learner,
            source,
            destination,
            training=training,
            batch_frames=batch_frames,
            everything=everything,
            on_progress=step,
        )
    if as_json:
        say_json(taught_as_json(taught, skipped_files(source)))
    else:
        untested = learned_before.difference(source.classes)
        say(taught_as_text(taught, dataset, untested=untested))
