"""`folder:PATH`: one folder of images or videos per class, some of each class held out for testing.

things/
    mug/     IMG_1.jpg  IMG_2.jpg  kitchen.mp4
    stapler/ a.png      b.png      c.png
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from lrtflite.data.choice import ClassChoice, pick_classes
from lrtflite.data.media import ANIMATIONS, MEDIA, STILLS, VIDEOS, frame_rate, read_frames
from lrtflite.data.only_video import divide, held_out, only_video_note
from lrtflite.data.source import Clip, Frame, OnFile
from lrtflite.data.spec import check_settings
from lrtflite.data.unreadable import entries_of, look_at, refuse_unreadable
from lrtflite.errors import DataError, InputError
from lrtflite.slots import MOST_CHARACTERS, check_label

# Left behind beside pictures by cameras, annotation tools and file managers.
COMPANIONS = (".txt", ".md", ".json", ".csv", ".xml", ".yaml", ".yml", ".aae", ".db", ".ini")


class FolderSource:
    """Pictures in one folder per class, classes and files in the order of their names.

    In each class `test_fraction` of the files (rounded, at least one) is held out, drawn by `seed`
    and the class's name, so that another class more or less changes nothing. A video is on one
    side only, unless it is all a class has: then its last part is held out, after a gap, and
    `notes` says so. Classes that `choice` leaves out are not looked at.

    Every file is looked at first. An unreadable one is an error; with `skip_unreadable` it is left
    out and named in `skipped`, after it took part in the draw: the others stay on their side,
    unless that leaves the other side empty.
    """

    def __init__(
        self,
        path: Path,
        *,
        size: int = 128,
        seed: int = 0,
        test_fraction: float = 1 / 3,
        choice: ClassChoice | None = None,
        skip_unreadable: bool = False,
        on_file: OnFile | None = None,
    ) -> None:
        if not 0 < test_fraction < 1:
            raise DataError(
                f"Expected a held-out fraction between 0 and 1, got {test_fraction}; "
                "write folder:PATH?test=0.33"
            )
        self.name = f"folder:{path}"
        self.size = size
        folders = _class_folders(path)
        labels = pick_classes(choice, tuple(folders), of=self.name)
        self.classes = tuple(tuple(folders)[label] for label in labels)
        files = [_media_files(folders[name]) for name in self.classes]
        look = look_at([file for of_class in files for file in of_class], on_file=on_file)
        if not skip_unreadable:
            refuse_unreadable(look, path, name=self.name)
        self.skipped = look.skipped(path)
        self._train: list[Clip] = []
        self._test: list[Clip] = []
        self._only_videos: list[str] = []
        for label, (name, of_class) in enumerate(zip(self.classes, files)):
            rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
            self._split(label, of_class, look.lengths, test_fraction, rng)
        self.notes = (
            (only_video_note(self._only_videos, test_fraction),) if self._only_videos else ()
        )

    def train_clips(self) -> Sequence[Clip]:
        return tuple(self._train)

    def test_clips(self) -> Sequence[Clip]:
        return tuple(self._test)

    def _split(
        self,
        label: int,
        files: list[Path],
        lengths: dict[Path, int],
        test_fraction: float,
        rng: np.random.Generator,
    ) -> None:
        """Divide a class; `lengths` has the frames of the files that can be read."""
        drawn = [files[i] for i in rng.permutation(len(files))]
        cut = held_out(len(files), test_fraction) if len(files) > 1 else 0
        test = [file for file in drawn[:cut] if file in lengths]
        train = [file for file in drawn[cut:] if file in lengths]
        if len(test) + len(train) < 2:
            self._cut_in_two(label, files, lengths, test_fraction)
            return
        if not test:
            test.append(train.pop(0))
        if not train:
            train.append(test.pop())
        self._test += [
            self._clip(label, file, 0, lengths[file]) for file in sorted(test, key=_order)
        ]
        self._train += [
            self._clip(label, file, 0, lengths[file]) for file in sorted(train, key=_order)
        ]

    def _cut_in_two(
        self, label: int, files: list[Path], lengths: dict[Path, int], test_fraction: float
    ) -> None:
        """Hold out the last part of a class's only video."""
        readable = [file for file in files if file in lengths]
        if sum(lengths[file] for file in readable) < 2:
            got = f"only {readable[0].name}" if readable else "none"
            if len(files) > len(readable):
                got += f", as {len(files) - len(readable)} of {len(files)} cannot be read"
            raise DataError(
                f"Expected at least 2 images or a video in {files[0].parent} (one to learn from, "
                f"one to test with), got {got}; add some"
            )
        [file] = readable
        stop, start = divide(lengths[file], test_fraction, frame_rate(file))
        self._train.append(self._clip(label, file, 0, stop))
        self._test.append(self._clip(label, file, start, lengths[file]))
        self._only_videos.append(self.classes[label])

    def _clip(self, label: int, file: Path, start: int, stop: int) -> Clip:
        size = self.size

        def reader(indices: Sequence[int]) -> Iterator[Frame]:
            return read_frames(file, [start + i for i in indices], size)

        return Clip(label, f"{self.classes[label]}/{file.name}", stop - start, reader)


