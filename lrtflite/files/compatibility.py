"""Rules by which readers and writers of different versions understand the same JSON.

A reader needs every base field. It ignores fields that it does not know, unless the list `requires`
names them: then it refuses the file. docs/bundle.md and docs/state.md list the fields.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from lrtflite.arguments import shown

REQUIRES = "requires"
# Maximum number of characters in a name or a version.
MAX_LINE = 200
# Maximum number of names in `requires`, and of characters in one.
MAX_REQUIRED, MAX_NAME = 64, 100


def unknown_requirements(found: Mapping[str, Any], known: Collection[str]) -> list[str]:
    """Return the names in `requires` that this version does not know, or raise ValueError."""
    names = found.get(REQUIRES)
    if names is None:
        return []
    if not isinstance(names, list) or len(names) > MAX_REQUIRED:
        raise ValueError(f"{REQUIRES} is {shown(names)}")
    for name in names:
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not name.isprintable():
            raise ValueError(f"{REQUIRES} has {shown(name)}")
    return [name for name in names if name not in known]


def fields_of(
    found: Any, kind: Any, where: str, *, optional: Collection[str] = ()
) -> dict[str, Any]:
    """Return the fields of the dataclass `kind` that a JSON object has, without unknown ones.

    Raise ValueError if a field that is not `optional` is missing. An optional field that is
    null counts as missing.
    """
    if not isinstance(found, Mapping):
        raise ValueError(f"{where} is {shown(found)}")
    names = {field.name for field in fields(kind)}
    missing = names.difference(found).difference(optional)
    if missing:
        raise ValueError(f"{where} lacks {', '.join(sorted(missing))}")
    return {
        name: value
        for name, value in found.items()
        if name in names and not (value is None and name in optional)
    }


def is_line(value: Any) -> bool:
    """Return whether a value is a text of one line, neither empty nor long."""
    return isinstance(value, str) and value.isprintable() and 0 < len(value) <= MAX_LINE
