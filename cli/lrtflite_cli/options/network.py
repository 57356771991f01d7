"""The options of a network that several commands have."""

from __future__ import annotations

from typing import Any, Callable

from lrtflite.networks.architecture import ACTIVATIONS, NETWORKS
from lrtflite_cli.options.table import table_option


def network_option(*, help: str) -> Callable[[Any], Any]:
    """Return the option `--network`."""
    first = next(iter(NETWORKS))
    return table_option("--network", NETWORKS, default=first, show_default=True, help=help)


def activation_option() -> Callable[[Any], Any]:
    """Return the option `--activation`."""
    default = next(iter(ACTIVATIONS))
    return table_option(
        "--activation",
        ACTIVATIONS,
        help="Activation after each convolution. relu has no upper limit.",
        show_default=f"the weights' own; {default} if their file does not say",
    )
