"""The state on disk: whole or not there, whatever happens in between.

A state is a folder of generations, `state-00000007.npz`, one per committed change. A commit writes
one with `replacing`, so that a power cut leaves the old generation or the new one and never half of
one. The generation before is kept for undo; older ones are removed after the commit.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import re
import zipfile
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import DamagedState, StateError
from lrtflite.undisturbed import undisturbed
from lrtflite.whole_file import LEFTOVERS, flush_folder, replacing

FORMAT = 4
KEPT = 2
_CHUNK = 1 << 20
_NAME = re.compile(r"state-(\d{8})\.npz")
_OWN = re.compile(r"lock|state-\d{8}\.(npz|tmp|damaged)")
# What zipfile and numpy raise for bytes that are not what was written. NotImplementedError and
# RuntimeError are zipfile's words for a compression or an encryption that nobody asked for.
_DAMAGED = (
    EOFError,
    ValueError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
_log = logging.getLogger("lrtflite")


@dataclass(frozen=True)
class State:
    """Everything that a learner is: named arrays, and what fits in JSON.

    A state that was read may have left arrays in its file, `path`, for `read_into`.
    """

    arrays: dict[str, NDArray[Any]]
    meta: dict[str, Any]
    path: Path | None = None

    def read_into(self, name: str, out: NDArray[Any]) -> None:
        """Read an array into `out`, which has its shape and dtype; the file has it if need be."""
        if name in self.arrays:
            out[:] = self.arrays[name]
            return
        assert self.path is not None
        with _archive(self.path) as archive, archive.zip.open(f"{name}.npy") as member:
            _read_rows(member, out)


def write_state(path: Path, state: State) -> None:
    """Write one generation whole, or raise OSError."""
    told = {**state.meta, "format": FORMAT, "names": sorted(state.arrays)}
    text = json.dumps(told, sort_keys=True)
    meta = np.frombuffer(text.encode(), np.uint8)
    with (
        # A state folder that was deleted is not made again: its lock is gone too.
        replacing(path, make_folder=False) as temporary,
        temporary.open("wb") as file,
        # Not np.savez: on a full disk it leaves its archive open, which then fails once more when
        # it is collected, and prints that.
        zipfile.ZipFile(file, "w") as archive,
    ):
        for name, values in {"meta": meta, **state.arrays}.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values)  # type: ignore[no-untyped-call]


def read_state(path: Path, *, later: Collection[str] = ()) -> State:
    """Read one generation, all but the arrays named in `later`; every checksum is checked first."""
    with _archive(path) as archive:
        if archive.zip.testzip() is not None:
            raise zipfile.BadZipFile
        arrays = {name: archive[name] for name in archive.files if name not in later}
        meta = json.loads(arrays.pop("meta").tobytes())
        found = meta.pop("format")
        names = [name for name in archive.files if name != "meta"]
        if found == FORMAT and sorted(meta.pop("names")) != sorted(names):
            raise zipfile.BadZipFile  # its directory has lost or renamed an array
    if found != FORMAT:
        raise StateError(
            f"Expected a state of format {FORMAT}, got format {found} in {path}; open a new state "
            "path, or install the version that made it"
        )
    return State(arrays, meta, path)


def newest_state(folder: str | Path) -> State:
    """Read the newest generation of a state folder, without taking its lock."""
    generations = _generations(Path(folder))
    if not generations:
        raise _no_state(folder)
    return read_state(generations[-1])


class Checkpoint:
    """A state folder, held by one learner at a time; `read_only` holds nothing and writes nothing.

    A read-only folder may belong to a learner that goes on: its newest generation can be gone by
    the time it is read, and a later one be there.
    """

    def __init__(self, folder: str | Path, *, read_only: bool = False) -> None:
        self.folder = Path(folder)
        self._read_only = read_only
        self._lock: IO[str] | None = None
        if read_only:
            if not _generations(self.folder):
                raise _no_state(self.folder)
        else:
            self._take()

    def _take(self) -> None:
        advice = "to predict only, open it with read_only=True"
        with _disk_errors(f"Cannot use {self.folder} as a state folder ({advice})"):
            self.folder.mkdir(parents=True, exist_ok=True)
            names = [path.name for path in self.folder.iterdir()]
            if names and not any(map(_OWN.fullmatch, names)):
                raise StateError(
                    f"Expected a state folder, or a new or empty one, got {self.folder} with "
                    f"{min(names)} in it; give another path"
                )
            lock = (self.folder / "lock").open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise StateError(
                f"{self.folder} is in use by another learner; close that one, or use another path"
            ) from error
        self._lock = lock
        # The first is the pattern of earlier versions.
        for pattern in ("*.tmp", LEFTOVERS):
            for leftover in self.folder.glob(pattern):
                with contextlib.suppress(OSError):
                    leftover.unlink()

    def load(self, *, later: Collection[str] = ()) -> State | None:
        """The newest whole generation, or None in a new folder; `later` is as in `read_state`.

        A damaged generation is set aside under another name, and the one before it is used.
        """
        generations = _generations(self.folder)
        for path in reversed(generations):
            try:
                return read_state(path, later=later)
            except DamagedState as error:
                if path == generations[0]:
                    raise
                _log.warning("%s; using the generation before it", error)
                if not self._read_only:
                    path.replace(path.with_suffix(".damaged"))
        return None

    def commit(self, state: State) -> None:
        """Make `state` the newest generation; on any failure the present one stays."""
        generations = _generations(self.folder)
        number = _number(generations[-1]) + 1 if generations else 0
        path = self.folder / f"state-{number:08d}.npz"
        intact = f"Cannot save to {self.folder}, the state before is intact"
        # An interrupt inside zipfile would come out as a ValueError of its own.
        with _disk_errors(intact), undisturbed():
            try:
                write_state(path, state)
            except BaseException:
                # Not flushed, the new name may or may not outlive a power cut: take it back.
                path.unlink(missing_ok=True)
                raise
        for old in generations[: 1 - KEPT]:
            with contextlib.suppress(OSError):  # the next commit tries again
                old.unlink()

    def previous(self, *, later: Collection[str] = ()) -> State:
        """The generation before the newest; `later` is as in `read_state`."""
        generations = _generations(self.folder)
        if len(generations) < KEPT:
            raise StateError("Nothing to undo: no earlier state is kept")
        return read_state(generations[-2], later=later)

    def drop_newest(self) -> None:
        """Make the generation before the newest."""
        with _disk_errors(f"Cannot undo in {self.folder}"):
            _generations(self.folder)[-1].unlink()
            flush_folder(self.folder)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()


def _no_state(folder: str | Path) -> StateError:
    return StateError(
        f"Expected a state folder, got {folder} with no state-*.npz in it; check the path"
    )


def _generations(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("state-*.npz") if _NAME.fullmatch(path.name))


def _number(path: Path) -> int:
    match = _NAME.fullmatch(path.name)
    assert match is not None  # _generations lists no other names
    return int(match[1])


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
        raise StateError(f"Expected a state file, got nothing at {path}") from error
    except _DAMAGED as error:
        raise DamagedState(f"Expected a whole state file, got a damaged one: {path}") from error
    except OSError as error:
        if error.errno == errno.EINVAL:  # a damaged zip directory points before the file's start
            raise DamagedState(f"Expected a whole state file, got a damaged one: {path}") from error
        raise StateError(f"Cannot read {path}: {error.strerror or error}; try again") from error


@contextlib.contextmanager
def _disk_errors(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StateError(f"{what}: {error.strerror or error}") from error
