"""Zip files of a state or a bundle: written from folders, and read from a hostile sender.

An archive may lie about sizes, name files outside its folder, hold links, or unpack to more than
the disk has. A state is a flat folder of files whose names are known, so anything else is refused.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import zipfile
from collections.abc import Iterable
from pathlib import Path

from lrtflite.errors import InputError, TooLarge
from lrtflite.files.zip import MALFORMED

# Files of a state. Not `checked.json`: it says which models of this machine were tried.
STATE_FILE = re.compile(r"(state|tensors|rows)-\d{8,12}\.safetensors", re.ASCII)
MAX_ARCHIVE, MAX_UNPACKED = 1 << 30, 1 << 30
MAX_MEMBERS = 1000
CHUNK = 1 << 18
# Bytes that begin each entry of the directory of an archive.
_ENTRY = b"PK\x01\x02"
# Bytes that stay free on the disk after unpacking.
SPARE = 1 << 20


def pack(files: Iterable[tuple[Path, str]], out: Path) -> None:
    """Write a zip of these files under these names, without compression."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED, strict_timestamps=False) as archive:
        for path, name in files:
            archive.write(path, name)


def state_files(folder: Path) -> list[Path]:
    """Return the files of a state folder that belong to the state."""
    return sorted(
        path
        for path in folder.iterdir()
        if STATE_FILE.fullmatch(path.name) and path.is_file() and not path.is_symlink()
    )


def unpack_state(archive: Path, folder: Path) -> None:
    """Unpack the files of a state into an empty folder; raise InputError for anything else."""
    try:
        _check_directory(archive)
        with zipfile.ZipFile(archive) as opened:
            members = _checked(opened.infolist())
            room = shutil.disk_usage(folder).free - SPARE
            total = sum(member.file_size for member in members)
            if total > min(MAX_UNPACKED, room):
                raise TooLarge(
                    f"Expected a state of at most {min(MAX_UNPACKED, max(room, 0)):,} bytes, got "
                    f"{total:,}",
                    "free some space, or send another state",
                )
            for member in members:
                _unpack(opened, member, folder)
    except OSError as error:
        if error.errno is not None:  # of the disk, not of the archive
            raise
        raise _malformed(error) from error
    except MALFORMED as error:
        raise _malformed(error) from error


def _check_directory(archive: Path) -> None:
    """Raise InputError for too many entries, before zipfile makes an object of each."""
    found, tail = 0, b""
    with open(archive, "rb") as file:
        while chunk := file.read(CHUNK):
            found += (tail + chunk).count(_ENTRY)
            tail = chunk[-len(_ENTRY) + 1 :]
    if found > 2 * MAX_MEMBERS:
        raise InputError(
            f"Expected at most {MAX_MEMBERS} files in the zip of a state, got more",
            "send a zip that this program made",
        )


def _checked(found: list[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    """Return the members that are files of a state; raise InputError for any other."""
    members = [member for member in found if member.filename not in ("state/",)]
    names = set()
    for member in members:
        name = member.filename.removeprefix("state/")
        mode = member.external_attr >> 16
        is_plain = not stat.S_IFMT(mode) or stat.S_ISREG(mode)
        if not STATE_FILE.fullmatch(name) or not is_plain or name in names:
            raise InputError(
                f"Expected only files of a state in the zip, got {member.filename[:60]!r}",
                "send a zip that this program made",
            )
        names.add(name)
    if not any(name.startswith("state-") for name in names):
        raise InputError("Expected the zip of a state, got one without", "send another file")
    if len(members) > MAX_MEMBERS:
        raise InputError(
            f"Expected at most {MAX_MEMBERS} files in the zip of a state, got {len(members)}",
            "send a zip that this program made",
        )
    return members


def _unpack(opened: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path) -> None:
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"compression {member.compress_type}")
    path = folder / member.filename.removeprefix("state/")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    left = member.file_size
    with os.fdopen(os.open(path, flags, 0o666), "wb") as out, opened.open(member) as file:
        while chunk := file.read(CHUNK):
            left -= len(chunk)
            if left < 0:
                break
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    if left:
        raise ValueError(f"{path.name} of another size than the directory gives")


def _malformed(error: BaseException) -> InputError:
    return InputError(
        f"Expected the zip of a state, got another file ({error})", "send a zip that was downloaded"
    )
