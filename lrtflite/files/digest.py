"""The size and the digest of a file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from lrtflite.files.reading import FileSource, each_chunk


@dataclass(frozen=True)
class File:
    """Digest and size of a file."""

    sha256: str
    bytes: int


def digest(path: Path) -> File:
    """Return the size and SHA-256 of a regular file, which is read in chunks to save RAM."""
    source = FileSource(path)
    sha = hashlib.sha256()
    for chunk in each_chunk(source, source.size):
        sha.update(chunk)
    return File(sha.hexdigest(), source.size)
