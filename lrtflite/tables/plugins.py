"""Load plugins: modules of other projects that add entries to this project's tables.

A plugin is named in the environment, `LRTFLITE_PLUGINS=module,other.module`, or by an entry point
of the group `lrtflite.plugins`. Importing it registers its entries (see `lrtflite.tables.table`).
Every process loads plugins when it first reads a table, including the simulated device.
"""

from __future__ import annotations

import importlib
import os
import threading
from functools import lru_cache

from lrtflite.errors import PluginError
from lrtflite.system.extras import may_have_entry_points

VARIABLE = "LRTFLITE_PLUGINS"
GROUP = "lrtflite.plugins"
_loaded: set[str] = set()
_under_way: set[str] = set()
_failed: dict[str, PluginError] = {}
_loading = threading.RLock()


def load_plugins() -> None:
    """Import every plugin once; raise PluginError for one that cannot be imported."""
    named = _named()
    if all(module in _loaded for module, _ in named):
        return
    # Re-entrant, because a plugin that reads a table while it loads comes here again.
    with _loading:
        for module, origin in named:
            if module in _failed:
                raise _failed[module]
            if module not in _loaded and module not in _under_way:
                _load(module, origin)


def _load(module: str, origin: str) -> None:
    _under_way.add(module)
    try:
        importlib.import_module(module)
    except Exception as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        # Kept, because its entries may already be registered and would hide the cause next time.
        _failed[module] = PluginError(
            f"Expected a plugin in the module {module!r}, named by {origin}, got: {reason}",
            "install it, or take its name out",
        )
        raise _failed[module] from error
    finally:
        _under_way.discard(module)
    _loaded.add(module)


def _named() -> list[tuple[str, str]]:
    words = os.environ.get(VARIABLE, "").split(",")
    found = [(word.strip(), VARIABLE) for word in words if word.strip()]
    return found + [(module, f"the entry point {name}") for name, module in _entry_points()]


@lru_cache(maxsize=1)
def _entry_points() -> list[tuple[str, str]]:
    """Return name and module of each entry point; cached, because it scans all packages."""
    if not may_have_entry_points(GROUP):
        return []
    from importlib import metadata

    entries = metadata.entry_points()
    # Python 3.9 has no `select`.
    group = entries.select(group=GROUP) if hasattr(entries, "select") else entries.get(GROUP, ())
    return sorted({(entry.name, entry.value.partition(":")[0]) for entry in group})
