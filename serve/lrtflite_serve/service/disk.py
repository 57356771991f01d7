"""Errors of the disk, as errors of a service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lrtflite.errors import DiskFull, LrtfliteError, StateError
from lrtflite.files.scratch import FULL


@contextmanager
def disk_errors(what: str) -> Iterator[None]:
    """Turn an error of the disk into DiskFull or StateError; `what` completes "Cannot ..."."""
    try:
        yield
    except OSError as error:
        kind = DiskFull if error.errno in FULL else StateError
        advice = "free some space, then try again" if kind is DiskFull else "check the disk"
        raise kind(f"Cannot {what}: {error.strerror or error}", advice) from error
    except LrtfliteError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in FULL:
            raise DiskFull(error.problem, error.advice or "free some space") from error
        raise
