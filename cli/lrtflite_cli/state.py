"""`lrtflite state`: show the contents of a state folder."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lrtflite.state_summary import StateSummary


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--history", is_flag=True, help="Also show what each session taught.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def command(path: Path, history: bool, as_json: bool) -> None:
    """Show the contents of the state at PATH, a state folder or a state file.

    Lists the classes with the patterns taught and the latents kept for replay, and the size of each
    part. Needs neither a bundle nor a TFLite runtime, and changes nothing.
    """
    from lrtflite.state_summary import summarise

    found = summarise(path)
    if as_json:
        facts = asdict(found)
        if not history:
            del facts["history"]
        click.echo(json.dumps(facts, indent=2))
        return
    click.echo(_text(found, history=history))


def _text(found: StateSummary, *, history: bool) -> str:
    from lrtflite.arguments import printable

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
    names = [name for name, _ in rows] + [each.label for each in found.classes]
    names += [f"session {entry.session}" for entry in found.history if history]
    width = max(map(len, names))
    lines = [f"{name:<{width}}  {value}" for name, value in rows]
    for each in found.classes:
        learned = "" if each.learned else ", not learned yet"
        lines.append(
            f"{each.label:<{width}}  {each.patterns:,} patterns taught, {each.rows:,} latents kept"
            f"{learned}"
        )
    if history:
        for entry in found.history:
            taught = ", ".join(
                f"{count} of {label or '(forgotten)'}"
                for label, count in zip(entry.labels, entry.patterns)
            )
            lines.append(f"{f'session {entry.session}':<{width}}  {taught or 'nothing'}")
    return "\n".join(map(printable, lines))
