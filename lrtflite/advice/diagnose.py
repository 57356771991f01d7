"""Diagnose what a learner was taught: from pictures, or from its state alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.advice import actions, faults
from lrtflite.advice.findings import (
    UNREADABLE,
    ClassFacts,
    Confused,
    Findings,
    Flawed,
    Mislabelled,
    Repeat,
    Thin,
)
from lrtflite.advice.looking import Seen, Shown, best_slots, look_at
from lrtflite.counted import counted
from lrtflite.data.listing import first_few
from lrtflite.errors import InputError
from lrtflite.learner import Learner
from lrtflite.progress import OnProgress
from lrtflite.session.diagnosis import NOT_JUDGED, to_vectors
from lrtflite.session.enough import MIN_SPREAD

# Number of different pictures below which a class has few.
FEW = 6
# Number and share of a class's frames that must be answered as another class.
WRONG, WRONG_SHARE = 2, 0.1
# Maximum number of stored latents of a class that are looked at.
ROWS = 100


def diagnose(
    learner: Learner,
    pictures: Sequence[Shown] | None = None,
    *,
    on_progress: OnProgress | None = None,
) -> Findings:
    """Find what to improve, from pictures of the learner's classes.

    Without pictures, the replay memory and the history of the state show less, as the notes say.
    Raise InputError if the learner has learned nothing, or if no picture shows one of its classes.
    """
    if not learner.learned:
        raise InputError("This learner has learned nothing yet", "teach it a label first")
    if pictures is None:
        return _from_state(learner)
    labels = {label for label in learner.labels if label is not None}
    if not any(shown.label in labels for shown in pictures):
        others = list(dict.fromkeys(shown.label for shown in pictures))
        got = f"only {first_few(others)}" if others else "none"
        raise InputError(
            f"Expected pictures of a class of the state ({first_few(learner.learned)}), got {got}",
            "check the names of the classes, or teach them first",
        )
    return _from_pictures(learner, pictures, look_at(learner, pictures, on_progress=on_progress))


def confusions(
    answers: NDArray[np.integer[Any]],
    slots: NDArray[np.integer[Any]],
    labels: Sequence[str | None],
    names: Sequence[str] = (),
) -> list[Confused]:
    """Return the confusions that are frequent enough to act on, the most frequent first.

    `names` has the picture of each row; empty for stored latents. A row that the learner did not
    answer is no confusion.
    """
    found = []
    for slot in np.unique(slots):
        of = int((slots == slot).sum())
        for answer in np.setdiff1d(answers[slots == slot], [slot, NOT_JUDGED]):
            rows = np.flatnonzero((slots == slot) & (answers == answer))
            if len(rows) >= max(WRONG, WRONG_SHARE * of):
                pictures = tuple(names[row] for row in rows) if names else ()
                label, other = str(labels[slot]), str(labels[answer])
                found.append(Confused(label, other, len(rows), of, pictures))
    return sorted(found, key=lambda each: (-each.frames / each.of, each.label, each.answer))


def _from_pictures(learner: Learner, pictures: Sequence[Shown], seen: Seen) -> Findings:
    labels = learner.labels
    facts = _class_facts(learner, seen.slots)
    # Flaws may make a picture look like anything.
    clear = np.setdiff1d(np.arange(len(seen.names)), list(seen.flaws))
    faulty = faults.mislabelled(seen.vectors[clear], seen.slots[clear], least=FEW)
    wrong = {int(clear[row]): other for row, other in faulty}
    mislabelled = _mislabelled(wrong, seen.slots, labels, seen.names)
    thin = list(_thin(facts, seen))
    alike = {each.label for each in thin}
    repeats = list(_repeats(seen, labels, wrong=wrong, alike=alike))
    flawed = _flawed(seen, labels)
    # A picture with a fault of its own does not show that classes are hard to tell apart.
    sound = np.setdiff1d(clear, list(wrong))
    names = [seen.names[row] for row in sound]
    found = confusions(seen.answers[sound], seen.slots[sound], labels, names)
    confused = [each for each in found if each.label not in alike]
    return Findings(
        looked_at=f"{counted(len(seen.names), 'picture')} of "
        f"{counted(len(np.unique(seen.slots)), 'class', 'classes')}",
        classes=facts,
        confused=tuple(confused),
        mislabelled=mislabelled,
        repeats=tuple(repeats),
        flawed=flawed,
        thin=tuple(thin),
        actions=actions.ordered(
            (
                *actions.for_mislabelled(mislabelled),
                *actions.for_repeats(repeats),
                *actions.for_thin(thin, least=FEW),
                *actions.for_confused(confused),
                *actions.for_unlearned(facts),
                *actions.for_flawed(flawed),
            )
        ),
        notes=tuple(_picture_notes(facts, pictures)),
    )


def _from_state(learner: Learner) -> Findings:
    """Return what the history and the replay memory show."""
    memory, labels = learner.memory, learner.labels
    facts = _class_facts(learner, np.empty(0, np.int32))
    rows = _rows_of_each(memory.slots)
    slots = memory.slots[rows]
    confused: list[Confused] = []
    mislabelled: tuple[Mislabelled, ...] = ()
    thin = [Thin(each.label, each.taught, each.taught) for each in facts if _is_few(each)]
    if len(rows):
        latents = memory.latents(rows)
        vectors = to_vectors(latents, memory.zero)
        few = {each.label for each in thin}
        found = confusions(best_slots(learner.probabilities(latents)), slots, labels)
        confused = [each for each in found if each.label not in few]
        wrong = dict(faults.mislabelled(vectors, slots, least=FEW))
        mislabelled = _mislabelled(wrong, slots, labels)
        for slot in np.unique(slots):
            stored = int((slots == slot).sum())
            different = faults.count_different_vectors(vectors[slots == slot], least=MIN_SPREAD)
            if stored >= FEW > different:
                thin.append(Thin(str(labels[slot]), stored, different))
    return Findings(
        looked_at=f"the state alone: {counted(len(rows), 'stored frame')} and the history",
        classes=facts,
        confused=tuple(confused),
        mislabelled=mislabelled,
        thin=tuple(thin),
        actions=actions.ordered(
            (
                *actions.for_mislabelled(mislabelled),
                *actions.for_thin(thin, least=FEW),
                *actions.for_confused(confused, what="stored frame"),
                *actions.for_unlearned(facts),
            )
        ),
        notes=tuple(_state_notes(facts)),
    )


def _class_facts(learner: Learner, shown: NDArray[np.int32]) -> tuple[ClassFacts, ...]:
    taught, learned = learner.committed.history.patterns, frozenset(learner.learned)
    return tuple(
        ClassFacts(
            label=label,
            slot=slot,
            learned=label in learned,
            taught=taught.get(label, 0),
            stored=int((learner.memory.slots == slot).sum()),
            pictures=int((shown == slot).sum()),
        )
        for slot, label in enumerate(learner.labels)
        if label is not None
    )


def _mislabelled(
    wrong: dict[int, int],
    slots: NDArray[np.int32],
    labels: Sequence[str | None],
    names: Sequence[str] = (),
) -> tuple[Mislabelled, ...]:
    groups: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for row, other in wrong.items():
        groups[int(slots[row]), other].append(row)
    found = (
        Mislabelled(
            label=str(labels[slot]),
            looks_like=str(labels[other]),
            frames=len(rows),
            of=int((slots == slot).sum()),
            pictures=tuple(names[row] for row in rows) if names else (),
        )
        for (slot, other), rows in groups.items()
    )
    return tuple(sorted(found, key=lambda each: -each.frames))


def _is_few(facts: ClassFacts) -> bool:
    return facts.learned and max(facts.taught, facts.pictures) < FEW


def _thin(facts: Iterable[ClassFacts], seen: Seen) -> Iterator[Thin]:
    """Yield the classes with few pictures, and those whose pictures are mostly the same."""
    for each in facts:
        rows = np.flatnonzero(seen.slots == each.slot)
        if _is_few(each):
            count = max(each.taught, each.pictures)
            yield Thin(each.label, count, count)
        elif len(rows) >= FEW:
            different = faults.count_different(seen.thumbnails[rows], seen.colours[rows])
            if different < FEW:
                yield Thin(each.label, len(rows), different)


def _repeats(
    seen: Seen, labels: Sequence[str | None], *, wrong: Collection[int], alike: Collection[str]
) -> Iterator[Repeat]:
    """Yield the repeats for which there is no other action.

    `wrong` has the rows that look like another class, `alike` the classes that are mostly repeats.
    """
    for row, first in faults.repeats(seen.thumbnails, seen.colours, seen.videos):
        label, first_label = (str(labels[seen.slots[each]]) for each in (row, first))
        if label == first_label and label in alike:
            continue
        if label != first_label and (row in wrong or first in wrong):
            continue
        yield Repeat(label, seen.names[row], first_label, seen.names[first])


def _flawed(seen: Seen, labels: Sequence[str | None]) -> tuple[Flawed, ...]:
    groups: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
    for row, flaw in seen.flaws.items():
        groups[int(seen.slots[row]), flaw].append(seen.names[row])
    for slot, name in seen.unreadable:
        groups[slot, UNREADABLE].append(name)
    return tuple(
        Flawed(str(labels[slot]), flaw, tuple(names))
        for (slot, flaw), names in sorted(groups.items())
    )


def _rows_of_each(slots: NDArray[np.int32]) -> NDArray[np.intp]:
    """Return rows of the memory, at most ROWS of each class."""
    chosen = [np.flatnonzero(slots == slot)[:ROWS] for slot in np.unique(slots)]
    return np.concatenate(chosen) if chosen else np.empty(0, np.intp)


def _picture_notes(facts: Iterable[ClassFacts], pictures: Sequence[Shown]) -> Iterator[str]:
    facts = tuple(facts)
    missing = [each.label for each in facts if each.learned and not each.pictures]
    if missing:
        yield f"no pictures of {first_few(missing)} were given, so nothing is said about them"
    known = {each.label for each in facts}
    others = list(dict.fromkeys(shown.label for shown in pictures if shown.label not in known))
    if others:
        yield f"pictures of {first_few(others)} were left out: the state has no such class"


def _state_notes(facts: Iterable[ClassFacts]) -> Iterator[str]:
    unseen = [each.label for each in facts if each.learned and not each.stored]
    if unseen:
        yield f"no frames of {first_few(unseen)} are stored, so only their number is known"
    yield (
        "without pictures, only classes are judged; `serve --keep-pictures` or "
        "`diagnose --dataset` shows which pictures are at fault"
    )
