"""Evaluate a learner on frames whose classes are known: accuracy, confusions, unknown answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lrtflite.answers.prediction import NO_SLOT, UNKNOWN
from lrtflite.errors import InputError
from lrtflite.labels import Label, label_name
from lrtflite.workbench.unknown import MAX_REFUSED, UnknownAnswers, unknown_answers

if TYPE_CHECKING:
    from lrtflite.data.source import Clip
    from lrtflite.learner import Learner
from lrtflite.progress import OnProgress, Phase, Progress

# Callback with the number of frames evaluated so far, and in total.
# Answer and frames of a class that was never taken for another.
_NOTHING = (None, 0)


@dataclass(frozen=True)
class ClassEvaluation:
    """The answers for the frames of one class.

    The right answer is the label, or "unknown" for a class that was not learned. `recall` is the
    share of right answers. `taken_for` is the most frequent wrong answer, given for
    `taken_for_frames` frames; None if every answer is right.
    """

    label: str
    learned: bool
    frames: int
    right: int
    recall: float
    taken_for: str | None
    taken_for_frames: int


@dataclass(frozen=True)
class Confusion:
    """A wrong answer, and the number of frames of the class `label` that got it."""

    label: str
    answer: str
    frames: int


@dataclass(frozen=True)
class Evaluation:
    """The answers of a learner; `accuracy` is the share of right ones for learned classes.

    `frames` and `right` count frames of learned classes, `others` those of classes that were not
    learned. `classes` are in the order of their first frames, `confusions` begin with the most
    frequent one. `unknown` judges the thresholds of unknown; None for a head that does not report
    familiarity.
    """

    accuracy: float
    frames: int
    right: int
    others: int
    classes: tuple[ClassEvaluation, ...]
    confusions: tuple[Confusion, ...]
    unknown: UnknownAnswers | None


def evaluate(
    learner: Learner,
    frames: Iterable[NDArray[np.uint8]],
    labels: Sequence[Label],
    *,
    most_refused: float = MAX_REFUSED,
    on_progress: OnProgress | None = None,
) -> Evaluation:
    """Let a learner answer frames (H, W, 3) uint8 with one label each, and count what is right.

    The answers are those of `predict`. A frame whose label was not learned stands for an unknown
    thing. `most_refused` is the largest share of known frames that the recommended threshold of
    unknown may refuse. Raise InputError without a frame of a learned class.
    """
    names = [label_name(label) for label in labels]
    _check_labels(names, learner.learned)
    answers: defaultdict[str, Counter[str]] = defaultdict(Counter)
    familiarity: dict[bool, list[float]] = {True: [], False: []}
    learned, done = frozenset(learner.learned), 0
    for frame in frames:
        if done == len(names):
            raise InputError(
                f"Expected one label per frame, got {len(names)} for more frames",
                "give one for each",
            )
        name = names[done]
        [[best, *_]] = learner.predict(frame, top=1)
        answers[name][UNKNOWN if best.slot == NO_SLOT else best.label] += 1
        if best.familiarity is not None:
            familiarity[name in learned].append(best.familiarity)
        done += 1
        if on_progress is not None:
            on_progress(Progress(Phase.TEST, done, len(names)))
    if done < len(names):
        raise InputError(
            f"Expected one label per frame, got {len(names)} for {done} frames", "give one for each"
        )
    unknown = None
    if learner.reports_familiarity:
        known, others = familiarity[True], familiarity[False]
        default = learner.bundle.manifest.unknown
        unknown = unknown_answers(known, others, most_refused=most_refused, default=default)
    return _counted(answers, learned, unknown)


def evaluate_clips(
    learner: Learner,
    clips: Sequence[Clip],
    classes: Sequence[str],
    *,
    most_refused: float = MAX_REFUSED,
    on_progress: OnProgress | None = None,
) -> Evaluation:
    """Like `evaluate`, but with clips of a data set whose class names are `classes`."""
    return evaluate(
        learner,
        (frame for clip in clips for frame in clip.read()),
        [classes[clip.label] for clip in clips for _ in range(clip.length)],
        most_refused=most_refused,
        on_progress=on_progress,
    )


def _check_labels(names: Sequence[str], learned: Sequence[str]) -> None:
    """Raise InputError unless one of the names was learned."""
    if not learned:
        raise InputError("Expected a learner that has learned something", "teach it a class first")
    if not set(names).intersection(learned):
        from lrtflite.data.listing import first_few

        found = list(dict.fromkeys(names))
        got = f"only {first_few(found)}" if found else "none"
        raise InputError(
            f"Expected frames of a learned class ({first_few(learned)}), got {got}",
            "check the labels",
        )


def _counted(
    answers: dict[str, Counter[str]], learned: frozenset[str], unknown: UnknownAnswers | None
) -> Evaluation:
    classes, confusions = [], []
    for label, given in answers.items():
        right = label if label in learned else UNKNOWN
        wrong = Counter({answer: count for answer, count in given.items() if answer != right})
        confusions += [Confusion(label, answer, count) for answer, count in wrong.items()]
        # By name where two are equally frequent, so that the order of frames does not matter.
        taken_for, most = min(
            wrong.items(), key=lambda pair: (-pair[1], pair[0]), default=(None, 0)
        )
        frames = sum(given.values())
        classes.append(
            ClassEvaluation(
                label=label,
                learned=label in learned,
                frames=frames,
                right=given[right],
                recall=given[right] / frames,
                taken_for=taken_for,
                taken_for_frames=most,
            )
        )
    known = [each for each in classes if each.learned]
    frames, right_frames = sum(each.frames for each in known), sum(each.right for each in known)
    return Evaluation(
        accuracy=right_frames / frames,
        frames=frames,
        right=right_frames,
        others=sum(each.frames for each in classes if not each.learned),
        classes=tuple(classes),
        confusions=tuple(sorted(confusions, key=lambda c: (-c.frames, c.label, c.answer))),
        unknown=unknown,
    )
