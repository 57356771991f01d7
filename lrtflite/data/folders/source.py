"""`folder:PATH`: one folder of images or videos per class; some files are held out for testing.

things/
    mug/     IMG_1.jpg  IMG_2.jpg  kitchen.mp4
    stapler/ a.png      b.png      c.png
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lrtflite.data.choice import ClassChoice, pick_classes
from lrtflite.data.folders.classes import class_folders, media_clip, media_files
from lrtflite.data.folders.only_video import divide, only_video_note
from lrtflite.data.folders.split import (
    asked_fraction,
    check_fraction,
    class_generator,
    draw_sides,
)
from lrtflite.data.folders.train_test import TrainTestFolders, train_and_test
from lrtflite.data.media import frames_per_second
from lrtflite.data.source import Clip, FrameSource, SourceRequest
from lrtflite.data.spec import check_settings
from lrtflite.data.unreadable import look_at, refuse_unreadable
from lrtflite.errors import DataError
from lrtflite.progress import OnProgress


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
        on_progress: OnProgress | None = None,
    ) -> None:
        check_fraction(test_fraction, usage="folder:PATH")
        self.name = f"folder:{path}"
        self.size = size
        folders = class_folders(path)
        labels = pick_classes(choice, tuple(folders), of=self.name)
        self.classes = tuple(tuple(folders)[label] for label in labels)
        files = [media_files(folders[name]) for name in self.classes]
        look = look_at([file for of_class in files for file in of_class], on_progress=on_progress)
        if not skip_unreadable:
            refuse_unreadable(look, path, name=self.name)
        self.skipped = look.skipped(path)
        self._train: list[Clip] = []
        self._test: list[Clip] = []
        self._only_videos: list[str] = []
        for label, (name, of_class) in enumerate(zip(self.classes, files)):
            rng = class_generator(seed, name)
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
        train, test = draw_sides(files, lengths, test_fraction, rng)
        if not test:
            self._cut_in_two(label, files, lengths, test_fraction)
            return
        self._test += [self._clip(label, file, 0, lengths[file]) for file in test]
        self._train += [self._clip(label, file, 0, lengths[file]) for file in train]

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
                f"one to test with), got {got}",
                "add some",
            )
        [file] = readable
        stop, start = divide(lengths[file], test_fraction, frames_per_second(file))
        self._train.append(self._clip(label, file, 0, stop))
        self._test.append(self._clip(label, file, start, lengths[file]))
        self._only_videos.append(self.classes[label])

    def _clip(self, label: int, file: Path, start: int, stop: int) -> Clip:
        name = f"{self.classes[label]}/{file.name}"
        return media_clip(label, name, file, start=start, stop=stop, size=self.size)


def open_folder(request: SourceRequest) -> FrameSource:
    """Open `folder:PATH?test=FRACTION`, or two folders that hold the same classes.

    These are `train` and `test` in PATH, or PATH and another one: `folder:PATH?test-folder=DIR`.
    """
    check_settings("folder:PATH", request.settings, ["test", "test-folder"])
    path = Path(request.argument).expanduser()
    given = request.settings.get("test-folder")
    folders = train_and_test(path) if given is None else (path, Path(given).expanduser())
    if folders is None:
        return FolderSource(
            path,
            size=request.size,
            seed=request.seed,
            test_fraction=asked_fraction(request, usage="folder:PATH"),
            choice=request.choice,
            skip_unreadable=request.skip_unreadable,
            on_progress=request.on_progress,
        )
    if "test" in request.settings:
        raise DataError(
            f"Expected no ?test= where {folders[1]} has the test pictures, got "
            f"test={request.settings['test']}",
            "leave it out",
        )
    return TrainTestFolders(
        *folders,
        name=f"folder:{path}",
        size=request.size,
        choice=request.choice,
        skip_unreadable=request.skip_unreadable,
        on_progress=request.on_progress,
    )
