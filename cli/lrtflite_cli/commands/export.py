"""`lrtflite export`: export what was learned as a plain TFLite classifier."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite.counted import classes_text
from lrtflite_cli.options.data import skip_unreadable
from lrtflite_cli.options.learner import signature_option
from lrtflite_cli.terminal.interrupts import raising
from lrtflite_cli.terminal.output import say, say_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lrtflite_converters.export.export import Exported


@click.command()
@click.argument("bundle", type=click.Path())
@click.argument("state", required=False, type=click.Path(path_type=Path))
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="Model file to write, with labels.txt next to it; with --layout frigate, a folder.",
)
@click.option(
    "--layout",
    default="plain",
    show_default=True,
    help="plain: a model and labels.txt; frigate: a folder for Frigate's custom classification.",
)
@click.option("--replace", is_flag=True, help="Overwrite the model and the labels.txt of --out.")
@click.option(
    "--quantize",
    metavar="MODE",
    help="int8: quantise weights and activations; needs --calibrate.",
)
@click.option(
    "--calibrate",
    metavar="DATASET",
    help="Data set with frames like those of the camera, for --quantize; see `lrtflite data "
    "--help`.",
)
@signature_option
@skip_unreadable
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    bundle: str,
    state: Path | None,
    out: Path,
    layout: str,
    replace: bool,
    quantize: str | None,
    calibrate: str | None,
    require_signature: str | None,
    skip_unreadable: bool,
    as_json: bool,
) -> None:
    """Export what was learned as a plain TFLite classifier.

    Writes one model that takes a frame, uint8 [1, S, S, 3], and gives the probability of each
    learned class, and labels.txt with one label per line in the order of the outputs. The model
    does not train, and runs in any program that takes a .tflite file.

    STATE is a state folder of BUNDLE, or the file of an initial state. Without it, the model has
    learned what the bundle was taught before it shipped.
    """
    from lrtflite.bundle.bundle import Bundle
    from lrtflite.system.extras import require
    from lrtflite_converters.export.layouts import FRIGATE, LAYOUTS
    from lrtflite_converters.export.request import check_float, check_mode, read_learned

    require("tensorflow")
    check_mode(quantize, calibrate)
    chosen = LAYOUTS.choose(layout)
    files = chosen.files(out)
    files.check(replace=replace)
    opened = Bundle.open(bundle, require_signature=require_signature)
    learned = read_learned(opened, state)
    frames = None
    if calibrate is not None:
        check_float(opened)
        frames = _read(calibrate, opened.manifest.input_size, skip_unreadable=skip_unreadable)
    from lrtflite_cli.terminal.progress import stages
    from lrtflite_converters.export.export import export_model

    with raising(), stages() as stage:
        exported = export_model(
            opened, learned, files, frames=frames, side=chosen.side, stage=stage
        )
    if as_json:
        say_json(_as_json(exported))
    else:
        say(_as_text(exported))
    if layout == FRIGATE:
        say(_for_frigate(out, exported, none=chosen.none), err=True)


def _read(dataset: str, size: int, *, skip_unreadable: bool) -> NDArray[np.uint8]:
    import sys

    from lrtflite.data import open_source
    from lrtflite_converters.export.request import CALIBRATION_FRAMES
    from lrtflite_converters.quantise.calibration import calibration_of
    from lrtflite_firmware_sim.watcher import LineWatcher

    with LineWatcher(sys.stderr).looking() as on_progress:
        source = open_source(
            dataset, size=size, skip_unreadable=skip_unreadable, on_progress=on_progress
        )
    return calibration_of(source, CALIBRATION_FRAMES).frames


def _for_frigate(out: Path, exported: Exported, *, none: str | None) -> str:
    lines = [f"Copy {out} to /config/model_cache of Frigate; docs/frigate.md has its configuration"]
    if none not in exported.labels:
        lines.append(
            f"There is no class {none!r}, so every object gets one of the classes: teach pictures "
            f"of other things as {none!r}"
        )
    return "\n".join(lines)


def _as_text(exported: Exported) -> str:
    return (
        f"{exported.model}: {exported.bytes:,} bytes, {exported.numbers}, "
        f"{classes_text(len(exported.labels))}\n"
        f"{exported.labels_file}: {', '.join(exported.labels)}"
    )


def _as_json(exported: Exported) -> dict[str, Any]:
    return {
        "model": str(exported.model),
        "labels_file": str(exported.labels_file),
        "labels": list(exported.labels),
        "bytes": exported.bytes,
        "numbers": exported.numbers,
    }
