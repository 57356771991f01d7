"""Teach a bundle before it ships, with the same learner as on the device."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lrtflite.bundle.bundle import Bundle
from lrtflite.bundle.destination import Destination
from lrtflite.bundle.training import Training
from lrtflite.data import Batch, FrameSource, whole_batch
from lrtflite.errors import InputError
from lrtflite.learner import Learner
from lrtflite.progress import OnProgress, Progress
from lrtflite.session.session import SessionReport
from lrtflite.state.slots import Slots
from lrtflite.workbench.evaluation import Evaluation, evaluate_clips

# Before the phases of the session that teaches everything, after another one was tested.
AGAIN = "everything: "


@dataclass(frozen=True)
class TeachingReport:
    """The bundle that ships, its session, and the evaluation of held-out frames, if there are any.

    With `everything`, the session also taught the held-out frames, and the evaluation is that of
    another learner, which was not taught them. `latents` is the number of latents that ship in the
    replay memory.
    """

    bundle: Bundle
    report: SessionReport
    evaluation: Evaluation | None
    everything: bool
    latents: int

    @property
    def accuracy(self) -> float:
        """Return the accuracy over all held-out frames; NaN without any."""
        return float("nan") if self.evaluation is None else self.evaluation.accuracy

    @property
    def held_out(self) -> int:
        """Return the number of held-out frames."""
        return 0 if self.evaluation is None else self.evaluation.frames

    @property
    def by_class(self) -> dict[str, float]:
        """Return the accuracy over the held-out frames of each class of the data set."""
        classes = () if self.evaluation is None else self.evaluation.classes
        return {each.label: each.recall for each in classes}


def check_room(source: FrameSource, labels: tuple[str | None, ...]) -> None:
    """Raise InputError unless each class of `source` has a slot or can get a free one.

    A new class must also have a label that can be told from those of the bundle.
    """
    free = labels.count(None)
    foreign = sum(name not in labels for name in source.classes)
    if foreign > free:
        raise InputError(
            f"Expected a bundle with room for the {len(source.classes)} classes of {source.name}, "
            f"got {len(labels)} slots, {free} of them free",
            f"convert one with --classes {len(labels) - free + foreign}",
        )
    Slots(labels).place_all(source.classes)


def teach(
    learner: Learner,
    source: FrameSource,
    out: str | Path | Destination,
    *,
    training: Training | None = None,
    batch_frames: int | None = None,
    everything: bool = False,
    replace: bool = False,
    on_progress: OnProgress | None = None,
) -> TeachingReport:
    """Teach all training frames of `source` in one session, test it, and write the bundle `out`.

    With `everything`, another learner is taught and tested like that; then this one is taught the
    held-out frames too, all in one session, and ships without a test of its own. `batch_frames`
    limits the frames of each class. Classes learned before ship too.
    """
    destination = Destination.at(out, replace=replace)
    check_room(source, learner.labels)
    tell = on_progress or (lambda progress: None)

    def again(progress: Progress) -> None:
        tell(Progress(AGAIN + progress.phase, progress.done, progress.total))

    def taught(learner: Learner, batch: Batch, tell: OnProgress) -> SessionReport:
        return learner.learn(
            batch.frames(),
            [source.classes[label] for label in batch.labels],
            training=training,
            on_progress=lambda p: tell(Progress(p.phase, p.done, p.total or len(batch))),
        )

    batch = whole_batch(source, batch_frames)
    if everything:
        with _copy(learner) as pupil:
            taught(pupil, batch, tell)
            evaluation = _tested(pupil, source, tell)
        batch = whole_batch(source, batch_frames, held_out=True)
        report = taught(learner, batch, again)
    else:
        report = taught(learner, batch, tell)
        evaluation = _tested(learner, source, tell)
    return TeachingReport(
        bundle=learner.ship(destination),
        report=report,
        evaluation=evaluation,
        everything=everything,
        latents=len(learner.memory),
    )


def _copy(learner: Learner) -> Learner:
    """Return a learner in RAM with the state of another one."""
    copy = Learner.open_with(learner.bundle, None, learner.committed.options)
    copy.committed.restore(learner.snapshot())
    return copy


def _tested(learner: Learner, source: FrameSource, tell: OnProgress) -> Evaluation | None:
    """Evaluate a learner on the held-out frames; return None if there are none."""
    clips = source.test_clips()
    if not clips:
        return None
    return evaluate_clips(learner, clips, source.classes, on_progress=tell)
