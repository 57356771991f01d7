"""The options of `lrtflite simulate`; their defaults come from the protocols and the stream."""

from __future__ import annotations

from typing import Any, Callable

import click

from lrtflite_cli.options.data import dataset_option, skip_unreadable, split_seed_option
from lrtflite_cli.options.learner import all_of, learner_options
from lrtflite_cli.options.rates import rate_options
from lrtflite_cli.options.table import table_option

POSITIVE = click.IntRange(min=1)


def simulate_options() -> Callable[[Any], Any]:
    """Add all options of the command."""
    from lrtflite_firmware_sim.plan import APP_EPOCHS, APP_POLICY, APP_REPLAY_SIZE

    return all_of(
        dataset_option(default="synthetic"),
        protocol_option(),
        click.option(
            "--sessions", type=POSITIVE, help="Stop after this many sessions.", show_default="all"
        ),
        learner_options(
            replay_size=f"bundle's; app: {APP_REPLAY_SIZE}", policy=f"bundle's; app: {APP_POLICY}"
        ),
        rate_options(epochs=f"bundle's; app: {APP_EPOCHS}", lr="bundle's"),
        split_seed_option,
        *stream_options(),
        _rival(),
        click.option(
            "--diagnose",
            is_flag=True,
            help="Print which frames look like another class and which classes lost accuracy; "
            "takes time and RAM.",
        ),
        skip_unreadable,
        click.option(
            "--json", "json_path", metavar="PATH", help="Write the results as JSON; - is stdout."
        ),
        click.option(
            "--report", "report_path", metavar="PATH", help="Write a report as one HTML file."
        ),
    )


def protocol_option() -> Callable[[Any], Any]:
    """Add --protocol."""
    from lrtflite_firmware_sim import plan

    return click.option(
        "--protocol",
        type=click.Choice(plan.PROTOCOLS),
        default=plan.PROTOCOLS[0],
        show_default=True,
        help="Which classes come in which session. nic (new instances and classes): the paper's "
        "first benchmark, in which sessions bring new classes and old ones again. ni (new "
        "instances): its second one, in which the first session has all classes and each later "
        "session has new frames of them. app: the paper's app, "
        f"which learns one new class per session from {plan.APP_FRAMES} frames at {plan.APP_FPS} "
        f"fps, in {plan.APP_EPOCHS} epochs, with memory {plan.APP_REPLAY_SIZE}.",
    )


def _rival() -> Callable[[Any], Any]:
    from lrtflite.tables.table import first_sentence
    from lrtflite_firmware_sim.rivals import RIVALS

    rivals = " ".join(f"{name}: {first_sentence(entry)}" for name, entry in RIVALS.items())
    return table_option(
        "--rival",
        RIVALS,
        help="For comparison, learn with a rival from the paper instead of the bundle's head. It "
        f"runs in the simulator only, not on a device. {rivals}",
    )


def stream_options() -> tuple[Callable[[Any], Any], ...]:
    """Return the options that decide the sessions of a stream."""
    from lrtflite.data import StreamOptions
    from lrtflite_firmware_sim.plan import APP_FRAMES, APP_VISITS, NI_VISITS

    default = StreamOptions()
    return (
        click.option(
            "--first-classes",
            type=POSITIVE,
            help="Classes in the first session. Each later session has one class. Not for ni.",
            show_default=f"{default.first_classes}",
        ),
        click.option(
            "--visits",
            type=POSITIVE,
            help="Visits to each class: sessions in which it is taught, each with other frames.",
            show_default=f"{default.visits}; ni: {NI_VISITS}; app: {APP_VISITS}",
        ),
        click.option(
            "--batch-frames",
            type=POSITIVE,
            help="Maximum number of frames per class and session.",
            show_default=f"all; app: {APP_FRAMES}",
        ),
    )
