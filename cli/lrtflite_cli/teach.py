"""`lrtflite teach`: teach a bundle at a desk, so that it ships with what it knows."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite.session import Phase
from lrtflite_cli.cautions import caution
from lrtflite_cli.data_options import dataset_option, skip_unreadable
from lrtflite_cli.interrupts import raising
from lrtflite_cli.learner_options import chosen_learner, learner_options
from lrtflite_cli.training_options import chosen_rates, training_options

if TYPE_CHECKING:
    from lrtflite.teaching import Taught

WORDS = {
    Phase.EXTRACT: "extracting frames",
    Phase.TRAIN: "training steps",
    Phase.GATHER: "gathering patterns",
    Phase.ADAPT: "adapting moments",
    Phase.CHECKPOINT: "keeping the state",
    Phase.TEST: "testing held-out frames",
}
WEAK = 0.8


@click.command()
@click.argument("bundle", type=click.Path())
@dataset_option()
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The bundle to write.")
@click.option("--replace", is_flag=True, help="Replace the bundle that --out holds.")
@click.option(
    "--batch-frames",
    type=click.IntRange(min=1),
    help="Frames per class, at most, evenly spread.",
    show_default="all",
)
@training_options(epochs="bundle's", lr="bundle's")
@learner_options(replay_size="bundle's", policy="bundle's")
@skip_unreadable
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    bundle: str,
    dataset: str,
    out: Path,
    replace: bool,
    batch_frames: int | None,
    skip_unreadable: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Teach BUNDLE a data set, and write a bundle that knows it.

    The device's own learner runs here: one session with all training frames. The new bundle
    carries the head and a replay memory, so that a device which starts from it keeps what it was
    taught while it learns more. TensorFlow is not needed.
    """
    from lrtflite.bundle import Bundle
    from lrtflite.data import open_source, skipped_files, source_notes
    from lrtflite.destination import Destination
    from lrtflite.learner import Learner
    from lrtflite.quiet import quiet_stderr
    from lrtflite.teaching import teach
    from lrtflite_cli.progress import phases
    from lrtflite_firmware_sim.watcher import LineWatcher

    opened = Bundle.open(bundle)
    destination = Destination.at(out, replace=replace)
    with LineWatcher(sys.stderr).looking() as on_file:
        source = open_source(
            dataset,
            size=opened.manifest.input_size,
            seed=given["seed"],
            skip_unreadable=skip_unreadable,
            on_file=on_file,
        )
    for note in source_notes(source):
        click.echo(note, err=True)
    training = opened.manifest.training.with_options(**chosen_rates(given))
    # The runtimes announce their delegate on stderr.
    with quiet_stderr():
        learner = Learner.open_with(opened, None, chosen_learner(given))
    caution(replay_size=given["replay_size"])
    known = frozenset(learner.learned)
    with raising(), phases(WORDS) as step:
        taught = teach(
            learner,
            source,
            destination,
            training=training,
            batch_frames=batch_frames,
            on_step=step,
        )
    if as_json:
        click.echo(_as_json(taught, skipped_files(source)))
    else:
        click.echo(_as_text(taught, dataset, untested=known.difference(source.classes)))


def _as_text(taught: Taught, dataset: str, *, untested: Collection[str]) -> str:
    report, path = taught.report, taught.bundle.path
    classes = f"{len(report.labels)} class{'es' * (len(report.labels) != 1)}"
    lines = [
        f"{path}: taught {classes} from {report.frames} frames in "
        f"{report.ready_to_committed_ms / 1e3:.2g} s; ships {taught.latents} latents",
        f"held-out accuracy {taught.accuracy:.1%} of {taught.held_out} frames"
        if taught.held_out
        else "no held-out frames, so nothing is known of its accuracy",
    ]
    if untested:
        lines.append(
            f"not tested: {len(untested)} classes that it knew before ({dataset} lacks them)"
        )
    weak = {name: share for name, share in taught.by_class.items() if share < WEAK}
    if weak:
        named = ", ".join(f"{name} {share:.0%}" for name, share in sorted(weak.items()))
        lines.append(f"below {WEAK:.0%}: {named}; more frames, from more sides, may help")
    if taught.by_class and not weak:
        weakest = min(taught.by_class, key=lambda name: taught.by_class[name])
        if taught.by_class[weakest] < 1:
            lines.append(f"weakest: {weakest} {taught.by_class[weakest]:.0%}")
    later = f"lrtflite simulate {path} --dataset {dataset}"
    return "\n".join([*lines, f"next: lrtflite verify {path}; with new classes added: {later}"])


def _as_json(taught: Taught, skipped: tuple[str, ...]) -> str:
    record = {
        "bundle": str(taught.bundle.path),
        "classes": taught.report.labels,
        "frames": taught.report.frames,
        "steps": taught.report.steps,
        "loss": taught.report.loss,
        "session_ms": taught.report.ready_to_committed_ms,
        # JSON has no NaN, which a data set without test frames gives.
        "held_out_accuracy": taught.accuracy if taught.held_out else None,
        "held_out_frames": taught.held_out,
        "by_class": taught.by_class,
        "replay_patterns": taught.latents,
        "skipped_files": skipped,
    }
    return json.dumps(record, indent=2)
