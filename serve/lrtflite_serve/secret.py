"""The token of a server that others on the network reach: made once, kept beside the state."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from lrtflite.errors import LrtfliteError
from lrtflite.files.atomic import write_atomic, writing
from lrtflite.files.reading import read_whole

_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,128}", re.ASCII)
BYTES = 18


def kept_token(path: Path) -> str:
    """Return the token in a file that only this user can read; make it if it is missing."""
    if path.exists():
        try:
            found = read_whole(path, most=1000).decode().strip()
        except (OSError, ValueError) as error:
            raise LrtfliteError(f"Cannot read {path}: {error}", "remove it") from error
        if not _TOKEN.fullmatch(found):
            raise LrtfliteError(
                f"Expected a token of 16 to 128 letters and digits in {path}, got another text",
                "remove the file to get a new token",
            )
        return found
    token = secrets.token_urlsafe(BYTES)
    with writing(path):
        write_atomic(path, f"{token}\n", mode=0o600)
    return token
