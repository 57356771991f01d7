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

from lrtflite.data.media import ANIMATIONS, MEDIA, STILLS, VIDEOS, read_frames
from lrtflite.data.source import Clip, Frame, OnFile, check_settings
from lrtflite.data.unreadable import look_at, refuse_unreadable
from lrtflite.errors import DataError

# Left behind beside pictures by cameras, annotation tools and file managers.
COMPANIONS = (".txt", ".md", ".json", ".csv", ".xml", ".yaml", ".yml", ".aae", ".db", ".ini")


class FolderSource:
    """Pictures in one folder per class, classes and files in the order of their names.

    In each class `test_fraction` of the files (rounded, at least one) is held out, drawn by `seed`
    and the class's name, so that another class more or less changes nothing. A video is on one
    side only, unless it is all a class has: then its tail is held out.

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
        self.classes = tuple(folder.name for folder in folders)
        files = [_media_files(folder) for folder in folders]
        look = look_at([file for of_class in files for file in of_class], on_file=on_file)
        if not skip_unreadable:
            refuse_unreadable(look, path, name=self.name)
        self.skipped = look.skipped(path)
        self._train: list[Clip] = []
        self._test: list[Clip] = []
        for label, (folder, of_class) in enumerate(zip(folders, files)):
            rng = np.random.default_rng([seed, zlib.crc32(folder.name.encode())])
            self._split(label, of_class, look.lengths, test_fraction, rng)

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
        cut = _held_out(len(files), test_fraction) if len(files) > 1 else 0
        test = [file for file in drawn[:cut] if file in lengths]
        train = [file for file in drawn[cut:] if file in lengths]
        if len(test) + len(train) < 2:
            self._cut_in_two(label, files, lengths, test_fraction)
            return
        if not test:
            test.append(train.pop(0))
        if not train:
            train.append(test.pop())
        self._test += [self._clip(label, file, 0, lengths[file]) for file in sorted(test)]
        self._train += [self._clip(label, file, 0, lengths[file]) for file in sorted(train)]

    def _cut_in_two(
        self, label: int, files: list[Path], lengths: dict[Path, int], test_fraction: float
    ) -> None:
        """Hold out the tail of a class's only video."""
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
        cut = lengths[file] - _held_out(lengths[file], test_fraction)
        self._train.append(self._clip(label, file, 0, cut))
        self._test.append(self._clip(label, file, cut, lengths[file]))

    def _clip(self, label: int, file: Path, start: int, stop: int) -> Clip:
        size = self.size

        def reader(indices: Sequence[int]) -> Iterator[Frame]:
            return read_frames(file, [start + i for i in indices], size)

        return Clip(label, f"{file.parent.name}/{file.name}", stop - start, reader)


def open_folder(
    path: Path,
    settings: Mapping[str, str],
    *,
    size: int,
    seed: int,
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
        skip_unreadable=skip_unreadable,
        on_file=on_file,
    )


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
