"""Look at pictures once: their vectors, the learner's answers, thumbnails and flaws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lrtflite.data import FrameSource, whole_batch
from lrtflite.data.source import Clip
from lrtflite.errors import UnreadableFile
from lrtflite.frames.hints import BLURRED, DARK, is_blurred, is_dark, thumbnail
from lrtflite.learner import Learner
from lrtflite.pictures import KeptPicture, KeptPictures
from lrtflite.progress import OnProgress, Phase, Progress
from lrtflite.session.diagnosis import NOT_JUDGED, to_vectors

# Maximum number of frames of a class that are looked at, evenly spread.
MAX_PICTURES = 200
Frame = NDArray[np.uint8]


@dataclass(frozen=True)
class Shown:
    """Pictures of a class that are read together: a still, or frames of one video.

    `read` takes the side of a frame and yields one frame (size, size, 3) for each name.
    """

    label: str
    names: tuple[str, ...]
    read: Callable[[int], Iterator[Frame]]
    is_video: bool = False


@dataclass(frozen=True)
class Seen:
    """Facts about n readable pictures, a row each.

    `slots` has the class of each picture, `answers` the slot that the learner answers, NOT_JUDGED
    where it answers nothing. `videos` numbers the videos, None for a still. `flaws` has the flaws
    of rows that have one, `unreadable` the slot and name of each picture that cannot be read.
    """

    names: tuple[str, ...]
    slots: NDArray[np.int32]
    answers: NDArray[np.int32]
    vectors: NDArray[np.float32]
    thumbnails: NDArray[np.float32]
    colours: NDArray[np.float32]
    videos: tuple[int | None, ...]
    flaws: dict[int, str]
    unreadable: tuple[tuple[int, str], ...]


def shown_by(source: FrameSource) -> list[Shown]:
    """Return the pictures of a data set, held-out ones too, at most MAX_PICTURES of a class.

    They are in the order of classes and names, so that of two equal ones the later is a repeat.
    """

    def shown(clip: Clip, indices: Sequence[int]) -> Shown:
        names = [clip.name] if clip.length == 1 else [f"{clip.name} frame {i + 1}" for i in indices]
        label = source.classes[clip.label]
        return Shown(label, tuple(names), lambda _: clip.read(indices), clip.length > 1)

    parts = whole_batch(source, MAX_PICTURES, held_out=True).parts
    parts = tuple(sorted(parts, key=lambda part: (part[0].label, part[0].name)))
    return [shown(clip, indices) for clip, indices in parts]


def shown_kept(kept: KeptPictures, labels: Sequence[str | None]) -> list[Shown]:
    """Return the kept pictures of each labelled slot, the newest MAX_PICTURES of a class."""

    def shown(label: str, picture: KeptPicture) -> Shown:
        return Shown(label, (picture.id,), lambda size: iter([picture.read(size)]))

    return [
        shown(label, picture)
        for slot, label in enumerate(labels)
        if label is not None
        for picture in kept.of(slot)[-MAX_PICTURES:]
    ]


def look_at(
    learner: Learner, pictures: Sequence[Shown], *, on_progress: OnProgress | None = None
) -> Seen:
    """Read each picture of a labelled class once; the labels of others are skipped."""
    slots = {label: slot for slot, label in enumerate(learner.labels) if label is not None}
    known = [shown for shown in pictures if shown.label in slots]
    total, look = sum(len(shown.names) for shown in known), _Look(learner)
    for number, shown in enumerate(known):
        video = number if shown.is_video else None
        names = iter(shown.names)
        try:
            for frame in shown.read(learner.bundle.manifest.input_size):
                look.add(next(names), slots[shown.label], frame, video)
        except UnreadableFile:
            look.unreadable += [(slots[shown.label], name) for name in names]
        if on_progress is not None:
            done = len(look.names) + len(look.unreadable)
            on_progress(Progress(Phase.READ, done, total))
    return look.seen()


class _Look:
    """Facts about pictures, while they are read one after the other."""

    def __init__(self, learner: Learner) -> None:
        self.names: list[str] = []
        self.unreadable: list[tuple[int, str]] = []
        self._learner = learner
        self._slots: list[int] = []
        self._answers: list[int] = []
        self._vectors: list[NDArray[np.float32]] = []
        self._thumbnails: list[NDArray[np.float32]] = []
        self._colours: list[NDArray[np.float32]] = []
        self._videos: list[int | None] = []
        self._flaws: dict[int, str] = {}

    def add(self, name: str, slot: int, frame: Frame, video: int | None) -> None:
        latents = self._learner.extract(frame)
        vector = to_vectors(latents, self._learner.memory.zero)[0]
        if is_dark(frame):
            self._flaws[len(self.names)] = DARK
        elif is_blurred(frame):
            self._flaws[len(self.names)] = BLURRED
        self.names.append(name)
        self._slots.append(slot)
        self._answers.append(int(best_slots(self._learner.probabilities(latents))[0]))
        self._vectors.append(vector.astype(np.float32))
        self._thumbnails.append(thumbnail(frame[..., 1].astype(np.int16)))
        self._colours.append(frame.mean(axis=(0, 1)).astype(np.float32))
        self._videos.append(video)

    def seen(self) -> Seen:
        def stacked(rows: list[NDArray[np.float32]]) -> NDArray[np.float32]:
            return np.stack(rows) if rows else np.empty((0, 1), np.float32)

        return Seen(
            names=tuple(self.names),
            slots=np.array(self._slots, np.int32),
            answers=np.array(self._answers, np.int32),
            vectors=stacked(self._vectors),
            thumbnails=stacked(self._thumbnails),
            colours=stacked(self._colours),
            videos=tuple(self._videos),
            flaws=self._flaws,
            unreadable=tuple(self.unreadable),
        )


def best_slots(probabilities: NDArray[np.float32]) -> NDArray[np.int32]:
    """Return the likeliest slot of each row, (n,); NOT_JUDGED where all are 0."""
    best = probabilities.argmax(axis=1)
    return np.where(probabilities.max(axis=1) > 0, best, NOT_JUDGED).astype(np.int32)
