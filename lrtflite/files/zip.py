"""Read members of a zip archive that somebody else may have made, within limits of RAM.

The directory of an archive may lie about sizes, list a member a million times, or name a
compression whose steps have no limit. Members are only ever read into RAM, never written to disk.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib

# Maximum number of members of an archive; each entry of its directory begins with this mark.
MAX_MEMBERS, _ENTRY = 65_536, b"PK\x01\x02"
# Bit of a member's flags that says that its content is encrypted.
_ENCRYPTED = 1
# Errors of zipfile, zlib, numpy, h5py and json for malformed bytes.
MALFORMED = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    RuntimeError,
    SyntaxError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


class ZipContent:
    """An archive in RAM; methods raise one of `MALFORMED` for malformed bytes."""

    def __init__(self, content: bytes) -> None:
        # Before zipfile makes an object of each entry.
        if content.count(_ENTRY) > MAX_MEMBERS:
            raise ValueError(f"more than {MAX_MEMBERS:,} members")
        self._archive = zipfile.ZipFile(io.BytesIO(content))
        entries = self._archive.infolist()
        self._members = {member.filename: member for member in entries}
        self.has_repeats = len(entries) > len(self._members)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def size(self, name: str) -> int:
        """Return the size of a member as the directory gives it."""
        return self._member(name).file_size

    def is_compressed(self, name: str) -> bool:
        return self._member(name).compress_type != zipfile.ZIP_STORED

    def is_encrypted(self, name: str) -> bool:
        return bool(self._member(name).flag_bits & _ENCRYPTED)

    def is_link(self, name: str) -> bool:
        """Return whether a member stands for a symbolic link, as archivers on Unix write them."""
        return stat.S_ISLNK(self._member(name).external_attr >> 16)

    def read(self, name: str, *, most: int) -> bytes:
        """Return the content of a member of at most `most` bytes."""
        member = self._member(name)
        # zipfile reads the other kinds in steps of any size.
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"compression {member.compress_type} of {name[:40]!r}")
        if member.file_size > most:
            raise ValueError(f"{name[:40]} of more than {most:,} bytes")
        with self._archive.open(member) as file:
            content = file.read(member.file_size + 1)
        if len(content) != member.file_size:
            raise ValueError(f"{name[:40]!r} of another size than the directory gives")
        return content

    def _member(self, name: str) -> zipfile.ZipInfo:
        if name not in self._members:
            raise ValueError(f"{name[:40]} is missing")
        return self._members[name]
