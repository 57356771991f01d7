"""Write files completely or not at all, and check beforehand that they can be written.

Functions raise OSError, and callers turn it into an error of this project. `writing` does so for
files that a user names in a command.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lrtflite.errors import LrtfliteError
from lrtflite.files.temporary_names import PROBE, part_name


@contextmanager
def replacing(path: str | Path, *, make_folder: bool = True, mode: int = 0o666) -> Iterator[Path]:
    """Yield a temporary file in the folder of `path`; after the block, replace `path` with it.

    The new file and its name are on the disk when this returns. On any failure, the temporary file
    is removed and the old file stays. A link stays a link. For a device such as /dev/null, yield
    `path` itself. `make_folder` creates the folder of `path` if necessary. The umask takes rights
    from `mode`, as for any other new file.
    """
    if _is_device(path):
        yield Path(path)
        return
    target = Path(os.path.realpath(path))
    if make_folder and not target.parent.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(part_name(target.name))
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        yield temporary
        flush_file(temporary)
        temporary.replace(target)
        flush_folder(target.parent)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def write_atomic(path: str | Path, content: str | bytes, *, mode: int = 0o666) -> None:
    """Write a file with `replacing`; text is written as UTF-8."""
    with replacing(path, mode=mode) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def check_writable(path: str | Path) -> None:
    """Raise OSError unless `replacing` could write `path`; create neither files nor folders."""
    if _is_device(path):
        return
    if Path(path).is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    check_folder(Path(os.path.realpath(path)).parent)


def check_folder(folder: str | Path) -> None:
    """Raise OSError unless files can be created in `folder`, or in a `folder` yet to be made."""
    nearest = Path(os.path.realpath(folder))
    while not os.path.lexists(nearest):  # a circular link has no real path, and stays
        nearest = nearest.parent
    # Create a file, because permission bits do not show that a disk is mounted read-only.
    prefix, suffix = PROBE
    with tempfile.TemporaryFile(dir=nearest, prefix=prefix, suffix=suffix):
        pass


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Turn an OSError of the block into an LrtfliteError that names `path`."""
    try:
        yield
    except IsADirectoryError as error:
        raise LrtfliteError(
            f"Expected a file to write, got the folder {path}", "choose another path"
        ) from error
    except OSError as error:
        raise LrtfliteError(
            f"Cannot write {path}: {error.strerror or error}", "choose another path"
        ) from error


def flush_file(path: Path) -> None:
    """Return once the content of a file is on the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_folder(folder: Path) -> None:
    """Return once the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems cannot flush a folder and raise EINVAL.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(handle)


def _is_device(path: str | Path) -> bool:
    """Return whether `path` is a device or pipe, which is written to and never replaced."""
    # The real path of /dev/stdout in a pipeline is a name like pipe:[4711], so do not resolve it.
    target = Path(path)
    return target.exists() and not target.is_file() and not target.is_dir()
