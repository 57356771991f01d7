"""Take a state in and hand it out: zips of the state, of a bundle that ships it, of a model."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from lrtflite import Learner
from lrtflite.errors import DiskFull, LrtfliteError, NotOffered, StateError
from lrtflite.files.atomic import flush_folder
from lrtflite.files.scratch import FULL, scratch_folder
from lrtflite.system.extras import missing
from lrtflite_serve.service.archive import pack, state_files, unpack_state

# Prefix of the folder in which an uploaded state is unpacked, next to the state.
UPLOAD_PREFIX = ".upload-"
# Seconds that the export of a model may take.
PATIENCE = 600.0

Open = Callable[[Path, bool], Learner]


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


def pack_state(folder: Path, out: Path) -> None:
    """Write the zip of a state folder that nobody is changing."""
    with disk_errors("pack the state"):
        pack([(path, f"state/{path.name}") for path in state_files(folder)], out)


def pack_bundle(learner: Learner, out: Path) -> None:
    """Write the zip of a bundle that ships the learner's state."""
    with disk_errors("pack a bundle"):
        made = learner.ship(out.with_name("bundle"))
        pack([(path, f"bundle/{path.name}") for path in sorted(made.path.iterdir())], out)


def pack_model(learner: Learner, state: Path, out: Path, *, pictures: Path | None) -> None:
    """Write the zip of a plain model, made by a process of its own.

    TensorFlow and a TFLite runtime in one process can crash. With `pictures`, a folder of pictures
    per class, the model is quantised to int8.
    """
    if find_spec("tensorflow") is None:
        raise missing("tensorflow")
    folder = out.with_name("model")
    words = [sys.executable, "-m", "lrtflite_cli.main", "export", str(learner.bundle.path)]
    words += [str(state), "--out", str(folder / "model.tflite")]
    if pictures is not None:
        words += ["--quantize", "int8", "--calibrate", f"folder:{pictures}"]
    with disk_errors("pack a model"):
        folder.mkdir()
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise LrtfliteError(
                f"Cannot export the model: it took more than {PATIENCE:g} s",
                "run `lrtflite export` on a computer",
            ) from None
        if done.returncode:
            line = (done.stderr.strip().splitlines() or ["the process ended"])[-1]
            raise NotOffered(
                f"Cannot export the model: {line.removeprefix('Error: ')}",
                "run `lrtflite export` on a computer",
            )
        pack([(path, path.name) for path in sorted(folder.iterdir())], out)


def can_export_model() -> bool:
    return find_spec("tensorflow") is not None


@contextmanager
def unpacked(archive: Path, state: Path, opened: Open) -> Iterator[Path]:
    """Yield a folder with an uploaded state that `opened(folder, read_only)` has opened once.

    The folder is next to the state, on its file system, and is removed unless it was moved.
    """
    with (
        disk_errors("take the state"),
        scratch_folder(prefix=UPLOAD_PREFIX, parent=state.parent) as scratch,
    ):
        folder = scratch / "state"
        folder.mkdir()
        unpack_state(archive, folder)
        opened(folder, True).close()
        (folder / "checked.json").unlink(missing_ok=True)
        yield folder


def swap(new: Path, state: Path) -> Path:
    """Put the folder `new` in the place of a state, and return the new path of the old one."""
    aside = free_name(state)
    with disk_errors("set the state aside"):
        state.rename(aside)
        try:
            new.rename(state)
        except BaseException:
            aside.rename(state)
            raise
        flush_folder(state.parent)
    return aside


def swap_back(aside: Path, state: Path) -> None:
    """Undo `swap`; what was put there gets the name of a refused state."""
    state.rename(free_name(state, word="refused"))
    aside.rename(state)
    flush_folder(state.parent)


def free_name(path: Path, *, word: str = "before") -> Path:
    """Return a name next to `path` that nothing has, with the time in it."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1000):
        found = path.with_name(f"{path.name}-{word}-{stamp}" + (f"-{number}" if number else ""))
        if not os.path.lexists(found):
            return found
    raise OSError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
