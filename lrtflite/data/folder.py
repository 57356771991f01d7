"""`folder:PATH`: one folder of images or videos per class; some files are held out for testing.

things/
    mug/     IMG_1.jpg  IMG_2.jpg  kitchen.mp4
    stapler/ a.png      b.png      c.png
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from lrtflite.data.choice import ClassChoice, pick_classes
from lrtflite.data.media import ANIMATIONS, MEDIA, STILLS, VIDEOS, frames_per_second, read_frames
from lrtflite.data.only_video import divide, held_out, only_video_note
from lrtflite.data.source import Clip, Frame, OnFile, SourceRequest
from lrtflite.data.spec import check_settings
from lrtflite.data.unreadable import entries_of, look_at, refuse_unreadable
from lrtflite.errors import DataError, InputError
from lrtflite.labels import MOST_CHARACTERS, check_label

# Suffixes of files that cameras, annotation tools and file managers leave next to pictures.
COMPANIONS = (".txt", ".md", ".json", ".csv", ".xml", ".yaml", ".yml", ".aae", ".db", ".ini")


class FolderSource:
    """Pictures in one folder per class, classes and files in the order of their names.

    In each class `test_fraction` of the files (rounded, at least one) is held out for testing. The
    draw depends on `seed` and the class's name only, so adding another class changes nothing. A
    video is on one side only, unless it is the only file of its class: then its last part is held
    out, after a gap, and `notes` says so. Files of classes outside `choice` are not read.

    Every file is checked first. An unreadable file is an error; with `skip_unreadable` it is left
    out and named in `skipped`. Unreadable files take part in the draw, so the other files stay on
    their side, unless that would leave one side empty.
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
                "write for example folder:PATH?test=0.33"
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
        """Divide the files of a class; `lengths` has the frame count of each readable file."""
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
        stop, start = divide(lengths[file], test_fraction, frames_per_second(file))
        self._train.append(self._clip(label, file, 0, stop))
        self._test.append(self._clip(label, file, start, lengths[file]))
        self._only_videos.append(self.classes[label])

    def _clip(self, label: int, file: Path, start: int, stop: int) -> Clip:
        size = self.size

        def reader(indices: Sequence[int]) -> Iterator[Frame]:
            return read_frames(file, [start + i for i in indices], size)

        name, length = f"{self.classes[label]}/{file.name}", stop - start
        return Clip(label, name, length, reader, files=file.suffix.lower() in STILLS, path=file)


def open_folder(request: SourceRequest) -> FolderSource:
    """Open `folder:PATH?test=FRACTION`."""
    check_settings("folder:PATH", request.settings, ["test"])
    try:
        test_fraction = float(request.settings.get("test", 1 / 3))
    except ValueError:
        raise DataError(
            f"Expected a number after folder:PATH?test=, got {request.settings['test']!r}; "
            "write for example ?test=0.25"
        ) from None
    return FolderSource(
        Path(request.argument).expanduser(),
        size=request.size,
        seed=request.seed,
        test_fraction=test_fraction,
        choice=request.choice,
        skip_unreadable=request.skip_unreadable,
        on_file=request.on_file,
    )


def _class_folders(path: Path) -> dict[str, Path]:
    """Return the folder of each class, in the order of the class names."""
    if not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise DataError(
            f"Expected a folder with one folder of pictures per class, got {path}, which {what}; "
            "check the path"
        )
    entries = [entry for entry in entries_of(path) if not entry.name.startswith(".")]
    folders: dict[str, Path] = {}
    for folder in sorted((entry for entry in entries if entry.is_dir()), key=_order):
        name = _class_name(folder)
        if name in folders:
            raise DataError(
                f"Expected one folder per class in {path}, got two named {name!r} whose accents "
                "are encoded differently; merge them"
            )
        folders[name] = folder
    if not folders:
        loose = sum(1 for entry in entries if entry.suffix.lower() in MEDIA)
        what = f"{loose} pictures directly in it" if loose else "no folder in it"
        raise DataError(
            f"Expected one folder of pictures per class in {path}, got {what}; "
            "make a folder for each class and move its pictures there"
        )
    return folders


def _class_name(folder: Path) -> str:
    """Return the class name of a folder, as the learner will spell it."""
    try:
        return check_label(folder.name)
    except InputError as error:
        raise DataError(
            f"Expected class names as folder names in {folder.parent}, one line of at most "
            f"{MOST_CHARACTERS} characters, got {folder.name[:40]!r}; rename it"
        ) from error


def _order(path: Path) -> str:
    """Return the sort key of a path: its name in NFC, because macOS decomposes accents."""
    return unicodedata.normalize("NFC", path.name)


def _media_files(folder: Path) -> list[Path]:
    """Return a class's files by name; raise DataError for a file of an unknown kind."""
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
