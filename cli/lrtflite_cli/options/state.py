"""The arguments and options of every command that opens a state with its bundle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite_cli.options.learner import all_of, chosen_learner, runtime_options, signature_option
from lrtflite_cli.terminal.interrupts import raising
from lrtflite_cli.terminal.output import without_runtime_notes

if TYPE_CHECKING:
    from lrtflite.bundle.bundle import Bundle
    from lrtflite.learner import Learner

unknown_option = click.option(
    "--unknown",
    type=click.FloatRange(0, 1),
    metavar="THRESHOLD",
    help="Answer unknown for a picture that is less familiar; `lrtflite inspect` shows the "
    "bundle's threshold, `lrtflite unknown` recommends one.",
    show_default="every picture gets a name",
)


def bundle_and_state(command: Any) -> Any:
    """Add the arguments BUNDLE and STATE."""
    return all_of(
        click.argument("bundle", type=click.Path()),
        click.argument("state", type=click.Path(path_type=Path)),
    )(command)


def state_options(command: Any) -> Any:
    """Add the options for opening an existing state, and `--json`."""
    return all_of(
        runtime_options(),
        signature_option,
        click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
    )(command)


@contextmanager
def opened(
    bundle: str | Bundle,
    state: Path,
    given: Mapping[str, Any],
    *,
    read_only: bool = False,
    may_be_new: bool = False,
) -> Iterator[Learner]:
    """Open a learner with the options `given` to a command; a signal raises inside the block.

    Raise StateError for a `state` that does not exist, unless it `may_be_new`.
    """
    from lrtflite.learner import Learner
    from lrtflite.state.folder import StateFolder

    options = replace(chosen_learner(given), read_only=read_only)
    with raising():
        StateFolder(state).check_names(may_be_new=may_be_new)
        with without_runtime_notes():
            learner = Learner.open_with(bundle, state, options)
        with learner:
            yield learner


@contextmanager
def opened_to_answer(
    bundle: str | Bundle, state: Path, given: Mapping[str, Any]
) -> Iterator[Learner]:
    """Open a read-only learner; raise InputError if it has learned nothing."""
    from lrtflite.errors import InputError

    with opened(bundle, state, given, read_only=True) as learner:
        if not learner.learned:
            raise InputError(
                f"Expected a state that has learned something, got {state}, which has not",
                "teach it with `lrtflite learn`",
            )
        yield learner


def known_classes(learner: Learner) -> str:
    """Return the learned classes in words: `knows 2 classes: mug, hat`."""
    from lrtflite.data.listing import first_few

    count = len(learner.learned)
    if not count:
        return "knows no class"
    classes = "class" if count == 1 else "classes"
    return f"knows {count} {classes}: {first_few(learner.learned, 8)}"
