"""One session from its latents to the committed state: train, adapt, remember, commit."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lrtflite.advice import few_classes
from lrtflite.errors import InputError
from lrtflite.head_training import check_finite, train_head
from lrtflite.knowledge import Knowledge
from lrtflite.manifest import Training
from lrtflite.minibatch import Latents
from lrtflite.model_state import save_models
from lrtflite.moments import adapt_moments
from lrtflite.session import Session, SessionReport
from lrtflite.slots import Slots, for_each

_log = logging.getLogger("lrtflite")


def run_session(
    known: Knowledge,
    session: Session,
    latents: Latents,
    places: tuple[NDArray[np.int32], Slots],
    training: Training | None,
    *,
    frames: Sequence[NDArray[np.uint8]] = (),
) -> SessionReport:
    """Train, adapt to `frames`, remember and commit; `places` is from `Slots.place_all`."""
    started = session.now()
    if not len(latents):
        raise InputError("Expected at least one frame to learn from, got an empty session")
    placed, slots = for_each(places[0], len(latents)), places[1]
    manifest = known.bundle.manifest
    coming = len(np.unique(placed))
    if advice := few_classes(manifest, known=len(known.learned), coming=coming):
        _log.warning("%s", advice)
    outcome = train_head(
        known.training,
        latents,
        placed,
        known.memory,
        manifest=manifest,
        training=training or manifest.training,
        rng=known.rng,
        session=session,
    )
    adapt_moments(
        known.adapting,
        frames,
        group=manifest.new_per_batch,
        training=outcome.training,
        session=session,
    )
    number = known.sessions + 1
    with session.clock("memory"):
        known.memory.update(latents, placed, session=number, rng=known.rng)
    with session.clock("checkpoint"):
        models = save_models(known.training, known.adapting)
        check_finite(models, outcome)
        known.commit(models, slots=slots, sessions=number)
    session.report("checkpoint", 1, 1)
    return SessionReport(
        session=number,
        frames=len(latents),
        labels=tuple(str(slots.labels[slot]) for slot in np.unique(placed)),
        steps=outcome.steps,
        loss=outcome.loss,
        accuracy=outcome.accuracy,
        replay_patterns=len(known.memory),
        ready_to_committed_ms=session.since(started),
        timings=session.timings,
    )
