"""Teach a bundle before it ships, with the same learner as on the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.bundle import Bundle
from lrtflite.bundle.destination import Destination
from lrtflite.bundle.training import Training
from lrtflite.data import FrameSource, whole_batch
from lrtflite.errors import InputError
from lrtflite.learner import Learner
from lrtflite.session.session import Phase, Progress, SessionReport
from lrtflite.state.slots import Slots

# Callback with the phase (a name in `Phase`), steps done, and steps in total.
OnStep = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Taught:
    """The bundle that ships, its session, and its accuracy.

    `accuracy` is over all held-out frames, `by_class` over those of each class of the data set.
    `latents` is the number of latents that ship in the replay memory.
    """

    bundle: Bundle
    report: SessionReport
    accuracy: float
    by_class: dict[str, float]
    held_out: int
    latents: int


def check_room(source: FrameSource, labels: tuple[str | None, ...]) -> None:
    """Raise InputError unless each class of `source` has a slot or can get a free one.

    A new class must also have a label that can be told from those of the bundle.
    """
    free = labels.count(None)
    foreign = sum(name not in labels for name in source.classes)
    if foreign > free:
        raise InputError(
            f"Expected a bundle with room for the {len(source.classes)} classes of {source.name}, "
            f"got {len(labels)} slots, {free} of them free; "
            f"convert one with --classes {len(labels) - free + foreign}"
        )
    Slots(labels).place_all(source.classes)


def teach(
    learner: Learner,
    source: FrameSource,
    out: str | Path | Destination,
    *,
    training: Training | None = None,
    batch_frames: int | None = None,
    replace: bool = False,
    on_step: OnStep | None = None,
) -> Taught:
    """Teach all training frames of `source` in one session, test it, and write the bundle `out`.

    `batch_frames` limits the frames of each class. Classes learned before ship too.
    """
    destination = Destination.at(out, replace=replace)
    check_room(source, learner.labels)
    tell = on_step or (lambda phase, done, total: None)
    batch = whole_batch(source, batch_frames)

    def on_progress(progress: Progress) -> None:
        tell(progress.phase, progress.done, progress.total or len(batch))

    report = learner.learn(
        batch.frames(),
        [source.classes[label] for label in batch.labels],
        training=training,
        on_progress=on_progress,
    )
    right, truth = recognise(learner, source, tell)
    return Taught(
        bundle=learner.ship(destination),
        report=report,
        accuracy=float(right.mean()) if len(right) else float("nan"),
        by_class={
            name: float(right[truth == label].mean())
            for label, name in enumerate(source.classes)
            if (truth == label).any()
        },
        held_out=len(right),
        latents=len(learner.memory),
    )


def recognise(
    learner: Learner, source: FrameSource, tell: OnStep = lambda phase, done, total: None
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return whether each held-out frame is recognised, and the class of each."""
    clips = source.test_clips()
    truth = np.repeat([clip.label for clip in clips], [clip.length for clip in clips])
    right = np.zeros(len(truth), bool)
    frames = (frame for clip in clips for frame in clip.read())
    for row, frame in enumerate(frames):
        [[best, *_]] = learner.predict(frame, top=1)
        right[row] = best.label == source.classes[truth[row]]
        tell(Phase.TEST, row + 1, len(truth))
    return right, truth.astype(np.int64)
