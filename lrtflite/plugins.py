"""Load plugins: modules of other projects that add entries to this project's tables.

A plugin is named in the environment, `LRTFLITE_PLUGINS=module,other.module`, or by an entry point
of the group `lrtflite.plugins`. Importing it registers its entries (see `lrtflite.table`). Every
process loads plugins when it first reads a table, the simulated device too.
"""

from __future__ import annotations

import importlib
import os
from importlib import metadata

from lrtflite.errors import PluginError

VARIABLE = "LRTFLITE_PLUGINS"
GROUP = "lrtflite.plugins"
_loaded: set[str] = set()


def load_plugins() -> None:
    """Import every plugin once; raise PluginError for one that cannot be imported."""
    for module, origin in _named():
        if module in _loaded:
            continue
        # Marked before the import, because a plugin that reads a table calls this function again.
        _loaded.add(module)
        try:
            importlib.import_module(module)
        except Exception as error:
            _loaded.discard(module)
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise PluginError(
                f"Expected a plugin in the module {module!r}, named by {origin}, got: {reason}; "
                "install it, or take its name out"
            ) from error


def _named() -> list[tuple[str, str]]:
    words = os.environ.get(VARIABLE, "").split(",")
    found = [(word.strip(), VARIABLE) for word in words if word.strip()]
    return found + [(module, f"the entry point {name}") for name, module in _entry_points()]


def _entry_points() -> list[tuple[str, str]]:
    entries = metadata.entry_points()
    # Python 3.9 has no `select`.
    group = entries.select(group=GROUP) if hasattr(entries, "select") else entries.get(GROUP, ())
    return sorted({(entry.name, entry.value.partition(":")[0]) for entry in group})
