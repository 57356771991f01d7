"""Kept pictures of a service: those of the library, and what undo has to take back.

The pictures of a forgotten class wait in a hidden folder until the next change, for undo.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from lrtflite.errors import InputError, Missing
from lrtflite.pictures import KeptPicture, KeptPictures

# Name of the hidden folder with the pictures of a forgotten class.
_FORGOTTEN = ".forgotten-{}"
_NAME = re.compile(r"\.forgotten-(\d+)", re.ASCII)


class Album:
    """The pictures in a folder beside the state; see `KeptPictures` for its layout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept = KeptPictures(folder)
        # Pictures that undo deletes.
        self._added: list[KeptPicture] = []

    def ids(self, slot: int) -> list[str]:
        """Return the pictures of a slot, oldest first."""
        return [picture.id for picture in self.kept.of(slot)]

    def count(self, slot: int) -> int:
        return len(self.kept.of(slot))

    def content(self, picture: str) -> bytes:
        """Return the bytes of a PNG or JPEG file."""
        return self._find(picture).content()

    def add(self, slot: int, contents: Sequence[bytes], *, new: bool) -> None:
        """Keep the pictures of a lesson; a new class has no others."""
        self.settle()
        if new:
            self.kept.forget(slot)
        before = {picture.path for picture in self.kept.of(slot)}
        for content in contents:
            picture = self.kept.add(slot, content)
            if picture.path not in before:
                self._added.append(picture)

    def move(self, picture: str, slot: int) -> None:
        """Put a picture into another class; undo does not touch it any more."""
        found = self._find(picture)
        self._added = [each for each in self._added if each != found]
        self.kept.move(found, slot)

    def delete(self, picture: str) -> None:
        found = self._find(picture)
        self._added = [each for each in self._added if each != found]
        self.kept.delete(found)

    def forget(self, slot: int) -> None:
        """Hide the pictures of a slot until the next change."""
        self.settle()
        folder = self._of(slot)
        if folder is not None:
            folder.rename(self.folder / _FORGOTTEN.format(slot))

    def undo(self) -> None:
        """Delete the pictures of the last lesson, or bring back those of a forgotten class."""
        for picture in self._added:
            with suppress(InputError):  # it is gone already
                self.kept.delete(picture)
        self._added = []
        for folder, slot in self._hidden():
            if self._of(slot) is None:
                folder.rename(self.folder / f"slot-{slot:02d}")

    def settle(self) -> None:
        """Give up what undo would bring back: another change was made."""
        self._added = []
        for folder, _ in self._hidden():
            shutil.rmtree(folder, ignore_errors=True)

    def _find(self, picture: str) -> KeptPicture:
        try:
            return self.kept.find(picture)
        except InputError as error:
            raise Missing(error.problem, error.advice) from error

    def _of(self, slot: int) -> Path | None:
        """Return the folder of a slot if it has pictures."""
        pictures = self.kept.of(slot)
        return pictures[0].path.parent if pictures else None

    def _hidden(self) -> list[tuple[Path, int]]:
        if not self.folder.is_dir():
            return []
        found = ((path, _NAME.fullmatch(path.name)) for path in self.folder.iterdir())
        return [(path, int(match[1])) for path, match in found if match and path.is_dir()]


def type_of(content: bytes) -> str:
    """Return the type of a kept picture."""
    return "image/png" if content.startswith(b"\x89PNG") else "image/jpeg"
