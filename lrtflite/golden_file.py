"""Read `golden.npz`, an archive that somebody else may have made, within limits."""

from __future__ import annotations

import io
import math
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.arguments import printable
from lrtflite.errors import BundleError, LrtfliteError
from lrtflite.files.reading import read_whole
from lrtflite.golden import Arrays

# Maximum number of bytes in the file, and of all its arrays together.
MOST_BYTES = 1 << 28
# Errors of zipfile and numpy for malformed bytes.
_ODD = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    SyntaxError,
    EOFError,
    IndexError,
    AttributeError,
    OverflowError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
    LrtfliteError,
)


def read_golden(path: Path, content: bytes | None = None) -> Arrays:
    """Read `golden.npz`, or raise BundleError; `content` has its bytes if they were checked."""
    try:
        whole = read_whole(path, most=MOST_BYTES) if content is None else content
        with zipfile.ZipFile(io.BytesIO(whole)) as archive:
            if sum(member.file_size for member in archive.infolist()) > MOST_BYTES:
                raise ValueError(f"more than {MOST_BYTES:,} bytes")
            return {
                member.filename[: -len(".npy")]: _array(archive, member)
                for member in archive.infolist()
            }
    except _ODD as error:
        problem = printable(str(error).partition("; ")[0])[:200]
        raise BundleError(
            f"Cannot read the golden vectors {path}: {problem}; copy the bundle again"
        ) from error


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    if not member.filename.endswith(".npy"):
        raise ValueError(f"a file {member.filename[:40]!r}")
    with archive.open(member) as file:
        raw = file.read(member.file_size + 1)
    reader = io.BytesIO(raw)
    version = np.lib.format.read_magic(reader)  # type: ignore[no-untyped-call]
    if version != (1, 0):
        raise ValueError(f"version {version} of an array")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(reader)  # type: ignore[no-untyped-call]
    rest = len(raw) - reader.tell()
    # Before an array of this shape is made.
    if dtype.hasobject or fortran or math.prod(shape) * dtype.itemsize != rest:
        raise ValueError(f"an odd array {member.filename[:40]!r}")
    return np.frombuffer(raw, dtype, offset=reader.tell()).reshape(shape)