def open_folder(
    path: Path,
    settings: Mapping[str, str],
    *,
    size: int,
    seed: int,
    choice: ClassChoice | None = None,
    skip_unreadable: bool = False,
    on_file: OnFile | None = None,
) -> FolderSource:
    """`folder:PATH?test=FRACTION`."""
    check_settings("folder:PATH", settings, ["test"])
    try:
        test_fraction = float(settings.get("test", 1 / 3))
    except ValueError:
        raise DataError(
            f"Expected a number after folder:PATH?test=, got {settings['test']!r}"
        ) from None
    return FolderSource(
        path,
        size=size,
        seed=seed,
        test_fraction=test_fraction,
        choice=choice,
        skip_unreadable=skip_unreadable,
        on_file=on_file,
    )


def _class_folders(path: Path) -> dict[str, Path]:
    """Return the folder of each class, in the order of their names."""
    if not path.is_dir():
        what = "is no folder" if path.exists() else "is not there"
        raise DataError(
            f"Expected a folder with one folder of pictures per class, got {path}, which {what}"
        )
    entries = [entry for entry in entries_of(path) if not entry.name.startswith(".")]
    folders: dict[str, Path] = {}
    for folder in sorted((entry for entry in entries if entry.is_dir()), key=_order):
        name = _class_name(folder)
        if name in folders:
            raise DataError(
                f"Expected one folder for each class in {path}, got two that are named {name!r} "
                "and differ in how an accent is stored; merge them"
            )
        folders[name] = folder
    if not folders:
        loose = sum(1 for entry in entries if entry.suffix.lower() in MEDIA)
        what = f"{loose} pictures directly in it" if loose else "no folder in it"
        raise DataError(f"Expected one folder of pictures per class in {path}, got {what}")
    return folders


def _class_name(folder: Path) -> str:
    """Return a folder's name as the learner's label for it."""
    try:
        return check_label(folder.name)
    except InputError as error:
        raise DataError(
            f"Expected folders in {folder.parent} named as their class, in one line of at most "
            f"{MOST_CHARACTERS} characters, got {folder.name[:40]!r}; rename it"
        ) from error


def _order(path: Path) -> str:
    """Sort by name, whichever Unicode form the file system stores: macOS decomposes accents."""
    return unicodedata.normalize("NFC", path.name)


def _media_files(folder: Path) -> list[Path]:
    """The class's files by name. A file that is not understood is an error, never left out."""
    files = []
    for entry in sorted(entries_of(folder), key=_order):
        suffix = entry.suffix.lower()
        if entry.name.startswith(".") or (suffix in COMPANIONS and entry.is_file()):
            continue
        if entry.is_dir() or suffix not in MEDIA:
            kinds = " ".join(suffix[1:] for suffix in (*STILLS, *ANIMATIONS, *VIDEOS))
            what = "the folder" if entry.is_dir() else "the file"
            raise DataError(
                f"Expected images or videos in {folder} ({kinds}), got {what} {entry.name}; "
                "convert it or move it elsewhere"
            )
        files.append(entry)
    if not files:
        raise DataError(f"Expected images or videos in {folder}, got none; add some or remove it")
    return files
