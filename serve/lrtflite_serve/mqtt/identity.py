"""The name of a device among others, made once and kept beside its state."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from lrtflite.errors import LrtfliteError
from lrtflite.files.atomic import write_atomic, writing
from lrtflite.files.reading import read_whole

_IDENTITY = re.compile(r"lrtflite_[0-9a-f]{8}", re.ASCII)


def kept_identity(path: Path) -> str:
    """Return the identity in a file; make it if it is missing.

    It is random: two devices with copies of one state must not answer to one name.
    """
    if path.exists():
        try:
            found = read_whole(path, most=100).decode().strip()
        except (OSError, ValueError) as error:
            raise LrtfliteError(f"Cannot read {path}: {error}", "remove it") from error
        if not _IDENTITY.fullmatch(found):
            raise LrtfliteError(
                f"Expected lrtflite_ and 8 hexadecimal digits in {path}, got another text",
                "remove the file to get a new name",
            )
        return found
    identity = f"lrtflite_{secrets.token_hex(4)}"
    with writing(path):
        write_atomic(path, f"{identity}\n")
    return identity
