"""Turn a network into a bundle that learns on the device."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lrtflite_converters.conversion.convert import convert
    from lrtflite_converters.export.export import export_model
    from lrtflite_converters.request.options import ConvertOptions
    from lrtflite_converters.request.source import Source

__all__ = ["ConvertOptions", "Source", "convert", "export_model"]
# Modules of the public names, which are imported on first use.
_HOMES = {
    "ConvertOptions": "request.options",
    "Source": "request.source",
    "convert": "conversion.convert",
    "export_model": "export.export",
}


def __getattr__(name: str) -> Any:
    """Import the module of a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
