"""The command group, and the one place where an error becomes a line and an exit code."""

from __future__ import annotations

import difflib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from lrtflite import __version__
from lrtflite.arguments import printable
from lrtflite.errors import LrtfliteError, SessionCancelled
from lrtflite.system.extras import EXTRAS, missing
from lrtflite_cli.terminal import interrupts
from lrtflite_cli.terminal.output import say, show_warnings

# Command -> its line in `lrtflite --help`. A command's module is imported only when it is called.
COMMANDS = {
    "data": "Show the classes of a data set and its held-out frames.",
    "layers": "Compare the cost of the replay layers.",
    "train": "Train a network on this computer, for convert.",
    "convert": "Make a bundle that learns on the device.",
    "bundle": "Make a bundle that comes with the package.",
    "teach": "Teach a bundle a data set before it ships.",
    "export": "Export what was learned as a plain TFLite classifier.",
    "verify": "Check a bundle on the installed runtime.",
    "inspect": "Show the contents of a bundle.",
    "learn": "Teach a state a class from pictures.",
    "predict": "Name pictures with what a state has learned.",
    "evaluate": "Test a state on a data set.",
    "unknown": "Choose the threshold of the answer unknown.",
    "diagnose": "Find out what to improve in what a state was taught.",
    "rename": "Rename a class of a state.",
    "forget": "Unlearn a class of a state.",
    "undo": "Take back the last change of a state.",
    "state": "Show the contents of a state.",
    "merge": "Merge the states of several devices into one.",
    "keygen": "Make a pair of keys to sign bundles with.",
    "sign": "Sign a bundle.",
    "serve": "Serve a page to teach a device by showing.",
    "simulate": "Run and measure learning sessions on a simulated device.",
    "experiment": "Run a grid of simulations from a plan file.",
}
# Commands whose modules are in `commands/learner`.
OF_A_LEARNER = (
    "learn",
    "predict",
    "evaluate",
    "unknown",
    "diagnose",
    "rename",
    "forget",
    "undo",
)

STDOUT = 1  # its file descriptor


class LazyGroup(click.Group):
    """A group that lists its commands by name and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        package = "commands.learner" if cmd_name in OF_A_LEARNER else "commands"
        module = importlib.import_module(f"lrtflite_cli.{package}.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            meant = f"Did you mean {near[0]!r}? " if near else ""
            ctx.fail(f"No such command {args[0]!r}. {meant}Commands: {', '.join(COMMANDS)}.")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            # Click would print an empty line.
            raise interrupts.Interrupted(interrupts.MESSAGE) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lrtflite")
def cli() -> None:
    """Latent replay on TensorFlow Lite: teach a device new objects, on the device."""


def run(args: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; print an error that the user can fix on one line."""
    show_warnings()
    try:
        cli.main(
            args=None if args is None else list(args), prog_name="lrtflite", standalone_mode=False
        )
    except (interrupts.Interrupted, SessionCancelled) as error:
        return _fail(str(error))
    except click.Abort:
        return _fail(interrupts.MESSAGE, code=interrupts.EXIT_CODE)
    except Exception as error:
        # After a signal, any error may be a KeyboardInterrupt that a library converted.
        return _fail(interrupts.MESSAGE) if interrupts.was_interrupted() else _report(error)
    return 0


def _report(error: Exception) -> int:
    if isinstance(error, click.ClickException):
        shown = io.StringIO()
        error.show(shown)
        say(shown.getvalue().rstrip("\n"), err=True)
        return error.exit_code
    if isinstance(error, LrtfliteError):
        return _fail(str(error))
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").split(".")[0]
        if package in EXTRAS:
            return _fail(str(missing(package)))
    if isinstance(error, OSError) and _stdout_fails():
        reason = error.strerror or error
        return _fail(f"Cannot write to stdout: {reason}; what the command changed stays changed")
    raise error


def _stdout_fails() -> bool:
    """Return whether stdout cannot be written, and if so, discard what it still holds.

    An empty line tells. Where stdout can be written, a traceback follows anyway.
    """
    if sys.stdout is None:
        return False
    try:
        os.write(STDOUT, b"\n")
    except OSError:
        # The interpreter writes the rest at exit, and would complain again.
        with open(os.devnull, "wb") as devnull:
            os.dup2(devnull.fileno(), STDOUT)
        return True
    return False


def _fail(message: str, *, code: int = 1) -> int:
    """Print the error and return the exit code, which after a signal is EXIT_CODE."""
    interrupts.ignore()
    say(f"Error: {printable(message)}", err=True)
    return interrupts.EXIT_CODE if interrupts.was_interrupted() else code
