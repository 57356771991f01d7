"""The text that names a data set: `NAME?key=value&key=value`.

Every data set takes `classes`; a source checks the other settings itself.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from lrtflite.errors import DataError

Default = TypeVar("Default", int, None)
KNOWN = ("synthetic", "synthetic-backbone", "folder:PATH", "core50:PATH")


def split_spec(spec: str) -> tuple[str, dict[str, str]]:
    """Split a spec into name and settings; a `?` in a folder's own name is left alone."""
    name, mark, query = spec.rpartition("?")
    if not mark or "=" not in query:
        return spec, {}
    settings: dict[str, str] = {}
    for pair in query.split("&"):
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise DataError(f"Expected key=value after the ? of {spec!r}, got {pair!r}")
        settings[key] = value
    return name, settings


def with_default(spec: str, key: str, value: object) -> str:
    """Return the spec with a setting added, unless the spec has that setting already."""
    _, settings = split_spec(spec)
    if key in settings:
        return spec
    return f"{spec}{'&' if settings else '?'}{key}={value}"


def check_settings(kind: str, settings: Mapping[str, str], known: Sequence[str]) -> None:
    """Raise DataError for a setting that the source does not have."""
    for key in settings:
        if key not in known:
            listed = ", ".join([*known, "classes"])
            raise DataError(f"Expected one of {listed} after {kind}?, got {key!r}")


def whole_setting(
    settings: Mapping[str, str], key: str, default: Default, *, least: int
) -> int | Default:
    """Return a setting that is a whole number, or `default` where it is not set."""
    if key not in settings:
        return default
    text = settings[key]
    if not (text.isascii() and text.isdecimal()) or int(text) < least:
        raise DataError(f"Expected {key} as a whole number of at least {least}, got {text!r}")
    return int(text)


def unknown_source(spec: str) -> DataError:
    """Return the error for a spec that names no data set, with what was probably meant."""
    name, mark, query = spec, "", ""
    if "=" in spec.rpartition("?")[2]:
        name, mark, query = spec.rpartition("?")
    meant = _meant(name)
    hint = f"; did you mean {f'{meant}{mark}{query}'!r}?" if meant else ""
    return DataError(f"Expected one of {', '.join(KNOWN)} as data set, got {spec!r}{hint}")


def _meant(name: str) -> str | None:
    kind, colon, path = name.partition(":")
    if name and _is_folder(name):
        return f"folder:{name}"
    kinds = [known.partition(":")[0] for known in KNOWN]
    near = difflib.get_close_matches(kind.lower(), kinds, n=1, cutoff=0.7)
    if near and (colon or "/" not in name):
        takes_path = f"{near[0]}:PATH" in KNOWN
        return f"{near[0]}:{path or 'PATH'}" if takes_path else near[0]
    if path and _is_folder(path):  # dir:things
        return f"folder:{path}"
    if not colon and ("/" in name or "\\" in name or name.startswith(("~", "."))):
        return f"folder:{name}"
    return None


def _is_folder(name: str) -> bool:
    try:
        return Path(name).expanduser().is_dir()
    except (OSError, RuntimeError, ValueError):  # too long, no such user, a null byte
        return False
