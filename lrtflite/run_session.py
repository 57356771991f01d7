"""One session from latents to the committed state: train, adapt, update the memory, commit."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lrtflite.advice import few_classes
from lrtflite.bundle.training import Training
from lrtflite.diagnosis import Answer, Before
from lrtflite.errors import InputError
from lrtflite.head_training import check_finite, train_head
from lrtflite.minibatch import Patterns
from lrtflite.moments import adapt_moments
from lrtflite.replay.policies import Latents
from lrtflite.session import Phase, Session, SessionReport
from lrtflite.state.committed import CommittedState
from lrtflite.state.history import History, clock
from lrtflite.state.models import save_models
from lrtflite.state.slots import Slots, for_each

_log = logging.getLogger("lrtflite")


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
    before = None if answer is None else Before.of(committed.memory, answer)
    report = run_session(committed, session, latents, places, training, frames=frames)
    if before is None or answer is None:
        return report
    placed, slots = for_each(places[0], len(latents)), places[1]
    return replace(report, diagnosis=before.diagnose(latents, placed, slots.labels, answer))


def run_session(
    committed: CommittedState,
    session: Session,
    latents: Latents,
    places: tuple[NDArray[np.int32], Slots],
    training: Training | None,
    *,
    frames: Sequence[NDArray[np.uint8]] = (),
) -> SessionReport:
    """Train, adapt to `frames`, update the memory and commit; `places`: see `Slots.place_all`."""
    started = session.now()
    if not len(latents):
        raise InputError(
            "Expected at least one frame to learn from, got an empty session; give it frames"
        )
    placed, slots = for_each(places[0], len(latents)), places[1]
    manifest = committed.bundle.manifest
    training = training or manifest.training
    if not training.fits(manifest.training):
        raise InputError(
            "Expected a training for this bundle, got one for another bundle; begin with "
            "learner.training.with_options(...)"
        )
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
    history = _history_with(committed, taught)
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


def _history_with(committed: CommittedState, taught: Mapping[str, int]) -> History:
    """Return the history with this session, which taught so many patterns of each label."""
    return committed.history.with_session(
        taught,
        time=clock(),
        device=committed.options.device,
        bundle_version=committed.bundle.manifest.version,
    )


def _patterns_by_label(placed: NDArray[np.int32], slots: Slots) -> dict[str, int]:
    numbers, counts = np.unique(placed, return_counts=True)
    return {str(slots.labels[slot]): int(count) for slot, count in zip(numbers, counts)}
