"""The option `--network`, which several commands have."""

from __future__ import annotations

from typing import Any, Callable

from lrtflite.networks.architecture import NETWORKS
from lrtflite_cli.options.table import table_option


def network_option(*, help: str) -> Callable[[Any], Any]:
    """Return the option."""
    first = next(iter(NETWORKS))
    return table_option("--network", NETWORKS, default=first, show_default=True, help=help)
