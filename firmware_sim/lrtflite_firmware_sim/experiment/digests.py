"""Digests of everything that decides a result: options, data, files and versions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from lrtflite.data.registry import SOURCES
from lrtflite.data.spec import split_spec
from lrtflite.errors import DataError
from lrtflite.files.digest import digest
from lrtflite.runtime.model import AUTO, describe_runtime, pick_runtime
from lrtflite.system.extras import installed_version
from lrtflite.system.machine import versions

# Digits of a digest that names a file; 10,000 cells share a name once in 10^11 plans.
DIGITS = 16
# Settings of a data set that are paths themselves.
PATH_SETTINGS = ("lists",)


def digest_of(value: object) -> str:
    """Return the digest of a value that JSON can hold."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def versions_here(runtime: str = AUTO, *, converts: bool = False) -> dict[str, str]:
    """Return the versions of all software that decides a result, of TensorFlow if it `converts`."""
    host = {"tensorflow": installed_version("tensorflow")} if converts else {}
    return {**versions(describe_runtime(pick_runtime(runtime))), **host}


def data_path(spec: str) -> Path | None:
    """Return the folder or file of a data set; None for one that is drawn."""
    kind, _ = split_spec(spec)
    name, _, argument = kind.partition(":")
    takes = name in SOURCES and SOURCES[name].takes
    return Path(argument).expanduser() if takes else None


def data_identity(spec: str) -> str:
    """Return a data set's spec with the digests of its files in place of its paths."""
    path = data_path(spec)
    kind, settings = split_spec(spec)
    shown = {
        key: tree_digest(Path(value).expanduser()) if key in PATH_SETTINGS else value
        for key, value in settings.items()
    }
    name = kind if path is None else f"{kind.partition(':')[0]}:{tree_digest(path)}"
    return f"{name}?{json.dumps(shown, sort_keys=True)}"


@cache
def tree_digest(path: Path) -> str:
    """Return the digest of a file, or of the names and contents of all files in a folder."""
    if path.is_file():
        return digest(path.resolve()).sha256[:DIGITS]
    if not path.is_dir():
        raise DataError(f"Expected a data set in {path}, got no such folder", "check the path")
    return digest_of([(name, digest(file.resolve()).sha256) for name, file in files_in(path)])


def files_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield every file in a folder, with its name from there, in order of the names.

    Data sets may lie behind links, which are followed; one to a folder above itself is left out.
    """
    found = _walk(folder, frozenset([folder.resolve()]))
    yield from sorted((file.relative_to(folder).as_posix(), file) for file in found)


def _walk(folder: Path, above: frozenset[Path]) -> Iterator[Path]:
    try:
        entries = list(folder.iterdir())
    except PermissionError:  # no data set reads it either
        return
    for entry in entries:
        if entry.is_file():
            yield entry
        elif entry.is_dir() and (real := entry.resolve()) not in above:
            yield from _walk(entry, above | {real})


def file_identities(options: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, str]:
    """Return the digest of each of these options that names a file."""
    given = {name: Path(str(options[name])) for name in names if options.get(name)}
    return {name: tree_digest(path) for name, path in given.items() if path.is_file()}
