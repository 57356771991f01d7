"""Files that are written whole or not at all, and known to be writable before the work begins.

All functions raise OSError; each caller turns it into an error of its own. `writing` does so for
the files that a user asks a command for.
"""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lrtflite.errors import LrtfliteError

# Pattern of the temporary files that a power cut or a SIGKILL leaves behind.
LEFTOVERS = ".*.part*"


@contextmanager
def replacing(path: str | Path, *, make_folder: bool = True) -> Iterator[Path]:
    """Yield a temporary file beside `path`, which takes the place of `path` after the block.

    The new file and its name are on the disk when this returns. If anything fails, the temporary
    file is removed and the old file stays. A link stays a link. A device such as /dev/null is
    yielded itself. `make_folder` creates the folder of `path` if need be.
    """
    if _is_device(path):
        yield Path(path)
        return
    target = Path(os.path.realpath(path))
    if make_folder and not target.parent.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
    # The suffix stays, because Keras and numpy choose the format by it.
    temporary = target.with_name(f".{target.stem}.{secrets.token_hex(4)}.part{target.suffix}")
    try:
        # Keeps to the umask, as any other new file.
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        yield temporary
        flush_file(temporary)
        temporary.replace(target)
        flush_folder(target.parent)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file with `replacing`; text is written as UTF-8."""
    with replacing(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def check_writable(path: str | Path) -> None:
    """Raise OSError unless `replacing` could write `path`; creates neither files nor folders."""
    if _is_device(path):
        return
    if Path(path).is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    check_folder(Path(os.path.realpath(path)).parent)


def check_folder(folder: str | Path) -> None:
    """Raise OSError unless files can be created in `folder`, which may have to be made first."""
    nearest = Path(os.path.realpath(folder))
    while not os.path.lexists(nearest):  # a link in a circle has no real path, and stays
        nearest = nearest.parent
    # Tried out, because permission bits do not tell of a disk that is mounted read-only.
    with tempfile.TemporaryFile(dir=nearest):
        pass


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Turn an OSError of the block into an LrtfliteError that names `path`."""
    try:
        yield
    except IsADirectoryError as error:
        raise LrtfliteError(f"Expected a file to write, got the folder {path}") from error
    except OSError as error:
        raise LrtfliteError(
            f"Cannot write {path}: {error.strerror or error}; choose another path"
        ) from error


def flush_file(path: Path) -> None:
    """Return once the content of a file is on the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Return once the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems cannot flush a folder, and say so with EINVAL.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(handle)


def _is_device(path: str | Path) -> bool:
    """Return whether `path` is there and must be written to, never replaced: /dev/null, a pipe."""
    # Not the real path: that of /dev/stdout in a pipeline is a name like pipe:[4711].
    target = Path(path)
    return target.exists() and not target.is_file() and not target.is_dir()
