"""The folders of classes in a data set, and the media files in each.

things/
    mug/     IMG_1.jpg  IMG_2.jpg  kitchen.mp4
    stapler/ a.png      b.png      c.png
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lrtflite.data.media import MEDIA, STILLS, read_frames
from lrtflite.data.source import Clip, Frame
from lrtflite.data.unreadable import entries_of
from lrtflite.errors import DataError, InputError, problem_of
from lrtflite.labels import MAX_CHARACTERS, check_label, new_label

# Suffixes of files that cameras, annotation tools and file managers leave next to pictures.
COMPANIONS = (".txt", ".md", ".json", ".csv", ".xml", ".yaml", ".yml", ".aae", ".db", ".ini")


def class_folders(path: Path) -> dict[str, Path]:
    """Return the folder of each class, in the order of the class names."""
    if not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise DataError(
            f"Expected a folder with one folder of pictures per class, got {path}, which {what}",
            "check the path",
        )
    entries = [entry for entry in entries_of(path) if not entry.name.startswith(".")]
    folders: dict[str, Path] = {}
    for folder in sorted((entry for entry in entries if entry.is_dir()), key=by_name):
        name = _class_name(folder, folders)
        if name in folders:
            raise DataError(
                f"Expected one folder per class in {path}, got two named {name!r} whose accents "
                "are encoded differently",
                "merge them",
            )
        folders[name] = folder
    if not folders:
        loose = sum(1 for entry in entries if entry.suffix.lower() in MEDIA)
        what = f"{loose} pictures directly in it" if loose else "no folder in it"
        raise DataError(
            f"Expected one folder of pictures per class in {path}, got {what}",
            "make a folder for each class and move its pictures there",
        )
    return folders


def _class_name(folder: Path, taken: Iterable[str]) -> str:
    """Return the class name of a folder, as the learner will spell it; `taken` are others."""
    try:
        name = check_label(folder.name)
    except InputError as error:
        raise DataError(
            f"Expected class names as folder names in {folder.parent}, one line of at most "
            f"{MAX_CHARACTERS} characters, got {folder.name[:40]!r}",
            "rename it",
        ) from error
    try:
        return new_label(name, taken)
    except InputError as error:
        problem = problem_of(error)
        raise DataError(
            f"{problem}, the name of a folder in {folder.parent}", "rename the folder"
        ) from error


def by_name(path: Path) -> str:
    """Return the sort key of a path: its name in NFC, because macOS decomposes accents."""
    return unicodedata.normalize("NFC", path.name)


def media_files(folder: Path, suffixes: Sequence[str] = MEDIA) -> list[Path]:
    """Return a folder's files by name; raise DataError for a folder in it, or another kind."""
    wanted = "images or videos" if suffixes == MEDIA else "images"
    files = []
    for entry in sorted(entries_of(folder), key=by_name):
        suffix = entry.suffix.lower()
        if entry.name.startswith(".") or (suffix in COMPANIONS and entry.is_file()):
            continue
        if entry.is_dir() or suffix not in suffixes:
            kinds = " ".join(suffix[1:] for suffix in suffixes)
            what = "the folder" if entry.is_dir() else "the file"
            raise DataError(
                f"Expected {wanted} in {folder} ({kinds}), got {what} {entry.name}",
                "convert it or move it elsewhere",
            )
        files.append(entry)
    if not files:
        raise DataError(f"Expected {wanted} in {folder}, got none", "add some or remove it")
    return files


def media_clip(label: int, name: str, file: Path, *, start: int, stop: int, size: int) -> Clip:
    """Return the frames of a file from `start` to before `stop` as a clip."""

    def reader(indices: Sequence[int]) -> Iterator[Frame]:
        return read_frames(file, [start + i for i in indices], size)

    is_still = file.suffix.lower() in STILLS
    return Clip(label, name, stop - start, reader, files=is_still, path=file)
