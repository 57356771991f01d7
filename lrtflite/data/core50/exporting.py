"""Write a stream as pictures and lists of them, in the layout of CORe50 and its NICv2 lists.

DIR/s1/o1/C_01_01_000.png, ...                                 frames, PNG
DIR/batches_filelists/NIC_v2_23/run0/train_batch_00_filelist.txt, ..., test_filelist.txt
DIR/classes.txt                                                the label and name of each class

`core50:DIR?protocol=23` reads such a folder, and so do programs that read lists of lines
`PICTURE LABEL`. A class becomes an object, and a video becomes one of its scenes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from lrtflite.counted import classes_text
from lrtflite.data.core50.files import TEST_SCENES, image_file
from lrtflite.data.core50.lists import CLASSES, Recording
from lrtflite.data.source import Clip, FrameSource, Part
from lrtflite.data.stream import Batch
from lrtflite.errors import DataError
from lrtflite.files.atomic import check_folder, writing
from lrtflite.files.scratch import LOCK, scratch_folder
from lrtflite.progress import OnProgress, Phase, Progress
from lrtflite.system.extras import require

PREFIX = ".stream-"
# Scenes and frames have two and three digits in the name of a picture.
MAX_SCENE = 99
MAX_FRAMES = 1000

_Place = tuple[Recording, int]
_Key = tuple[int, str, int]


@dataclass(frozen=True)
class ExportedStream:
    """A stream on disk: its numbers of classes, sessions and frames, and the spec that reads it."""

    path: Path
    classes: int
    sessions: int
    train_frames: int
    test_frames: int

    @property
    def spec(self) -> str:
        """Return the data set that names this stream in other commands."""
        some = "" if self.classes == len(CLASSES) else f"&classes={self.classes}"
        return f"core50:{self.path}?protocol={self.sessions}{some}"


def check_export(folder: str | Path) -> Path:
    """Return the folder as a path; raise DataError unless a stream can be written to it."""
    require("PIL")
    path = Path(folder).expanduser()
    with writing(path):
        if path.exists() and not (path.is_dir() and not any(path.iterdir())):
            raise DataError(f"Expected a new or empty folder, got {path}", "choose another one")
        check_folder(path.resolve().parent)
    return path


def export_stream(
    source: FrameSource,
    batches: Sequence[Batch],
    folder: str | Path,
    *,
    on_progress: OnProgress | None = None,
) -> ExportedStream:
    """Write the batches and the test frames of a source; the folder appears once it is complete.

    Raise DataError for a stream that the layout cannot hold: more than 50 classes, more than
    1,000 frames times the scenes of a class, or a batch that repeats a frame.
    """
    path = check_export(folder)
    train = [batch.parts for batch in batches]
    test = [(clip, tuple(range(clip.length))) for clip in source.test_clips()]
    places = _places(source, train, test)
    with writing(path):
        path.resolve().parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(prefix=PREFIX, parent=path.resolve().parent) as scratch:
            made = scratch / "stream"
            made.mkdir()
            _write_pictures(made, [*train, test], places, on_progress)
            _write_lists(made, train, test, places)
            named = "".join(f"{label} {name}\n" for label, name in enumerate(source.classes))
            (made / "classes.txt").write_text(named, encoding="utf-8")
            made.replace(path.resolve())
            (scratch / LOCK).unlink()
    return ExportedStream(
        path=path,
        classes=len(source.classes),
        sessions=len(batches),
        train_frames=sum(len(batch) for batch in batches),
        test_frames=sum(len(indices) for _, indices in test),
    )


def _places(
    source: FrameSource, train: Sequence[Sequence[Part]], test: Sequence[Part]
) -> dict[_Key, _Place]:
    """Return the recording and the frame number of each frame.

    A video of the stream has a scene of its own, and still pictures share scenes. The test frames
    of a class share the scenes that CORe50 tests on, so that `protocol=nic` splits alike.
    """
    if len(source.classes) > len(CLASSES):
        raise DataError(
            f"Expected at most {classes_text(len(CLASSES))}, the objects of CORe50's layout, "
            f"got {len(source.classes)}",
            f"choose some, for example with ?classes={len(CLASSES)}",
        )
    places: dict[_Key, _Place] = {}
    for label in range(len(source.classes)):
        learned = [part for parts in train for part in parts if part[0].label == label]
        scenes = (each for each in range(1, MAX_SCENE + 1) if each not in TEST_SCENES)
        for (scene, number), key in zip(_training_places(learned, scenes), _keys(learned)):
            if key in places:
                raise DataError(
                    f"Expected each frame of {key[1]} in one session, got frame {key[2]} in two",
                    "export a stream that repeats none",
                )
            places[key] = (scene, label + 1), number
        tested = [part for part in test if part[0].label == label]
        for (scene, number), (_, name, index) in zip(_test_places(tested), _keys(tested)):
            places[label, f"test {name}", index] = (scene, label + 1), number
    return places


def _keys(parts: Iterable[Part]) -> Iterator[_Key]:
    for clip, indices in parts:
        for index in indices:
            yield clip.label, clip.name, index


def _training_places(parts: Sequence[Part], scenes: Iterator[int]) -> Iterator[tuple[int, int]]:
    """Yield scene and frame number of each frame, in the order of the stream."""
    rooms: dict[str, tuple[int, Iterator[int]]] = {}
    for clip, indices in parts:
        # Still pictures share a scene, named by the empty string.
        name = clip.name if clip.length > 1 else ""
        for _ in indices:
            scene, numbers = rooms.get(name, (0, iter(())))
            number = next(numbers, None)
            if number is None:
                scene, numbers = _next_scene(clip, scenes), iter(range(MAX_FRAMES))
                rooms[name] = scene, numbers
                number = next(numbers)
            yield scene, number


def _next_scene(clip: Clip, scenes: Iterator[int]) -> int:
    scene = next(scenes, None)
    if scene is None:
        raise DataError(
            f"Expected at most {MAX_SCENE - len(TEST_SCENES)} scenes of a class, {MAX_FRAMES:,} "
            f"frames each, got more at {clip.name}",
            "use fewer visits or frames",
        )
    return scene


def _test_places(parts: Sequence[Part]) -> Iterator[tuple[int, int]]:
    numbers = {scene: count() for scene in TEST_SCENES}
    for place, (clip, indices) in enumerate(parts):
        scene = TEST_SCENES[place * len(TEST_SCENES) // len(parts)]
        for _ in indices:
            number = next(numbers[scene])
            if number >= MAX_FRAMES:
                raise DataError(
                    f"Expected at most {MAX_FRAMES:,} test frames in a third of the test clips of "
                    f"a class, got more at {clip.name}",
                    "use fewer test frames",
                )
            yield scene, number


def _write_pictures(
    folder: Path,
    groups: Sequence[Sequence[Part]],
    places: dict[_Key, _Place],
    on_progress: OnProgress | None,
) -> None:
    from PIL import Image

    total = sum(len(indices) for parts in groups for _, indices in parts)
    done = 0
    for number, parts in enumerate(groups):
        for clip, indices in parts:
            for index, frame in zip(indices, clip.read(indices)):
                place = _place(places, clip, index, test=number + 1 == len(groups))
                file = image_file(folder, *place)
                file.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(frame).save(file, "PNG")
                done += 1
                if on_progress is not None:
                    on_progress(Progress(Phase.READ, done, total))


def _write_lists(
    folder: Path,
    train: Sequence[Sequence[Part]],
    test: Sequence[Part],
    places: dict[_Key, _Place],
) -> None:
    run = folder / "batches_filelists" / f"NIC_v2_{len(train)}" / "run0"
    run.mkdir(parents=True)
    for number, parts in enumerate(train):
        text = _lines(parts, places, test=False)
        (run / f"train_batch_{number:02d}_filelist.txt").write_text(text, encoding="ascii")
    (run / "test_filelist.txt").write_text(_lines(test, places, test=True), encoding="ascii")


def _lines(parts: Sequence[Part], places: dict[_Key, _Place], *, test: bool) -> str:
    lines = []
    for clip, indices in parts:
        for index in indices:
            file = image_file(Path(), *_place(places, clip, index, test=test))
            lines.append(f"{file.as_posix()} {clip.label}\n")
    return "".join(lines)


def _place(places: dict[_Key, _Place], clip: Clip, index: int, *, test: bool) -> _Place:
    return places[clip.label, f"test {clip.name}" if test else clip.name, index]
