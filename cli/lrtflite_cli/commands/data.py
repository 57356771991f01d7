"""`lrtflite data`: show the classes, clips and frames of a data set."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrtflite.counted import counted
from lrtflite.progress import Phase
from lrtflite_cli.options.data import (
    SETTINGS,
    dataset_table,
    open_dataset,
    seed_option,
    skip_unreadable,
    split_seed_option,
)
from lrtflite_cli.options.learner import all_of
from lrtflite_cli.options.simulate import protocol_option, stream_options
from lrtflite_cli.terminal.interrupts import raising
from lrtflite_cli.terminal.output import say, say_json
from lrtflite_cli.terminal.progress import phases
from lrtflite_cli.terminal.table import table

if TYPE_CHECKING:
    from lrtflite.data import FrameSource
    from lrtflite.data.overview import Amount, Overview
    from lrtflite_firmware_sim.plan import SimulateOptions


HELP = f"""Show the classes of DATASET, and how it is divided into training and test.

A clip is a video or a single picture; a frame is one picture of a clip. Test frames are held out:
a learner is tested on them and never trained on them.

DATASET is one of

{dataset_table()}

{SETTINGS}
"""


@click.command(help=HELP)
@click.argument("dataset")
@click.option(
    "--size",
    type=click.IntRange(min=1),
    default=128,
    show_default=True,
    help="Side of the square frames, in pixels.",
)
@seed_option
@split_seed_option
@click.option("--sheet", metavar="PNG", help="Also write a picture with frames of each class.")
@click.option(
    "--export-stream",
    metavar="DIR",
    help="Also write the sessions that simulate learns, as PNG files and lists of files and "
    "labels, in the layout of CORe50's batch lists. The options below decide the sessions.",
)
@protocol_option()
@all_of(*stream_options())
@skip_unreadable
@click.option("--json", "as_json", is_flag=True, help="Print the overview as JSON.")
def command(
    dataset: str,
    size: int,
    seed: int,
    split_seed: int | None,
    sheet: str | None,
    export_stream: str | None,
    protocol: str,
    first_classes: int | None,
    visits: int | None,
    batch_frames: int | None,
    skip_unreadable: bool,
    as_json: bool,
) -> None:
    from lrtflite.data.overview import overview
    from lrtflite.data.sheet import check_drawing, contact_sheet
    from lrtflite.errors import InputError
    from lrtflite.files.atomic import check_writable, write_atomic, writing
    from lrtflite.options import LearnerOptions
    from lrtflite_firmware_sim.plan import SimulateOptions

    if sheet is not None:
        if not sheet.lower().endswith(".png"):
            raise InputError(f"Expected --sheet to end in .png, got {sheet}", "rename it")
        check_drawing()
        with writing(sheet):
            check_writable(Path(sheet).expanduser())
    if export_stream is None:
        _check_sessions(first_classes=first_classes, visits=visits, batch_frames=batch_frames)
        source = open_dataset(
            dataset, size=size, seed=seed, split_seed=split_seed, skip_unreadable=skip_unreadable
        )
    else:
        options = SimulateOptions(
            dataset=dataset,
            protocol=protocol,
            learner=LearnerOptions(seed=seed),
            split_seed=split_seed,
            first_classes=first_classes,
            visits=visits,
            batch_frames=batch_frames,
            skip_unreadable=skip_unreadable,
        )
        source = _export(export_stream, options, size=size)
    found = overview(source)
    if as_json:
        say_json(found.to_dict())
    else:
        say(_as_text(found))
    if sheet is not None:
        with raising():
            drawn = contact_sheet(source)
            with writing(sheet):
                write_atomic(Path(sheet).expanduser(), drawn)
        say(f"wrote {sheet}", err=True)


def _check_sessions(**options: int | None) -> None:
    """Raise InputError if an option of the sessions is given, which only an export has."""
    from lrtflite.errors import InputError

    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]
    if given:
        raise InputError(
            f"Expected --export-stream DIR with {given[0]}, got none",
            f"name a folder for the sessions, or leave {given[0]} out",
        )


def _export(folder: str, options: SimulateOptions, *, size: int) -> FrameSource:
    """Write the stream that `simulate` learns, print the data set to read it, return its source."""
    from lrtflite.data.core50.exporting import check_export, export_stream
    from lrtflite_firmware_sim.plan import open_stream
    from lrtflite_firmware_sim.watcher import LineWatcher

    check_export(folder)
    with raising():
        with LineWatcher(sys.stderr).looking() as on_progress:
            source, batches = open_stream(options, size=size, on_progress=on_progress)
        with phases({Phase.READ: "frames"}) as step:
            made = export_stream(source, batches, folder, on_progress=step)
    say(f"wrote {counted(made.sessions, 'session')}: --dataset '{made.spec}'", err=True)
    return source


def _as_text(found: Overview) -> str:
    """Return the table of classes, the totals and the notes."""
    titles = ("class", "kind", "training clips", "frames", "test clips", "frames")
    rows = [(each.name, each.kind, *_counts(each.train, each.test)) for each in found.classes]
    rows.append((f"all {len(found.classes)}", "", *_counts(found.train, found.test)))
    lines = [f"{found.dataset}: {found.size} x {found.size} frames", ""]
    lines += table((titles, *rows), left=(0, 1))
    below = [f"note: {note}" for note in found.notes]
    if found.protocol is not None:
        below.insert(0, f"{found.protocol}: {counted(found.sessions or 0, 'session')}")
    return "\n".join([*lines, "", *below] if below else lines)


def _counts(*sides: Amount) -> tuple[str, ...]:
    return tuple(f"{count:,}" for side in sides for count in (side.clips, side.frames))
