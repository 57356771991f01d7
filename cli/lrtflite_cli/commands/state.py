"""`lrtflite state`: show the contents of a state folder."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrtflite_cli.terminal.output import say, say_json

if TYPE_CHECKING:
    from lrtflite.state.summary import StateSummary


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--history", is_flag=True, help="Also show what each session taught.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def command(path: Path, history: bool, as_json: bool) -> None:
    """Show the contents of the state at PATH, a state folder or a state file.

    Lists the classes with the patterns taught and the latents kept for replay, and the size of each
    part. Needs neither a bundle nor a TFLite runtime, and changes nothing.
    """
    from lrtflite.state.summary import summarise

    found = summarise(path)
    if as_json:
        facts = asdict(found)
        if not history:
            del facts["history"], facts["folded"]
        say_json(facts)
        return
    say(_text(found, history=history))


def _text(found: StateSummary, *, history: bool) -> str:
    rows = [
        ("state", f"{found.path}, format {found.format}, {found.bytes:,} bytes in all"),
        ("bundle", f"{found.bundle[:12]}, {found.replay_layer}"),
        ("sessions", f"{found.sessions}"),
        ("slots", f"{found.slots}: {len(found.classes)} labelled"),
        (
            "memory",
            f"{found.rows} of {found.replay_size} latents, {found.policy}, {found.codec}, "
            f"{found.row_bytes:,} bytes each",
        ),
        ("tensors", f"{found.tensors}, {found.tensor_bytes:,} bytes"),
        ("undo", "one step" if found.undo else "nothing to undo"),
    ]
    about = (("device", found.device), ("version", found.bundle_version))
    rows += [(name, text) for name, text in about if text is not None]
    sessions = _sessions(found) if history else []
    names = [name for name, _ in rows] + [each.label for each in found.classes]
    names += [name for name, _ in sessions]
    width = max(map(len, names))
    lines = [f"{name:<{width}}  {value}" for name, value in rows]
    for each in found.classes:
        learned = "" if each.learned else ", not learned yet"
        lines.append(
            f"{each.label:<{width}}  {each.patterns:,} patterns taught, {each.rows:,} latents kept"
            f"{learned}"
        )
    lines += [f"{name:<{width}}  {value}" for name, value in sessions]
    lines += [f"note: {warning}" for warning in found.warnings]
    return "\n".join(lines)


def _sessions(found: StateSummary) -> list[tuple[str, str]]:
    """Return the name of each session and what it taught; earlier ones together."""
    rows = []
    if found.folded.sessions:
        taught = [f"{count:,} of {label}" for label, count in found.folded.patterns.items()]
        rows.append((f"{found.folded.sessions:,} earlier", ", ".join(taught) or "nothing"))
    for entry in found.history:
        taught = [
            f"{count} of {label or '(forgotten)'}"
            for label, count in zip(entry.labels, entry.patterns)
        ]
        facts = [", ".join(taught) or "nothing"]
        if entry.time is not None:
            facts.append(_time(entry.time))
        if entry.device is not None:
            facts.append(f"on {entry.device}")
        rows.append((f"session {entry.session}", "; ".join(facts)))
    return rows


def _time(seconds: int) -> str:
    """Return a time in UTC, or the number of seconds if no calendar has it."""
    from datetime import datetime, timedelta

    try:
        found = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    except OverflowError:
        return f"{seconds} s after 1970"
    return f"{found:%Y-%m-%d %H:%M} UTC"
