"""`lrtflite simulate`: what learning on the device will cost, and how well it works."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite.errors import LrtfliteError
from lrtflite_cli import interrupts
from lrtflite_cli.cautions import caution
from lrtflite_cli.data_options import dataset_option, skip_unreadable
from lrtflite_cli.interrupts import Interrupted, raising
from lrtflite_cli.learner_options import chosen_learner, learner_options
from lrtflite_cli.training_options import chosen_rates, training_options

if TYPE_CHECKING:
    from lrtflite_firmware_sim import SimulateOptions, Simulation
    from lrtflite_firmware_sim.deliver import Delivered, Delivery


@click.command()
@click.argument("bundle", required=False, type=click.Path(path_type=Path))
@dataset_option(default="synthetic")
@click.option(
    "--protocol",
    type=click.Choice(["nic", "app"]),
    default="nic",
    show_default=True,
    help="nic: old and new classes mixed. app: the paper's app, 100 frames at 5 fps per new "
    "class, 8 epochs, memory 500.",
)
@click.option("--sessions", type=click.IntRange(min=1), help="Stop after so many.")
@learner_options(replay_size="bundle's; app: 500", policy="bundle's; app: balanced")
@training_options(epochs="bundle's; app: 8", lr="bundle's")
@click.option(
    "--first-classes", type=click.IntRange(min=1), help="In the first session.", show_default="10"
)
@click.option(
    "--visits", type=click.IntRange(min=1), help="Sessions per class.", show_default="2; app: 1"
)
@click.option(
    "--batch-frames",
    type=click.IntRange(min=1),
    help="Frames per class and session, at most.",
    show_default="all; app: 100",
)
@click.option(
    "--diagnose",
    is_flag=True,
    help="Say which frames look like another class and which classes lost; takes time and RAM.",
)
@skip_unreadable
@click.option("--json", "json_path", metavar="PATH", help="Write the results; - is stdout.")
@click.option("--report", "report_path", metavar="PATH", help="Write one HTML file with plots.")
def command(
    bundle: Path | None,
    dataset: str,
    protocol: str,
    sessions: int | None,
    first_classes: int | None,
    visits: int | None,
    batch_frames: int | None,
    diagnose: bool,
    skip_unreadable: bool,
    json_path: str | None,
    report_path: str | None,
    **given: Any,
) -> None:
    """Let a simulated device learn, session by session.

    Prints accuracy on held-out frames, latency of each phase and peak RAM, measured in a process
    of its own that runs what a device would. Without BUNDLE it is a small demo bundle that comes
    with the package.
    """
    from lrtflite_firmware_sim import SimulateOptions
    from lrtflite_firmware_sim.deliver import Delivery

    delivery = Delivery(json_path=json_path, report_path=report_path)
    delivery.check()
    options = SimulateOptions(
        dataset=dataset,
        protocol=protocol,
        sessions=sessions,
        learner=chosen_learner(given),
        rates=chosen_rates(given),
        first_classes=first_classes,
        visits=visits,
        batch_frames=batch_frames,
        skip_unreadable=skip_unreadable,
        diagnose=diagnose,
    )
    caution(replay_size=given["replay_size"])
    with raising():
        _run(bundle, options, delivery)


def _run(bundle: Path | None, options: SimulateOptions, delivery: Delivery) -> None:
    """Simulate, write and print; also what there is when something ends the run early."""
    from lrtflite.undisturbed import undisturbed
    from lrtflite_firmware_sim import simulate
    from lrtflite_firmware_sim.deliver import STDOUT
    from lrtflite_firmware_sim.summary import summary
    from lrtflite_firmware_sim.watcher import watch

    stopped: list[Simulation] = []
    failure: BaseException | None = None
    try:
        result = simulate(bundle, options, watcher=watch(), on_stopped=stopped.append)
    except BaseException as error:
        if not stopped:
            raise
        [result], failure = stopped, error
    with undisturbed():
        try:
            delivered = delivery.write(result)
        finally:
            to_stdout = delivery.json_path == STDOUT
            click.echo(result.to_json() if to_stdout else f"{summary(result)}\n", nl=False)
    line = _ending(result, delivered)
    if failure is not None and interrupts.came():
        raise Interrupted(line) from failure
    if isinstance(failure, LrtfliteError) or delivered.errors:
        raise LrtfliteError(line) from failure
    if line:
        click.echo(line, err=True)
    if failure is not None:
        raise failure


def _ending(result: Simulation, delivered: Delivered) -> str:
    """Say in one line what ended the run, what could not be written and what was."""
    parts = [result.incomplete] if result.incomplete else []
    parts += delivered.errors
    if delivered.files:
        parts.append(f"wrote {' and '.join(delivered.files)}")
    elif result.incomplete:
        parts.append("the figures are of these")
    return "; ".join(parts)
