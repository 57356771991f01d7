"""Check every file of a data set before use, and name the files that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Protocol, runtime_checkable

from lrtflite.data.listing import first_few
from lrtflite.data.media import count_frames
from lrtflite.data.source import FrameSource
from lrtflite.errors import DataError, UnreadableFile
from lrtflite.progress import OnProgress, Phase, Progress


@runtime_checkable
class CheckedSource(FrameSource, Protocol):
    """A source of files that were checked; `skipped` names the files that were left out."""

    @property
    def skipped(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class FileCheck:
    """The frames in each readable file, and the reason why each other file cannot be read."""

    lengths: dict[Path, int]
    faults: dict[Path, str]

    def skipped(self, root: Path) -> tuple[str, ...]:
        """Name the unreadable files, relative to `root`: `mug/1.png (empty)`."""
        return tuple(f"{path.relative_to(root)} ({why})" for path, why in self.faults.items())


def look_at(
    files: Sequence[Path],
    *,
    count: Callable[[Path], int] = count_frames,
    on_progress: OnProgress | None = None,
) -> FileCheck:
    """Count the frames of each file, calling `on_progress` after each; see `count_frames`."""
    look = FileCheck({}, {})
    for number, path in enumerate(files, start=1):
        try:
            look.lengths[path] = count(path)
        except UnreadableFile as error:
            look.faults[path] = error.reason
        if on_progress is not None:
            on_progress(Progress(Phase.CHECK, number, len(files)))
    return look


def refuse_unreadable(look: FileCheck, root: Path, *, name: str) -> None:
    """Raise DataError if the data set `name` has an unreadable file."""
    if look.faults:
        total = len(look.lengths) + len(look.faults)
        raise DataError(
            f"Expected readable files in {name}, got {len(look.faults)} of {total} that cannot be "
            f"read: {first_few(look.skipped(root))}",
            "replace or remove them, or add --skip-unreadable",
        )


def skipped_files(source: FrameSource) -> tuple[str, ...]:
    """Return the names of the files that were left out of a source."""
    return source.skipped if isinstance(source, CheckedSource) else ()


def skipped_note(source: FrameSource) -> str | None:
    """Return a remark on the files left out of a source; None if none were."""
    skipped = skipped_files(source)
    were = "file was" if len(skipped) == 1 else "files were"
    return f"{len(skipped)} unreadable {were} left out: {first_few(skipped)}." if skipped else None


def entries_of(folder: Path) -> list[Path]:
    """Return the entries of a folder, in any order; raise DataError if it cannot be listed."""
    try:
        return list(folder.iterdir())
    except OSError as error:
        raise DataError(
            f"Expected a folder that can be listed, got {folder} ({error.strerror or error})",
            "check its permissions",
        ) from error
