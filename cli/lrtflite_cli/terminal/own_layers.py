"""The part of `lrtflite layers` that lists the layers of a user's own model."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lrtflite.arguments import printable

if TYPE_CHECKING:
    from lrtflite.host.cost import LayerCost

NOTE = (
    "computation: ops strictly above the layer, relative to training the whole network.\n"
    "bytes/latent: 4 bytes per value (float32); 1 for the input (uint8).\n"
    "pooled: bytes of the layer's average over all pixels (convert --pooled), above which only\n"
    "the last layer trains.\n"
    "ops, weights: of this layer and those between it and the previous row."
)


def show_own_layers(
    model: str, *, as_json: bool, table: Callable[[str, list[tuple[str, ...]]], None]
) -> None:
    """Print the possible replay layers of a model file, with `table` or as JSON."""
    import lrtflite.host  # noqa: F401  loads TensorFlow without its notes on stderr
    from lrtflite_converters.keras_models.network import read_network
    from lrtflite_converters.request.scaling import Scaling

    network = read_network(Path(model), otherwise=Scaling())
    architecture, size = network.architecture, network.input_size
    rows = [row for row in network.costs if row.name in architecture.usable]
    total = {name: sum(getattr(row, name) for row in network.costs) for name in ("ops", "weights")}
    if as_json:
        found = {
            "model": Path(model).name,
            "input_size": size,
            "layers": [asdict(row) for row in rows],
            "total": total,
            "below": architecture.obstacle or None,
        }
        click.echo(json.dumps(found, indent=2))
        return
    lines = [_line(row, row.name == architecture.replay_layers[0]) for row in rows]
    lines.append(("total", "", f"{total['ops']:,}", f"{total['weights']:,}", "", "", ""))
    table(f"{printable(Path(model).name)}, {size}x{size}", lines)
    click.echo(NOTE)
    if architecture.obstacle:
        click.echo(f"No layer below {architecture.lowest} is listed: {architecture.obstacle}.")


def _line(row: LayerCost, is_input: bool) -> tuple[str, ...]:
    return (
        row.name,
        f"{row.neurons:,}",
        "-" if is_input else f"{row.ops:,}",
        "-" if is_input else f"{row.weights:,}",
        f"{row.bytes_per_latent:,}",
        "-" if row.pooled_bytes is None else f"{row.pooled_bytes:,}",
        f"{row.computation:.3f}",
    )
