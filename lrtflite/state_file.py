"""The format of a state file: named arrays and a few values in JSON, in one `.npz`."""

from __future__ import annotations

import contextlib
import errno
import json
import zipfile
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import DamagedState, StateError
from lrtflite.whole_file import replacing

STATE_FORMAT = 4
# Bytes read from an archive at a time.
_CHUNK = 1 << 20
# Errors of zipfile and numpy for bytes that differ from those written. zipfile raises
# NotImplementedError for an unknown compression, and RuntimeError for an encrypted member.
_DAMAGED = (
    EOFError,
    ValueError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True)
class State:
    """The state of a learner between two sessions: named arrays, and values that fit in JSON.

    A state read from a file, `path`, may have left arrays there for `read_into`.
    """

    arrays: dict[str, NDArray[Any]]
    meta: dict[str, Any]
    path: Path | None = None

    def read_into(self, name: str, out: NDArray[Any]) -> None:
        """Read an array into `out`, which has its shape and dtype; open the file if needed."""
        if name in self.arrays:
            out[:] = self.arrays[name]
            return
        assert self.path is not None
        with _archive(self.path) as archive, archive.zip.open(f"{name}.npy") as member:
            _read_rows(member, out)


def write_state(path: Path, state: State) -> None:
    """Write a complete state file, or raise OSError."""
    told = {**state.meta, "format": STATE_FORMAT, "names": sorted(state.arrays)}
    text = json.dumps(told, sort_keys=True)
    meta = np.frombuffer(text.encode(), np.uint8)
    with (
        # Do not create a deleted state folder again, because its lock is gone too.
        replacing(path, make_folder=False) as temporary,
        temporary.open("wb") as file,
        # np.savez would leave its archive open on a full disk. The garbage collector closes it
        # later, which fails again and prints a traceback.
        zipfile.ZipFile(file, "w") as archive,
    ):
        for name, values in {"meta": meta, **state.arrays}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values)  # type: ignore[no-untyped-call]


def read_state(path: Path, *, later: Collection[str] = ()) -> State:
    """Read a state file except for the arrays named in `later`; check every checksum first."""
    with _archive(path) as archive:
        if archive.zip.testzip() is not None:
            raise zipfile.BadZipFile
        arrays = {name: archive[name] for name in archive.files if name not in later}
        meta = json.loads(arrays.pop("meta").tobytes())
        found = meta.pop("format")
        names = [name for name in archive.files if name != "meta"]
        if found == STATE_FORMAT and sorted(meta.pop("names")) != sorted(names):
            raise zipfile.BadZipFile  # an array is missing from its directory, or renamed there
    if found != STATE_FORMAT:
        raise StateError(
            f"Expected a state of format {STATE_FORMAT}, got format {found} in {path}; "
            "open a new state path, or install the version that made it"
        )
    return State(arrays, meta, path)


def _read_rows(member: IO[bytes], out: NDArray[Any]) -> None:
    np.lib.format.read_magic(member)  # type: ignore[no-untyped-call]
    header = np.lib.format.read_array_header_1_0(member)  # type: ignore[no-untyped-call]
    if header != (out.shape, False, out.dtype):
        raise ValueError(f"expected {out.shape} of {out.dtype}, got {header}")
    content, done = out.reshape(-1).view(np.uint8), 0
    while done < len(content):
        chunk = np.frombuffer(member.read(_CHUNK), np.uint8)
        if not len(chunk):
            raise EOFError
        content[done : done + len(chunk)] = chunk
        done += len(chunk)


@contextlib.contextmanager
def _archive(path: Path) -> Iterator[Any]:
    try:
        # numpy leaves a file open that it opened itself and could not read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            yield archive
    except FileNotFoundError as error:
        raise StateError(f"Expected a state file, got nothing at {path}; check the path") from error
    except _DAMAGED as error:
        raise _damaged(path) from error
    except OSError as error:
        if error.errno == errno.EINVAL:  # a damaged zip directory points before the file's start
            raise _damaged(path) from error
        raise StateError(f"Cannot read {path}: {error.strerror or error}; try again") from error


def _damaged(path: Path) -> DamagedState:
    return DamagedState(
        f"Expected a complete state file, got a damaged one: {path}; "
        "restore it from a copy, or open a new state path"
    )
