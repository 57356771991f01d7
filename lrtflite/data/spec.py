"""The text that names a data set: `NAME?key=value&key=value`.

Every data set takes `classes`; a source checks the other settings itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from lrtflite.errors import DataError

Default = TypeVar("Default", int, None)


def split_spec(spec: str) -> tuple[str, dict[str, str]]:
    """Split a spec into name and settings; a `?` without `key=value` belongs to the name."""
    name, mark, query = spec.rpartition("?")
    if not mark or "=" not in query:
        return spec, {}
    settings: dict[str, str] = {}
    for pair in query.split("&"):
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise DataError(
                f"Expected key=value after the ? of {spec!r}, got {pair!r}",
                "join several settings with &",
            )
        settings[key] = value
    return name, settings


def with_default(spec: str, key: str, value: object) -> str:
    """Return the spec with a setting added, unless the spec already has that setting."""
    _, settings = split_spec(spec)
    if key in settings:
        return spec
    return f"{spec}{'&' if settings else '?'}{key}={value}"


def check_settings(usage: str, settings: Mapping[str, str], known: Sequence[str]) -> None:
    """Raise DataError for a setting that the source `usage`, such as `folder:PATH`, lacks."""
    for key in settings:
        if key not in known:
            listed = ", ".join([*known, "classes"])
            raise DataError(
                f"Expected one of {listed} after {usage}?, got {key!r}", "correct or remove it"
            )


def whole_setting(
    settings: Mapping[str, str], key: str, default: Default, *, least: int
) -> int | Default:
    """Return a setting that is a whole number, or `default` if the setting is missing."""
    if key not in settings:
        return default
    text = settings[key]
    if not (text.isascii() and text.isdecimal()) or int(text) < least:
        raise DataError(
            f"Expected {key} as a whole number of at least {least}, got {text!r}",
            f"write for example ?{key}={least}",
        )
    return int(text)
