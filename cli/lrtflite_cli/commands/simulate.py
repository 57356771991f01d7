"""`lrtflite simulate`: run and measure learning sessions on a simulated device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite.errors import LrtfliteError
from lrtflite_cli.options.learner import chosen_learner
from lrtflite_cli.options.rates import chosen_rates
from lrtflite_cli.options.simulate import simulate_options
from lrtflite_cli.terminal import interrupts
from lrtflite_cli.terminal.cautions import caution
from lrtflite_cli.terminal.interrupts import Interrupted, raising
from lrtflite_cli.terminal.output import say, say_json

if TYPE_CHECKING:
    from lrtflite_firmware_sim import SimulateOptions, Simulation
    from lrtflite_firmware_sim.reporting.deliver import Delivered, Delivery


@click.command()
@click.argument("bundle", required=False, type=click.Path(path_type=Path))
@simulate_options()
def command(
    bundle: Path | None,
    dataset: str,
    protocol: str,
    sessions: int | None,
    first_classes: int | None,
    visits: int | None,
    batch_frames: int | None,
    rival: str | None,
    split_seed: int | None,
    diagnose: bool,
    skip_unreadable: bool,
    json_path: str | None,
    report_path: str | None,
    **given: Any,
) -> None:
    """Run learning sessions on a simulated device, and measure them.

    In each session the device gets frames of one or more classes and turns them into latents, the
    outputs of the replay layer, at which the network is split. It trains on them together with
    latents of earlier sessions from its replay memory, and saves its state. The device is a
    separate process, which runs the same code as a real device.

    Prints the accuracy on held-out frames, the latency of each phase and the peak RAM. The default
    BUNDLE is a small demo bundle that comes with the package.
    """
    from lrtflite_firmware_sim import SimulateOptions
    from lrtflite_firmware_sim.reporting.deliver import Delivery

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
        rival=rival,
        split_seed=split_seed,
    )
    if rival is not None or _replays(bundle):
        caution(replay_size=given["replay_size"])
    with raising():
        _run(bundle, options, delivery)


def _replays(bundle: Path | None) -> bool:
    """Return whether a bundle, by default the demo bundle, trains with stored latents."""
    from lrtflite.bundle.bundle import Bundle

    return bundle is None or Bundle.open(bundle).manifest.training.feeding.replays


def _run(bundle: Path | None, options: SimulateOptions, delivery: Delivery) -> None:
    """Simulate, write and print; if the run ends early, deliver the sessions completed so far."""
    from lrtflite.files.deferred_signals import deferred_signals
    from lrtflite_firmware_sim import simulate
    from lrtflite_firmware_sim.reporting.deliver import STDOUT
    from lrtflite_firmware_sim.reporting.summary import summary
    from lrtflite_firmware_sim.watcher import watch

    stopped: list[Simulation] = []
    failure: BaseException | None = None
    try:
        result = simulate(bundle, options, watcher=watch(), on_stopped=stopped.append)
    except BaseException as error:
        if not stopped:
            raise
        [result], failure = stopped, error
    with deferred_signals():
        try:
            delivered = delivery.write(result)
        finally:
            to_stdout = delivery.json_path == STDOUT
            if to_stdout:
                say_json(result.to_json())
            else:
                say(summary(result))
    line = _ending(result, delivered)
    if failure is not None and interrupts.was_interrupted():
        raise Interrupted(line) from failure
    if isinstance(failure, LrtfliteError) or delivered.errors:
        raise LrtfliteError(line) from failure
    if line:
        say(line, err=True)
    if failure is not None:
        raise failure


def _ending(result: Simulation, delivered: Delivered) -> str:
    """Return one line: the reason for an early end, the files that failed and the files written."""
    parts = [result.incomplete] if result.incomplete else []
    parts += delivered.errors
    if delivered.files:
        parts.append(f"wrote {' and '.join(delivered.files)}")
    elif result.incomplete:
        parts.append("the figures cover these sessions only")
    return "; ".join(parts)
