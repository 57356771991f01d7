"""The frames of a training run: training, validation and held-out frames.

A set of frames is kept in RAM if it is small, and else read again whenever it is needed.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.data import FrameSource, Part, StreamOptions, make_stream
from lrtflite.errors import DataError
from lrtflite.evenly import evenly
from lrtflite.host.training.options import TrainOptions
from lrtflite.host.training.streamed import StreamedFrames, is_streamed
from lrtflite.progress import OnProgress, Phase, Progress

# Share of each class's training frames that early stopping sets aside for validation.
VALIDATION_SHARE = 0.1
# Minimum number of clips in a class, or of frames in a clip, to set some aside for validation.
FEWEST_TO_SPLIT = 4


@dataclass(frozen=True)
class Frames:
    """`images` (N, S, S, 3) uint8 RGB and `slots` (N,) int64, the class slot of each.

    If the frozen layers run only once, `images` holds their latents (N, ...) float32. A set that is
    too large for RAM is streamed.
    """

    images: NDArray[Any] | StreamedFrames
    slots: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.slots)


@dataclass(frozen=True)
class Selection:
    """The frames of a training run, not read yet; slot i is `labels[i]`, class `classes[i]`.

    INVARIANT: validation frames come from training clips, held-out frames from test clips, and no
    frame is in two of the three sets. Held-out frames never influence training.
    """

    labels: tuple[str, ...]
    classes: tuple[int, ...]
    train: list[Part]
    validation: list[Part]
    held_out: list[Part]


@dataclass(frozen=True)
class TrainData:
    """The frames of a `Selection`."""

    train: Frames
    validation: Frames
    held_out: Frames

    def digest(self) -> str:
        """Return a short checksum of all frames and slots; of streamed frames, their names."""
        checksum = 0
        for frames in (self.train, self.validation, self.held_out):
            checksum = zlib.crc32(frames.slots.data, checksum)
            if isinstance(frames.images, StreamedFrames):
                checksum = frames.images.checksum(checksum)
            else:
                checksum = zlib.crc32(frames.images.data, checksum)
        return f"{checksum:08x}"


def select(source: FrameSource, options: TrainOptions) -> Selection:
    """Return the frames that `options` ask for, without reading any."""
    train = _chosen_parts(source, options)
    validation: list[Part] = []
    classes = tuple(sorted({clip.label for clip, _ in train}))
    if options.patience is not None:
        train, validation = split_parts(train, VALIDATION_SHARE)
    if _count(train) < 2:
        raise DataError(
            f"Expected at least 2 training frames in {source.name}, got {_count(train)}", "add more"
        )
    return Selection(
        labels=tuple(source.classes[label] for label in classes),
        classes=classes,
        train=train,
        validation=validation,
        held_out=[
            (clip, evenly(clip.length, options.held_out_frames))
            for clip in source.test_clips()
            if clip.label in classes
        ],
    )


def read_frames(selection: Selection, *, size: int, on_progress: OnProgress) -> TrainData:
    """Read the selected frames, `size` pixels per side; call `on_progress` after each.

    Sets that are streamed are not read yet.
    """
    sets = (selection.train, selection.validation, selection.held_out)
    total = sum(_count(parts) for parts in sets if not is_streamed(parts, size))
    slot_of = {label: slot for slot, label in enumerate(selection.classes)}
    done = 0

    def read(parts: list[Part]) -> Frames:
        nonlocal done
        slots = [slot_of[clip.label] for clip, indices in parts for _ in indices]
        if is_streamed(parts, size):
            return Frames(StreamedFrames(parts, size), np.array(slots, np.int64))
        images = np.empty((_count(parts), size, size, 3), np.uint8)
        row = 0
        for clip, indices in parts:
            for frame in clip.read(indices):
                images[row] = frame
                row, done = row + 1, done + 1
                on_progress(Progress(Phase.READ, done, total))
        return Frames(images, np.array(slots, np.int64))

    return TrainData(*(read(parts) for parts in sets))


def split_parts(parts: Sequence[Part], share: float) -> tuple[list[Part], list[Part]]:
    """Return `parts` without the last `share` of each class, and that share.

    A class with at least FEWEST_TO_SPLIT clips sets aside entire clips, any other class the last
    frames of each clip. A clip with fewer than FEWEST_TO_SPLIT frames keeps them all.
    """
    kept: list[Part] = []
    aside: list[Part] = []
    for label in sorted({clip.label for clip, _ in parts}):
        of_class = [part for part in parts if part[0].label == label]
        if len(of_class) >= FEWEST_TO_SPLIT:
            edge = len(of_class) - math.ceil(share * len(of_class))
            kept += of_class[:edge]
            aside += of_class[edge:]
            continue
        for clip, indices in of_class:
            edge = len(indices)
            if edge >= FEWEST_TO_SPLIT:
                edge -= math.ceil(share * edge)
                aside.append((clip, indices[edge:]))
            kept.append((clip, indices[:edge]))
    return kept, aside


def _chosen_parts(source: FrameSource, options: TrainOptions) -> list[Part]:
    if options.first_classes is None:
        videos = source.train_clips()
        return [(clip, evenly(clip.length, options.frames_per_video)) for clip in videos]
    stream = StreamOptions(
        first_classes=options.first_classes,
        visits=options.visits,
        seed=options.seed,
        split_seed=options.split_seed,
    )
    return [
        (clip, tuple(indices[i] for i in evenly(len(indices), options.frames_per_video)))
        for clip, indices in make_stream(source, stream)[0].parts
    ]


def _count(parts: Sequence[Part]) -> int:
    return sum(len(indices) for _, indices in parts)
