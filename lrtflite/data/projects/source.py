"""`tm:PATH`: the pictures of a Teachable Machine project, or of a zip of class folders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from lrtflite.data.choice import ClassChoice, pick_classes
from lrtflite.data.folders.split import (
    TEST_FRACTION,
    asked_fraction,
    check_fraction,
    class_generator,
    draw_sides,
)
from lrtflite.data.media import count_in_ram
from lrtflite.data.projects.archive import Archive
from lrtflite.data.projects.layout import MARK, read_classes
from lrtflite.data.source import Clip, Frame, FrameSource, SourceRequest
from lrtflite.data.spec import check_settings
from lrtflite.data.unreadable import look_at, refuse_unreadable
from lrtflite.errors import DataError, UnreadableFile
from lrtflite.frames.fit import fit_frame
from lrtflite.frames.image_file import open_image, upright_rgb
from lrtflite.progress import OnProgress

USAGE = "tm:PATH"
BURSTS = (
    "Teachable Machine records bursts from a webcam, whose pictures look alike: expect figures to "
    "be optimistic."
)


class ProjectSource:
    """Pictures of classes in one archive, held out as those of `FolderSource`.

    Every picture is checked first, and read again from the archive in RAM when it is needed.
    """

    def __init__(
        self,
        path: Path,
        *,
        size: int = 128,
        seed: int = 0,
        test_fraction: float = TEST_FRACTION,
        choice: ClassChoice | None = None,
        skip_unreadable: bool = False,
        on_progress: OnProgress | None = None,
    ) -> None:
        check_fraction(test_fraction, usage=USAGE)
        self.name, self.size = f"tm:{path}", size
        self._archive = archive = Archive(path)
        every = read_classes(archive)
        labels = pick_classes(choice, tuple(every), of=self.name)
        self.classes = tuple(tuple(every)[label] for label in labels)
        classes = {name: every[name] for name in self.classes}
        self._members = {file: name for files in classes.values() for file, name in files.items()}
        look = look_at(list(self._members), count=self._count, on_progress=on_progress)
        if not skip_unreadable:
            refuse_unreadable(look, path, name=self.name)
        self.skipped = look.skipped(path)
        self._train: list[Clip] = []
        self._test: list[Clip] = []
        for label, (name, of_class) in enumerate(classes.items()):
            files, rng = list(of_class), class_generator(seed, name)
            train, test = draw_sides(files, look.lengths, test_fraction, rng)
            if not test:
                raise self._too_few(name, len(train), len(files))
            self._train += [self._clip(label, file) for file in train]
            self._test += [self._clip(label, file) for file in test]
        is_project = any(MARK in name for name in self._members.values())
        self.notes = (BURSTS,) if is_project else ()

    def train_clips(self) -> Sequence[Clip]:
        return tuple(self._train)

    def test_clips(self) -> Sequence[Clip]:
        return tuple(self._test)

    def _count(self, file: Path) -> int:
        """Return 1 for a picture; raise UnreadableFile for one that cannot be read."""
        frames = count_in_ram(file, self._archive.picture(self._members[file]))
        if frames > 1:
            raise UnreadableFile(
                f"Expected a picture, got {file}, an animation of {frames} frames",
                "unpack the archive and give folder:PATH",
                reason="an animation",
            )
        return frames

    def _clip(self, label: int, file: Path) -> Clip:
        def reader(indices: Sequence[int]) -> Iterator[Frame]:
            for _ in indices:
                with open_image(file, self._archive.picture(self._members[file])) as image:
                    yield fit_frame(upright_rgb(image), self.size)

        name = str(file.relative_to(self._archive.path))
        return Clip(label, name, 1, reader, files=True)

    def _too_few(self, name: str, readable: int, total: int) -> DataError:
        got = str(readable) if readable == total else f"{readable} that can be read of {total}"
        return DataError(
            f"Expected at least 2 pictures of {name} in {self._archive.path} (one to learn from, "
            f"one to test with), got {got}",
            "add some, or choose other classes with ?classes=",
        )


def open_project(request: SourceRequest) -> FrameSource:
    """Open `tm:PATH?test=FRACTION`."""
    check_settings(USAGE, request.settings, ["test"])
    return ProjectSource(
        Path(request.argument).expanduser(),
        size=request.size,
        seed=request.seed,
        test_fraction=asked_fraction(request, usage=USAGE),
        choice=request.choice,
        skip_unreadable=request.skip_unreadable,
        on_progress=request.on_progress,
    )
