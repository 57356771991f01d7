"""A file of a bundle, on disk or as bytes in RAM that were checked already."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from lrtflite.files.reading import BytesSource, FileSource, Source, read_whole


@dataclass(frozen=True)
class BundleFile:
    """The path of a file and, where they were checked, the bytes to use in its place.

    INVARIANT: whoever has `checked` bytes never reads the path, where another file may be by now.
    """

    path: Path
    checked: bytes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, file: Path | BundleFile) -> BundleFile:
        """Return a file as it is, or the file at a path."""
        return file if isinstance(file, BundleFile) else cls(file)

    def read(self, *, most: int) -> bytes:
        """Return the bytes; like `read_whole` for a file on disk."""
        return read_whole(self.path, most=most) if self.checked is None else self.checked

    def source(self) -> Source:
        """Return the bytes to read at any place; raise OSError or NotRegular like `FileSource`."""
        if self.checked is None:
            return FileSource(self.path)
        return BytesSource(self.checked, str(self.path))

    def copy_to(self, target: Path) -> None:
        """Write a copy, or raise OSError."""
        if self.checked is None:
            shutil.copy(self.path, target)
        else:
            target.write_bytes(self.checked)
