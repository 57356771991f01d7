"""Kept pictures: the frames of each lesson as files beside the state, and where they belong.

`pictures.json` says which picture belongs to which class, now and before the last change, so that
undo takes back pictures too. A file that neither list names is deleted after the next change.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lrtflite.errors import Missing, StateError
from lrtflite.files.atomic import write_atomic
from lrtflite.files.reading import read_whole

INDEX = "pictures.json"
MAX_INDEX, MAX_PICTURE = 64_000_000, 8_000_000
_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)
# Id of a picture -> the label of its class.
Places = Mapping[str, str]


@dataclass(frozen=True)
class Index:
    """The label of each picture, now and before the last change of the state."""

    now: Places
    before: Places


class KeptPictures:
    """The pictures in a folder; every change is written before it counts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._index = self._read()

    def ids(self, label: str) -> list[str]:
        """Return the pictures of a class, oldest first."""
        return [each for each, owner in self._index.now.items() if owner == label]

    def count(self, label: str) -> int:
        return len(self.ids(label))

    def owner(self, picture: str) -> str:
        """Return the label of a picture's class, or raise Missing."""
        if picture not in self._index.now:
            raise Missing("Expected the id of a kept picture, got another one", "load the list")
        return self._index.now[picture]

    def content(self, picture: str) -> bytes:
        """Return a picture as a PNG file."""
        self.owner(picture)
        try:
            return read_whole(self._path(picture), most=MAX_PICTURE)
        except OSError as error:
            raise Missing(
                f"Cannot read a kept picture: {error.strerror}", "remove it from its class"
            ) from error

    def add(self, label: str, contents: Sequence[bytes]) -> None:
        """Keep the pictures of a lesson; on any failure keep none of them."""
        made: dict[str, str] = {}
        try:
            for content in contents:
                picture = secrets.token_hex(8)
                made[picture] = label
                write_atomic(self._path(picture), content)
            self._write(Index({**self._index.now, **made}, self._index.now))
        except BaseException:
            for picture in made:
                with suppress(OSError):
                    self._path(picture).unlink()
            raise

    def move(self, picture: str, label: str) -> None:
        """Put a picture into another class, in the order of its id."""
        self.owner(picture)
        self._write(replace(self._index, now={**self._index.now, picture: label}))

    def remove(self, picture: str) -> None:
        self.owner(picture)
        now = {each: owner for each, owner in self._index.now.items() if each != picture}
        before = {each: owner for each, owner in self._index.before.items() if each != picture}
        self._write(Index(now, before))

    def rename(self, label: str, new: str | None) -> None:
        """Follow a class to its new label; None stands for a class that was forgotten."""
        now = self._index.now
        moved = {
            each: new if owner == label else owner
            for each, owner in now.items()
            if owner != label or new is not None
        }
        self._write(Index({each: owner for each, owner in moved.items() if owner}, now))

    def unchanged(self) -> None:
        """Note a change of the state that changed no picture."""
        self._write(replace(self._index, before=self._index.now))

    def undo(self) -> None:
        """Return to the pictures before the last change of the state."""
        self._write(Index(self._index.before, self._index.before))

    def _write(self, index: Index) -> None:
        text = json.dumps({"now": dict(index.now), "before": dict(index.before)})
        write_atomic(self.folder / INDEX, text)
        self._index = index
        self._sweep()

    def _sweep(self) -> None:
        """Delete the files that neither list names."""
        named = {*self._index.now, *self._index.before}
        with suppress(OSError):
            for path in self.folder.glob("*.png"):
                if _ID.fullmatch(path.stem) and path.stem not in named:
                    path.unlink()

    def _path(self, picture: str) -> Path:
        return self.folder / f"{picture}.png"

    def _read(self) -> Index:
        path = self.folder / INDEX
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                return Index({}, {})
            found = json.loads(read_whole(path, most=MAX_INDEX))
            return Index(_places(found["now"]), _places(found["before"]))
        except OSError as error:
            raise StateError(
                f"Cannot use {self.folder} for pictures: {error.strerror}", "choose another state"
            ) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(
                f"Expected a list of pictures in {path}, got another text", "move it away"
            ) from error


def _places(found: Any) -> dict[str, str]:
    pairs: Iterable[tuple[Any, Any]] = found.items()
    places = {str(picture): str(label) for picture, label in pairs}
    if not all(map(_ID.fullmatch, places)):
        raise ValueError("an id of another form")
    return places
