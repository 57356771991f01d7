"""Pictures outside a data set, named one by one or as a folder of pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lrtflite.data.folders.classes import media_files
from lrtflite.data.listing import first_few
from lrtflite.data.media import ANIMATIONS, STILLS, VIDEOS
from lrtflite.data.source import Frame
from lrtflite.errors import DataError, UnreadableFile
from lrtflite.frames.image_file import read_image
from lrtflite.progress import OnProgress, Phase, Progress

# Maximum number of unreadable pictures that an error names.
_NAMED = 8


@dataclass(frozen=True)
class Pictures:
    """The frames of pictures that were read, and the reason why each other one was not."""

    frames: dict[Path, Frame]
    unreadable: dict[Path, str]


def named(unreadable: Mapping[Path, str]) -> tuple[str, ...]:
    """Name the unreadable pictures: `mug/1.png (empty)`."""
    return tuple(f"{path} ({reason})" for path, reason in unreadable.items())


def refuse_pictures(unreadable: Mapping[Path, str], total: int, *, advice: str) -> None:
    """Raise DataError, which ends in `advice`, if one of `total` pictures could not be read."""
    if unreadable:
        raise DataError(
            f"Expected readable pictures, got {len(unreadable)} of {total} that cannot be read: "
            f"{first_few(named(unreadable), _NAMED)}",
            advice,
        )


def find_pictures(paths: Sequence[Path]) -> list[Path]:
    """Return files as they are, and the pictures in each folder by name.

    A file that is named twice comes once. Raise DataError for a video, and for a folder with
    anything but pictures in it.
    """
    found: list[Path] = []
    for path in paths:
        if path.suffix.lower() in VIDEOS and path.is_file():
            raise DataError(
                f"Expected pictures, got the video {path}",
                "save some of its frames as pictures, or use it in a data set",
            )
        found += media_files(path, STILLS + ANIMATIONS) if path.is_dir() else [path]
    return list(dict.fromkeys(found))


def read_pictures(
    files: Sequence[Path], size: int, *, on_progress: OnProgress | None = None
) -> Pictures:
    """Read pictures as frames (size, size, 3), calling `on_progress` after each."""
    pictures = Pictures({}, {})
    for number, path in enumerate(files, start=1):
        try:
            pictures.frames[path] = read_image(path, size)
        except UnreadableFile as error:
            pictures.unreadable[path] = error.reason
        if on_progress is not None:
            on_progress(Progress(Phase.READ, number, len(files)))
    return pictures
