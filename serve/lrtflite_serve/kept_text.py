"""Texts that are made once and kept in a file beside the state."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from re import Pattern

from lrtflite.errors import LrtfliteError
from lrtflite.files.atomic import write_atomic, writing
from lrtflite.files.reading import read_whole

MAX_BYTES = 1000


def kept_text(
    path: Path, form: Pattern[str], make: Callable[[], str], *, what: str, private: bool = False
) -> str:
    """Return the text of a file; make it if the file is missing.

    `form` is the pattern of the text, and `what` describes it in an error. With `private`, only
    the owner may read the file.
    """
    if os.path.lexists(path):
        try:
            found = read_whole(path, most=MAX_BYTES).decode().strip()
        except (OSError, ValueError) as error:
            raise LrtfliteError(f"Cannot read {path}: {error}", "remove it") from error
        if private:
            check_private(path)
        if not form.fullmatch(found):
            raise LrtfliteError(
                f"Expected {what} in {path}, got another text", "remove the file to get a new one"
            )
        return found
    text = make()
    with writing(path):
        write_atomic(path, f"{text}\n", mode=0o600 if private else 0o666)
    return text


def check_private(path: Path) -> None:
    """Raise LrtfliteError if anybody but this user can read or write a file, or owns it."""
    try:
        found = path.lstat()
    except OSError as error:
        raise LrtfliteError(f"Cannot read {path}: {error.strerror}", "remove it") from error
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise LrtfliteError(
            f"Expected {path} to be for its owner only, got rights {found.st_mode & 0o777:o} of "
            f"user {found.st_uid}",
            "remove the file to get a new one, or run chmod 600 if nobody else has read it",
        )
