"""The values of a state that are not arrays, as JSON; every one is checked when it is read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lrtflite.arguments import shown
from lrtflite.errors import InputError, StateError
from lrtflite.files.compatibility import REQUIRES, is_line, unknown_requirements
from lrtflite.files.digest import File
from lrtflite.files.strict_json import strict_json
from lrtflite.labels import stored_label
from lrtflite.replay.codecs import MAX_PATTERNS
from lrtflite.state.meta import StateMeta

STATE_FORMAT = 6
# Formats that this version reads, by the same rules.
STATE_FORMATS = (5, 6)
READ_FORMATS = " or ".join(map(str, STATE_FORMATS))
# Fields beyond the base ones that a reader must know, by their names in `requires`.
REQUIRED = FOLDED, BACKGROUND = ("folded", "background")
# Maximum number of labels in a state or in its folded sessions, and of patterns in a session.
MAX_LABELS, MAX_COUNT = 100_000, (1 << 32) - 1
# Maximum number of files that the tensors or the rows of a state are spread over.
MAX_NAMED = 256
_FILE_NAME = re.compile(r"(tensors|rows)-\d{8,12}\.safetensors", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_WIDE = 1 << 128


@dataclass(frozen=True)
class NamedFile:
    """A file next to the generation that names it; `rows` is the number of rows in it, if any."""

    name: str
    file: File
    rows: int = 0


@dataclass(frozen=True)
class Record:
    """The JSON of a generation: the values of the state, and the files that hold its arrays.

    `undo` is the number of the generation that `undo` returns to. Arrays of a later file in
    `tensors` replace those of an earlier one. Rows have places in all files of `rows` together.
    `format` is that of the file; `to_json` writes the current one.
    """

    meta: StateMeta
    counter: int = 0
    undo: int | None = None
    tensors: tuple[NamedFile, ...] = ()
    rows: tuple[NamedFile, ...] = ()
    format: int = STATE_FORMAT

    @property
    def names(self) -> frozenset[str]:
        return frozenset(each.name for each in (*self.tensors, *self.rows))

    def to_json(self) -> dict[str, str]:
        """Return the metadata of a tensor file."""
        found = {
            **vars(self.meta),
            "rng": _rng_to_json(self.meta.rng),
            "counter": self.counter,
            "undo": self.undo,
            "tensors": [_file_to_json(each) for each in self.tensors],
            "rows": [_file_to_json(each) for each in self.rows],
        }
        found = {k: value for k, value in found.items() if value is not None or k not in _OPTIONAL}
        requires = [name for name in REQUIRED if name in found]
        if requires:
            found[REQUIRES] = requires
        return {"format": str(STATE_FORMAT), "state": json.dumps(found, allow_nan=False)}

    @classmethod
    def from_json(cls, metadata: Mapping[str, str], *, where: str = "the state") -> Record:
        """Parse what `to_json` returned, or raise ValueError.

        Raise StateError for a state that requires more than this version knows.
        """
        try:
            if metadata["format"] not in map(str, STATE_FORMATS):
                raise ValueError("no format")
            found = strict_json(metadata["state"])
            if not isinstance(found, dict):
                raise ValueError("no JSON object")
            if unknown := unknown_requirements(found, REQUIRED):
                raise StateError(
                    f"Expected a state that this version can use, got {where}, which requires "
                    f"{shown(', '.join(unknown))}",
                    "install a newer version of lrtflite",
                )
            _check(found)
            undo = found["undo"]
            return cls(
                meta=_meta_from_json(found),
                counter=found["counter"],
                undo=undo,
                tensors=tuple(_file_from_json(each, "tensors-") for each in found["tensors"]),
                rows=tuple(_file_from_json(each, "rows-") for each in found["rows"]),
                format=int(metadata["format"]),
            )
        except (KeyError, TypeError, AttributeError, RecursionError, InputError) as error:
            raise ValueError(f"invalid values: {error}") from error


def _whole(value: Any, most: int = 1 << 62) -> bool:
    return type(value) is int and 0 <= value <= most


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 1000


def _labels(value: Any) -> bool:
    taken = [label for label in value if label is not None]
    return (
        isinstance(value, list)
        and 0 < len(value) <= MAX_LABELS
        and all(isinstance(label, str) for label in taken)
        and len(set(taken)) == len(taken)
    )


def _history(value: Any) -> bool:
    return isinstance(value, list) and all(map(_session, value))


def _session(entry: Any) -> bool:
    return (
        _text(entry["id"])
        and _whole(entry["session"], MAX_COUNT)
        and all(label is None or _text(label) for label in _list(entry["labels"]))
        and all(_whole(count, MAX_COUNT) for count in _list(entry["patterns"]))
        and len(entry["labels"]) == len(entry["patterns"])
        and (entry.get("time") is None or _whole(entry["time"]))
        and all(entry.get(each) is None or is_line(entry[each]) for each in _SESSION_TEXTS)
    )


def _folded(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and _whole(value["sessions"])
        and len(_list(value["labels"])) <= MAX_LABELS
        and all(label is None or _text(label) for label in value["labels"])
    )


def _list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise TypeError("no list")
    return value


_PLAIN: dict[str, Callable[[Any], bool]] = {
    "bundle": _text,
    "replay_layer": _text,
    "replay_size": lambda value: _whole(value, MAX_PATTERNS),
    "policy": _text,
    "codec": _text,
    "learned": lambda value: all(type(each) is bool for each in _list(value)),
    "sessions": _whole,
    "history": _history,
}
_OPTIONAL: dict[str, Callable[[Any], bool]] = {
    FOLDED: _folded,
    "device": is_line,
    "bundle_version": is_line,
    BACKGROUND: lambda value: _whole(value, MAX_LABELS),
}
_SESSION_TEXTS = ("device", "bundle_version")
_OTHERS: dict[str, Callable[[Any], bool]] = {
    "labels": _labels,
    "rng": lambda value: value is None or isinstance(value, dict),
    "counter": _whole,
    "undo": lambda value: value is None or _whole(value),
    "tensors": lambda value: len(_list(value)) <= MAX_NAMED,
    "rows": lambda value: len(_list(value)) <= MAX_NAMED,
}


def _check(found: Mapping[str, Any]) -> None:
    checks = {**_PLAIN, **_OTHERS}
    for name, is_fine in checks.items():
        if name not in found:
            raise ValueError(f"it lacks {name}")
        if not is_fine(found[name]):
            raise ValueError(f"invalid {name}")
    for name, is_fine in _OPTIONAL.items():
        if found.get(name) is not None and not is_fine(found[name]):
            raise ValueError(f"invalid {name}")
    if len(found["learned"]) != len(found["labels"]):
        raise ValueError("labels and learned differ in number")
    background = found.get(BACKGROUND)
    if background is not None and not _is_taken(found["labels"], background):
        raise ValueError("the background has no label")
    folded = (found.get(FOLDED) or {"sessions": 0})["sessions"]
    if found["sessions"] != len(found["history"]) + folded:
        raise ValueError("sessions and history differ in number")


def _is_taken(labels: Sequence[str | None], slot: int) -> bool:
    return slot < len(labels) and labels[slot] is not None


def _meta_from_json(found: Mapping[str, Any]) -> StateMeta:
    return StateMeta(
        bundle=found["bundle"],
        replay_layer=found["replay_layer"],
        replay_size=found["replay_size"],
        policy=found["policy"],
        codec=found["codec"],
        labels=tuple(None if each is None else stored_label(each) for each in found["labels"]),
        learned=tuple(found["learned"]),
        rng=_rng_from_json(found["rng"]),
        sessions=found["sessions"],
        history=tuple(found["history"]),
        folded=found.get(FOLDED),
        device=found.get("device"),
        bundle_version=found.get("bundle_version"),
        background=found.get(BACKGROUND),
    )


def _file_to_json(named: NamedFile) -> dict[str, Any]:
    found = {"name": named.name, "bytes": named.file.bytes, "sha256": named.file.sha256}
    return {**found, "rows": named.rows} if named.rows else found


def _file_from_json(found: Any, kind: str) -> NamedFile:
    name, size, sha256 = found["name"], found["bytes"], found["sha256"]
    if not _FILE_NAME.fullmatch(name) or not name.startswith(kind) or not _whole(size):
        raise ValueError("an invalid file name or size")
    if not _DIGEST.fullmatch(sha256):
        raise ValueError("an invalid digest")
    rows = found["rows"] if kind == "rows-" else 0
    if not _whole(rows, MAX_PATTERNS):
        raise ValueError("an invalid row count")
    return NamedFile(name, File(sha256, size), rows)


def _rng_to_json(state: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a generator's state; numbers of 128 bits are text, because JSON readers round them."""
    if state is None:
        return None
    return {
        "kind": state["bit_generator"],
        "state": str(state["state"]["state"]),
        "inc": str(state["state"]["inc"]),
        "has_uint32": state["has_uint32"],
        "uinteger": state["uinteger"],
    }


def _rng_from_json(found: Any) -> dict[str, Any] | None:
    """Return a state for numpy, or None for the generator of another client."""
    if found is None or found.get("kind") != "PCG64":
        return None
    state, increment = (int(str(found[name])[:50]) for name in ("state", "inc"))
    rest = {name: found[name] for name in ("has_uint32", "uinteger")}
    wide = all(0 <= each < _WIDE for each in (state, increment))
    if not wide or not _whole(rest["has_uint32"], 1) or not _whole(rest["uinteger"], (1 << 32) - 1):
        raise ValueError("an invalid random generator")
    return {"bit_generator": "PCG64", "state": {"state": state, "inc": increment}, **rest}
