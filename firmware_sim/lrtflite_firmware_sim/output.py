"""Files that are written whole or not at all, and known to be writable before the work begins."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from lrtflite.errors import LrtfliteError


def check_writable(path: str | Path) -> None:
    """Raise unless a file can be made at `path`; makes its folder, and leaves no file behind."""
    target = _target(path)
    if _is_device(target):
        return
    if target.is_dir():
        raise LrtfliteError(f"Expected a file to write, got the folder {path}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise _unwritable(path, error) from error


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a temporary file beside `path`, then rename it: a reader never sees half of it."""
    target = _target(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        if _is_device(target):
            target.write_bytes(data)
            return
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(name, 0o666 & ~umask)
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _unwritable(path, error) from error


def _target(path: str | Path) -> Path:
    return Path(path).expanduser().resolve()


def _is_device(target: Path) -> bool:
    """Such as /dev/null, which must be written to and never replaced."""
    return target.exists() and not target.is_file() and not target.is_dir()


def _unwritable(path: str | Path, error: OSError) -> LrtfliteError:
    return LrtfliteError(f"Cannot write {path}: {error.strerror or error}; choose another path")
