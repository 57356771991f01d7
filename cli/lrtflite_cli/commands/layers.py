"""`lrtflite layers`: compare the cost of the possible replay layers."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from lrtflite.counted import classes_text
from lrtflite.errors import ModelError
from lrtflite.networks.architecture import NETWORKS, Architecture
from lrtflite_cli.options.network import network_option
from lrtflite_cli.terminal.output import plain, say, say_json

if TYPE_CHECKING:
    from lrtflite.host.cost import NetworkCost

HEADERS = ("layer", "neurons", "ops", "weights", "bytes/latent", "pooled", "computation %")
NOTE = (
    "computation: ops strictly above the layer, relative to native rehearsal (replay of images).\n"
    "bytes/latent: 4 bytes per value (float32); 1 for images (uint8).\n"
    "pooled: bytes of the layer's average over all pixels (convert --pooled), above which only\n"
    "the last layer trains.\n"
    "weights: with one bias per channel, as the paper counts them; the networks have no biases."
)
# Weights of the paper's network, as its table counts them.
PAPER_WEIGHTS = 3_247_282
PAPER_NOTE = (
    f"The paper prints a total of 3.35 M weights; its own rows add up to {PAPER_WEIGHTS:,}."
)


@click.command()
@network_option(help="Network to list.")
@click.option(
    "--alpha",
    default=1.0,
    show_default=True,
    help="Width of the network, relative to the original.",
)
@click.option(
    "--input-size", default=128, show_default=True, help="Side of the square frames, in pixels."
)
@click.option(
    "--classes",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="Classes of the last layer.",
)
@click.option("--model", type=click.Path(), help="Your own Keras model instead: .keras or .h5.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    network: str, alpha: float, input_size: int, classes: int, model: str | None, as_json: bool
) -> None:
    """Compare the cost of the possible replay layers.

    The network is split at its replay layer. The output of that layer for a frame, a latent, is
    stored, and the device trains with it again later, so that it does not forget old classes. Only
    the layers above it train on the device. The table shows the size of one latent and the cost of
    training the layers above it, relative to training the complete network.
    """
    if model is not None:
        from lrtflite_cli.terminal.own_layers import show_own_layers

        _refuse_beside_model("network", "alpha", "input_size", "classes")
        show_own_layers(model, as_json=as_json, table=print_table)
        return
    from lrtflite.host.cost import network_cost
    from lrtflite.host.family import find_family

    architecture = NETWORKS.choose(network)
    family = find_family(network)
    built = family.build(alpha=alpha, input_size=input_size, classes=classes)
    cost = network_cost(built, architecture)
    if as_json:
        say_json(
            {
                "network": network,
                "alpha": alpha,
                "input_size": input_size,
                "classes": classes,
                "layers": [asdict(layer) for layer in cost.layers],
                "total": {"ops": cost.ops, "weights": cost.weights},
            }
        )
        return
    size = f"{input_size}x{input_size}"
    title = f"{architecture.title}, alpha {alpha:g}, {size}, {classes_text(classes)}"
    print_table(title, _rows(cost, architecture))
    say(NOTE)
    if cost.weights == PAPER_WEIGHTS:
        say(PAPER_NOTE)


def _rows(cost: NetworkCost, architecture: Architecture) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for layer in cost.layers:
        is_input = architecture.reads_frames(layer.name)
        is_classifier = layer.name == architecture.classifier
        rows.append(
            (
                layer.name,
                f"{layer.neurons:,}",
                "-" if is_input else f"{layer.ops:,}",
                "-" if is_input else f"{layer.weights:,}",
                "-" if is_classifier else f"{layer.bytes_per_latent:,}",
                "-" if layer.pooled_bytes is None else f"{layer.pooled_bytes:,}",
                "-" if is_classifier else f"{layer.computation:.3f}",
            )
        )
    rows.append(("total", "", f"{cost.ops:,}", f"{cost.weights:,}", "", "", ""))
    return rows


def _refuse_beside_model(*names: str) -> None:
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            raise ModelError(
                f"Expected --model without {option}, got both",
                f"leave {option} out, because a model has its own",
            )


def print_table(title: str, rows: list[tuple[str, ...]]) -> None:
    try:
        from rich import box
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        _print_plain(title, rows)
        return
    table = Table(title=plain(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, header in enumerate(HEADERS):
        table.add_column(header, justify="right" if number else "left", no_wrap=True)
    for row in rows[:-1]:
        table.add_row(*map(plain, row))
    table.add_section()
    table.add_row(*map(plain, rows[-1]))
    console = Console()
    # In a narrow terminal, wrapped lines are better than numbers that are cut off.
    needed = console.measure(table, options=console.options.update(max_width=1000)).maximum
    console.width = max(console.width, needed)
    console.print(table)


def _print_plain(title: str, rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(HEADERS, *rows)]
    say(title)
    for row in (HEADERS, *rows):
        cells = [
            cell.rjust(width) if number else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths))
        ]
        say("  ".join(cells).rstrip())
