"""The command group, and the one place where an error becomes a line and an exit code."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Sequence

import click

from lrtflite import __version__
from lrtflite.errors import LrtfliteError, MissingExtra

# Command -> its line in `lrtflite --help`. A command's module is imported only when it is called.
COMMANDS = {
    "layers": "Show what each replay layer costs.",
    "train": "Train a network on the host, for convert.",
    "convert": "Make a bundle that learns on the device.",
    "teach": "Teach a bundle at a desk, so that it ships with what it knows.",
    "verify": "Prove a bundle on the runtime at hand.",
    "inspect": "Say what is inside a bundle.",
    "simulate": "Run learning sessions as a device would, and measure them.",
}
# Packages that only an extra installs -> that extra.
EXTRAS = {
    "tensorflow": "host",
    "tf_keras": "host",
    "tensorflow_model_optimization": "host",
    "rich": "device",
    "PIL": "device",
    "matplotlib": "report",
    "av": "video",
}


class LazyGroup(click.Group):
    """Knows its commands by name, and imports the one that is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"lrtflite_cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            meant = f"Did you mean {near[0]!r}? " if near else ""
            ctx.fail(f"No such command {args[0]!r}. {meant}Commands: {', '.join(COMMANDS)}.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lrtflite")
def cli() -> None:
    """Latent replay on TensorFlow Lite: teach a device new objects, on the device."""


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line; errors that are the user's to mend are one line on stderr."""
    try:
        cli.main(
            args=None if args is None else list(args), prog_name="lrtflite", standalone_mode=False
        )
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _fail("Interrupted; nothing that was committed is lost")
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        _fail(str(MissingExtra(str(error.name), extra)))
    except LrtfliteError as error:
        _fail(str(error))


def _fail(message: str) -> None:
    click.echo(f"Error: {message}", err=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
