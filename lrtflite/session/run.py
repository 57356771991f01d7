"""One session from latents to the committed state: train, adapt, update the memory, commit."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lrtflite.arguments import printable
from lrtflite.bundle.bundle import Bundle
from lrtflite.bundle.feeding import SESSION_AND_MEMORY
from lrtflite.bundle.manifest import Manifest
from lrtflite.bundle.training import NUMBERS, Training
from lrtflite.contract.signatures import read_signatures
from lrtflite.counted import classes_text
from lrtflite.errors import InputError
from lrtflite.frames.dull import DullFrames
from lrtflite.progress import Phase
from lrtflite.replay.policies import Latents
from lrtflite.runtime.model import Model
from lrtflite.session.class_changes import unlearn
from lrtflite.session.diagnosis import Answer, Before
from lrtflite.session.head import check_finite, train_head
from lrtflite.session.minibatch import Patterns
from lrtflite.session.rehearsal import rehearse
from lrtflite.session.session import Session, SessionReport
from lrtflite.state.committed import CommittedState
from lrtflite.state.history import History, clock
from lrtflite.state.models import save_models
from lrtflite.state.slots import Slots, broadcast_slots

_log = logging.getLogger("lrtflite")
# Minimum number of classes that a trunk should learn in its first session. A trunk that learns its
# first classes one by one drifts towards the newest one (docs/studies/one-by-one.md).
ENOUGH = 10


def adapt_moments(
    features: Model,
    frames: Sequence[NDArray[np.uint8]],
    training: Training,
    session: Session,
) -> None:
    """Pass each frame of a session to `adapt` once, in groups, in order of arrival.

    Every group is full, because padding would distort the moments; the last group is filled up with
    the first frames.
    """
    if not frames:
        return
    group = training.feeding.new_per_batch
    rates = training.scalars(features.signatures["adapt"].inputs)
    for start in range(0, len(frames), group):
        rows = [frames[row % len(frames)] for row in range(start, start + group)]
        with session.clock(Phase.ADAPT):
            features.run("adapt", frames=np.stack(rows), **rates)
        session.report(Phase.ADAPT, min(start + group, len(frames)), len(frames))


def few_classes(manifest: Manifest, *, learned: int, coming: int) -> str | None:
    """Return a warning if a trunk would learn its first classes a few at a time, else None.

    A head that gathers the memory refits its last layer and does not drift
    (docs/studies/trunk.md).
    """
    if not drifts(manifest) or learned or coming >= ENOUGH:
        return None
    return (
        f"Every layer above {manifest.replay_layer} trains, and the first session has "
        f"{classes_text(coming)}: taught a few classes at a time from the start, such a "
        f"bundle is less accurate than one that trains its last layer only. Teach {ENOUGH} or more "
        "classes first (`lrtflite teach`), or convert with --strategy lda."
    )


def drifts(manifest: Manifest) -> bool:
    """Return whether the head loses accuracy if classes are taught one by one from the start."""
    refits = manifest.feeding.gathers == SESSION_AND_MEMORY
    return manifest.trains_trunk and not refits and manifest.slots >= ENOUGH


def without_effect(bundle: Bundle, rates: Iterable[str]) -> Iterator[str]:
    """Yield a warning for each rate that a user gave and the head of the bundle does not use."""
    if "train" in read_signatures(bundle.head):
        return
    for name in rates:
        if name in NUMBERS:
            yield (
                f"{name} has no effect: a head of the strategy {bundle.manifest.strategy} is "
                "solved from sums, in one pass and without training steps"
            )


def diagnosed_session(
    committed: CommittedState,
    session: Session,
    latents: Latents,
    places: tuple[NDArray[np.int32], Slots],
    training: Training | None,
    *,
    answer: Answer | None,
    frames: Sequence[NDArray[np.uint8]] = (),
) -> SessionReport:
    """Run a session; with `answer`, which queries the committed state, add a diagnosis."""
    if answer is None:
        return run_session(committed, session, latents, places, training, frames=frames)
    training = _checked(committed, latents, training)
    placed, slots = broadcast_slots(places[0], len(latents)), places[1]
    memory, learned = committed.memory, committed.learned
    before = Before.of(memory, answer, learned=learned)
    rehearsed = None
    if before.unseen:
        rehearsed = rehearse(
            committed.working,
            Patterns(latents, placed, memory),
            training,
            learned=learned,
            session=session.apart(),
        )
    report = run_session(committed, session, latents, places, training, frames=frames)
    diagnosis = before.diagnose(latents, placed, slots.labels, answer, rehearsed=rehearsed)
    return replace(report, diagnosis=diagnosis)


def run_again(
    committed: CommittedState,
    session: Session,
    latents: Latents,
    places: tuple[NDArray[np.int32], Slots],
    training: Training | None,
    *,
    frames: Sequence[NDArray[np.uint8]] = (),
) -> SessionReport:
    """Forget the class at `places` and learn it from these latents, in one commit."""
    placed, slots = places
    _, history = unlearn(committed, int(placed))
    return run_session(
        committed, session, latents, (placed, slots), training, frames=frames, history=history
    )


def run_session(
    committed: CommittedState,
    session: Session,
    latents: Latents,
    places: tuple[NDArray[np.int32], Slots],
    training: Training | None,
    *,
    frames: Sequence[NDArray[np.uint8]] = (),
    history: History | None = None,
) -> SessionReport:
    """Train, adapt to `frames`, update the memory and commit; `places`: see `Slots.place_all`.

    `history` replaces that of the committed state.
    """
    started = session.now()
    training = _checked(committed, latents, training)
    placed, slots = broadcast_slots(places[0], len(latents)), places[1]
    manifest = committed.bundle.manifest
    coming = len(np.unique(placed))
    if advice := few_classes(manifest, learned=len(committed.learned_labels), coming=coming):
        _log.warning("%s", advice)
    outcome = train_head(
        committed.working,
        Patterns(latents, placed, committed.memory),
        training,
        classes=manifest.slots,
        rng=committed.rng,
        session=session,
    )
    if outcome.trains:
        adapt_moments(committed.adapting, frames, training, session)
    taught = _patterns_by_label(placed, slots)
    history = _history_with(committed, taught, history)
    with session.clock(Phase.MEMORY):
        committed.memory.update(latents, placed, session=history.sessions, rng=committed.rng)
    with session.clock(Phase.CHECKPOINT):
        tensors = save_models(committed.working, committed.adapting)
        check_finite(tensors, outcome)
        committed.commit(tensors, outcome.learned > 0, slots=slots, history=history)
    session.report(Phase.CHECKPOINT, 1, 1)
    return SessionReport(
        session=history.sessions,
        frames=len(latents),
        labels=tuple(taught),
        steps=outcome.steps,
        loss=outcome.loss,
        accuracy=outcome.accuracy,
        replay_patterns=len(committed.memory),
        ready_to_committed_ms=session.since(started),
        timings=session.timings,
    )


def _checked(committed: CommittedState, latents: Latents, training: Training | None) -> Training:
    """Return the training, the bundle's by default; raise InputError for one that does not fit."""
    if not len(latents):
        raise InputError(
            "Expected at least one frame to learn from, got an empty session", "give it frames"
        )
    default = committed.bundle.manifest.training
    training = training or default
    if not training.fits(default):
        raise InputError(
            "Expected a training for this bundle, got one for another bundle",
            "begin with learner.training.with_options(...)",
        )
    return training


def with_notes(
    report: SessionReport, dull: DullFrames, placed: NDArray[np.int32], slots: Slots
) -> SessionReport:
    """Return the report with warnings about frames that teach little, which are also logged."""
    labels = [str(slots.labels[slot]) for slot in broadcast_slots(placed, report.frames)]
    notes = tuple(dull.warnings(labels))
    for note in notes:
        _log.warning("%s", printable(note))
    return replace(report, notes=notes)


def _history_with(
    committed: CommittedState, taught: Mapping[str, int], history: History | None
) -> History:
    """Return the history with this session, and its number of patterns per label."""
    before = committed.history if history is None else history
    return before.with_session(
        taught,
        time=clock(),
        device=committed.options.device,
        bundle_version=committed.bundle.manifest.version,
    )


def _patterns_by_label(placed: NDArray[np.int32], slots: Slots) -> dict[str, int]:
    numbers, counts = np.unique(placed, return_counts=True)
    return {str(slots.labels[slot]): int(count) for slot, count in zip(numbers, counts)}
