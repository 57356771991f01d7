"""`folder:PATH`: one folder of images or videos per class, some of each class held out for testing.

things/
    mug/     IMG_1.jpg  IMG_2.jpg  kitchen.mp4
    stapler/ a.png      b.png      c.png
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from lrtflite.data.media import ANIMATIONS, MEDIA, STILLS, VIDEOS, count_frames, read_frames
from lrtflite.data.source import Clip, Frame, check_settings
from lrtflite.errors import DataError

# Left behind beside pictures by cameras, annotation tools and file managers.
COMPANIONS = (".txt", ".md", ".json", ".csv", ".xml", ".yaml", ".yml", ".aae", ".db", ".ini")


class FolderSource:
    """Pictures in one folder per class, classes and files in the order of their names.

    In each class `test_fraction` of the files (rounded, at least one) is held out, drawn by `seed`
    and the class's name, so that another class more or less changes nothing. A video is on one
    side only, unless it is all a class has: then its tail is held out.
    """

    def __init__(
        self, path: Path, *, size: int = 128, seed: int = 0, test_fraction: float = 1 / 3
    ) -> None:
        if not 0 < test_fraction < 1:
            raise DataError(
                f"Expected a held-out fraction between 0 and 1, got {test_fraction}; "
                "write folder:PATH?test=0.33"
            )
        self.name = f"folder:{path}"
        self.size = size
        folders = _class_folders(path)
        self.classes = tuple(folder.name for folder in folders)
        self._train: list[Clip] = []
        self._test: list[Clip] = []
        for label, folder in enumerate(folders):
            rng = np.random.default_rng([seed, zlib.crc32(folder.name.encode())])
            self._split(label, _media_files(folder), test_fraction, rng)

    def train_clips(self) -> Sequence[Clip]:
        return tuple(self._train)

    def test_clips(self) -> Sequence[Clip]:
        return tuple(self._test)

    def _split(
        self, label: int, files: list[Path], test_fraction: float, rng: np.random.Generator
    ) -> None:
        lengths = [count_frames(file) for file in files]
        if len(files) == 1:
            if lengths[0] < 2:
                raise DataError(
                    f"Expected at least 2 images or a video in {files[0].parent} (one to learn "
                    f"from, one to test with), got only {files[0].name}; add some"
                )
            cut = lengths[0] - _held_out(lengths[0], test_fraction)
            self._train.append(self._clip(label, files[0], 0, cut))
            self._test.append(self._clip(label, files[0], cut, lengths[0]))
            return
        held_out = set(rng.permutation(len(files))[: _held_out(len(files), test_fraction)].tolist())
        for i, (file, length) in enumerate(zip(files, lengths)):
            side = self._test if i in held_out else self._train
            side.append(self._clip(label, file, 0, length))

    def _clip(self, label: int, file: Path, start: int, stop: int) -> Clip:
        size = self.size

        def reader(indices: Sequence[int]) -> Iterator[Frame]:
            return read_frames(file, [start + i for i in indices], size)

        return Clip(label, f"{file.parent.name}/{file.name}", stop - start, reader)


def open_folder(path: Path, settings: Mapping[str, str], *, size: int, seed: int) -> FolderSource:
    """`folder:PATH?test=FRACTION`."""
    check_settings("folder:PATH", settings, ["test"])
    try:
        test_fraction = float(settings.get("test", 1 / 3))
    except ValueError:
        raise DataError(
            f"Expected a number after folder:PATH?test=, got {settings['test']!r}"
        ) from None
    return FolderSource(path, size=size, seed=seed, test_fraction=test_fraction)


def _held_out(count: int, fraction: float) -> int:
    """How many of `count` >= 2 are held out: rounded, and each side keeps at least one."""
    return min(max(int(count * fraction + 0.5), 1), count - 1)


def _class_folders(path: Path) -> list[Path]:
    if not path.is_dir():
        raise DataError(f"Expected a folder with one folder of pictures per class, got {path}")
    entries = [entry for entry in sorted(path.iterdir()) if not entry.name.startswith(".")]
    folders = [entry for entry in entries if entry.is_dir()]
    if not folders:
        loose = sum(1 for entry in entries if entry.suffix.lower() in MEDIA)
        what = f"{loose} pictures directly in it" if loose else "no folder in it"
        raise DataError(f"Expected one folder of pictures per class in {path}, got {what}")
    return folders


def _media_files(folder: Path) -> list[Path]:
    """The class's files by name. A file that is not understood is an error, never left out."""
    files = []
    for entry in sorted(folder.iterdir()):
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
