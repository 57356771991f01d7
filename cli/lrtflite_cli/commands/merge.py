"""`lrtflite merge`: merge the states of several devices into one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lrtflite.counted import classes_text, counted
from lrtflite.runtime.model import AUTO, RUNTIMES
from lrtflite_cli.terminal.output import say, say_json, without_runtime_notes

if TYPE_CHECKING:
    from lrtflite.fleet.devices import Device
    from lrtflite.fleet.merge import Merged
    from lrtflite.state.history import History


@click.command()
@click.argument("bundle", type=click.Path())
@click.argument("states", metavar="STATE...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The state to write.")
@click.option(
    "--drop",
    multiple=True,
    metavar="STATE",
    type=click.Path(path_type=Path),
    help="Remove a device that was merged into the first STATE. May be repeated.",
)
@click.option(
    "--runtime",
    type=click.Choice([AUTO, *RUNTIMES]),
    default=AUTO,
    show_default=True,
    help=f"{' or '.join(package for package, _ in RUNTIMES.values())}.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the merged state's random generator, and of the choice of latents to keep.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    bundle: str,
    states: tuple[Path, ...],
    out: Path,
    drop: tuple[Path, ...],
    runtime: str,
    seed: int,
    as_json: bool,
) -> None:
    """Merge the STATEs of several devices of one BUNDLE.

    The new state answers like a single device that was taught everything the devices were taught.
    Classes are matched by label. Sessions that shipped with the bundle count once. The
    strategies lda and ncm can be merged, because their states are sums.
    """
    from lrtflite.fleet.merge import merge
    from lrtflite_cli.terminal.interrupts import raising

    # The runtimes announce their delegate on stderr.
    with raising(), without_runtime_notes():
        merged = merge(bundle, states, out, drop=drop, seed=seed, runtime=runtime)
    if as_json:
        say_json(_as_json(merged))
    else:
        say(_as_text(merged))


def _as_text(merged: Merged) -> str:
    patterns = merged.history.patterns
    lines = [
        f"{merged.out}: {counted(len(merged.devices), 'device')}, {_taught(merged.history)}",
        *(f"  {device.path}: {_taught(device.own)}" for device in merged.devices),
        *(f"  dropped {device.path}: {_taught(device.own)}" for device in merged.dropped),
    ]
    if merged.shipped.sessions:
        lines.append(f"  shipped with the bundle, counted once: {_taught(merged.shipped)}")
    width = max(map(len, patterns), default=0)
    lines += [
        f"{label:<{width}}  {count:>6,} patterns" for label, count in sorted(patterns.items())
    ]
    return "\n".join(lines)


def _as_json(merged: Merged) -> dict[str, Any]:
    def said(device: Device) -> dict[str, Any]:
        return {"state": str(device.path), **_facts(device.own)}

    return {
        "out": str(merged.out),
        **_facts(merged.history),
        "devices": [said(device) for device in merged.devices],
        "dropped": [said(device) for device in merged.dropped],
        "shipped": _facts(merged.shipped),
    }


def _facts(history: History) -> dict[str, Any]:
    return {"sessions": history.sessions, "patterns": history.patterns}


def _taught(history: History) -> str:
    patterns = history.patterns
    return (
        f"{counted(history.sessions, 'session')}, "
        f"{classes_text(len(patterns))}, "
        f"{counted(sum(patterns.values()), 'pattern')}"
    )
