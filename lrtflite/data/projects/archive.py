"""Read pictures out of a zip archive that somebody else may have made, within limits.

Nothing is unpacked to disk: a picture is read into RAM when it is needed.
"""

from __future__ import annotations

from pathlib import Path

from lrtflite.errors import DataError, LrtfliteError, UnreadableFile
from lrtflite.files.keras import first_line
from lrtflite.files.reading import read_whole
from lrtflite.files.zip import MALFORMED, ZipContent

# Maximum number of bytes in an archive, in one picture of it, and in all of its pictures together:
# a small archive can unpack to a thousand times its size.
MAX_BYTES, MAX_PICTURE, MAX_UNPACKED = 1 << 29, 1 << 26, 1 << 32
# Maximum number of bytes in a manifest.
MAX_MANIFEST = 1 << 20


class Archive:
    """A zip of pictures in RAM. Errors name the file at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._content = _opened(path)
        self.names = tuple(name for name in self._content.names if not name.endswith("/"))
        for name in self._content.names:
            self._check_name(name)
        if self._content.has_repeats:
            raise self._refused("a member twice")
        unpacked = sum(map(self._content.size, self.names))
        if unpacked > MAX_UNPACKED:
            raise self._refused(f"{unpacked:,} bytes unpacked, more than {MAX_UNPACKED:,}")

    def manifest(self, name: str) -> bytes:
        """Return a small text of the archive."""
        try:
            return self._content.read(name, most=MAX_MANIFEST)
        except MALFORMED as error:
            raise self._refused(first_line(error)) from error

    def picture(self, name: str) -> bytes:
        """Return the content of a picture, or raise UnreadableFile."""
        try:
            return self._content.read(name, most=MAX_PICTURE)
        except MALFORMED as error:
            reason = first_line(error)
            raise UnreadableFile(
                f"Expected a readable image, got {self.path / name} ({reason})",
                "replace or remove it",
                reason=reason,
            ) from error

    def _check_name(self, name: str) -> None:
        """Raise DataError for a name that leads elsewhere, a link, or an encrypted member."""
        parts = name.replace("\\", "/").split("/")
        if name.startswith(("/", "\\")) or ".." in parts:
            raise self._refused(f"the name {name[:80]!r}, which leads out of it")
        if self._content.is_link(name):
            raise self._refused(f"the link {name[:80]!r}")
        if self._content.is_encrypted(name):
            raise self._refused(f"the encrypted file {name[:80]!r}")

    def _refused(self, got: str) -> DataError:
        return DataError(
            f"Expected a Teachable Machine project or a zip of class folders in {self.path}, got "
            f"{got}",
            "save it again, or unpack it and give folder:PATH",
        )


def _opened(path: Path) -> ZipContent:
    if path.is_dir() or not path.exists():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(
            f"Expected a Teachable Machine project (.tm) or a zip file, got {path}, which {what}",
            f"write folder:{path}" if path.is_dir() else "check the path",
        )
    try:
        return ZipContent(read_whole(path.resolve(), most=MAX_BYTES))
    except LrtfliteError as error:
        raise DataError(error.problem, "give a .tm or .zip file of at most 512 MB") from error
    except MALFORMED as error:
        raise DataError(
            f"Expected a Teachable Machine project (.tm) or a zip file, got {path} "
            f"({first_line(error)})",
            "save the project again",
        ) from error
