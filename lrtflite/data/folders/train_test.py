"""Two folders with the same classes: one is taught, the other one tests.

things/
    train/ mug/ IMG_1.jpg ...  stapler/ a.png ...
    test/  mug/ IMG_9.jpg ...  stapler/ z.png ...
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from lrtflite.data.choice import LISTED, ClassChoice, pick_classes
from lrtflite.data.folders.classes import class_folders, media_clip, media_files
from lrtflite.data.listing import first_few
from lrtflite.data.source import Clip
from lrtflite.data.unreadable import entries_of, look_at, refuse_unreadable
from lrtflite.errors import DataError
from lrtflite.progress import OnProgress

TRAIN, TEST = "train", "test"


class TrainTestFolders:
    """Pictures and videos of each class in two folders; no file is drawn, so no seed matters.

    Every file is checked first. An unreadable file is an error; with `skip_unreadable` it is left
    out and named in `skipped`. Files of classes outside `choice` are not read.
    """

    def __init__(
        self,
        train: Path,
        test: Path,
        *,
        name: str,
        size: int = 128,
        choice: ClassChoice | None = None,
        skip_unreadable: bool = False,
        on_progress: OnProgress | None = None,
    ) -> None:
        self.name, self.size = name, size
        if train.is_absolute() != test.is_absolute():  # one root for the names of `skipped`
            train, test = train.absolute(), test.absolute()
        sides = {train: class_folders(train), test: class_folders(test)}
        if os.path.samefile(train, test):
            raise DataError(
                f"Expected a test folder other than {train}, got the same one",
                "leave test-folder out to hold out some of its files",
            )
        names = sorted({name for folders in sides.values() for name in folders})
        labels = pick_classes(choice, names, of=name)
        self.classes = tuple(names[label] for label in labels)
        _refuse_differences(self.classes, sides)
        files = {
            side: {name: media_files(folders[name]) for name in self.classes}
            for side, folders in sides.items()
        }
        every = [file for side in files.values() for of_class in side.values() for file in of_class]
        look = look_at(every, on_progress=on_progress)
        above = Path(os.path.commonpath([train, test]))
        if not skip_unreadable:
            refuse_unreadable(look, above, name=name)
        self.skipped = look.skipped(above)
        self._train = self._clips(files[train], look.lengths)
        self._test = self._clips(files[test], look.lengths)

    def train_clips(self) -> Sequence[Clip]:
        return tuple(self._train)

    def test_clips(self) -> Sequence[Clip]:
        return tuple(self._test)

    def _clips(self, files: Mapping[str, list[Path]], lengths: Mapping[Path, int]) -> list[Clip]:
        clips = []
        for label, (name, of_class) in enumerate(files.items()):
            readable = [file for file in of_class if file in lengths]
            if not readable:
                raise DataError(
                    f"Expected a readable image or video in {of_class[0].parent}, got none of "
                    f"{len(of_class)}",
                    "add some, or choose other classes with ?classes=",
                )
            for file in readable:
                whole = f"{file.parent.parent.name}/{name}/{file.name}"
                clips.append(
                    media_clip(label, whole, file, start=0, stop=lengths[file], size=self.size)
                )
        return clips


def train_and_test(path: Path) -> tuple[Path, Path] | None:
    """Return `train` and `test` in `path` if both hold folders; else they are classes, or missing.

    Raise DataError for another folder next to them, which neither teaches nor tests.
    """
    train, test = path / TRAIN, path / TEST
    if not (_holds_folders(train) and _holds_folders(test)):
        return None
    others = sorted(
        entry.name
        for entry in entries_of(path)
        if entry.is_dir() and entry.name not in (TRAIN, TEST) and not entry.name.startswith(".")
    )
    if others:
        raise DataError(
            f"Expected no folder next to {TRAIN} and {TEST} in {path}, got {first_few(others)}",
            f"move it elsewhere, or write folder:{train}?test-folder={test}",
        )
    return train, test


def _holds_folders(path: Path) -> bool:
    return path.is_dir() and any(
        entry.is_dir() and not entry.name.startswith(".") for entry in entries_of(path)
    )


def _refuse_differences(classes: Sequence[str], sides: Mapping[Path, Mapping[str, Path]]) -> None:
    """Raise DataError for a class that only one of two folders has."""
    train, test = sides
    only = {
        side: [name for name in classes if name not in sides[other]]
        for side, other in ((train, test), (test, train))
    }
    found = [f"{first_few(names, LISTED)} only in {side}" for side, names in only.items() if names]
    if found:
        raise DataError(
            f"Expected the same class folders in {train} and {test}, got {' and '.join(found)}",
            "add the missing ones, or choose from the others with ?classes=",
        )
