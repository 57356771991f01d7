"""Answers for the frames of a session from a head that has learned only the session's other frames.

This needs no stored frames and no name of a tensor, so it works with every head.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.training import Training
from lrtflite.contract.signatures import ZERO
from lrtflite.replay.policies import Indices, SlotArray
from lrtflite.runtime.model import Model
from lrtflite.session.diagnosis import NOT_JUDGED
from lrtflite.session.head import train_head
from lrtflite.session.minibatch import Patterns
from lrtflite.session.session import Session

# Seed of the rehearsal's mini-batches, which must not use up the learner's random numbers.
SEED = 0


def rehearse(
    head: Model,
    patterns: Patterns,
    training: Training,
    *,
    learned: NDArray[np.bool_],
    session: Session,
) -> SlotArray:
    """Return the likeliest slot of each frame, (n,) int32, and leave the head as it was.

    The frames of each class go to two halves by turns. The head learns one half and answers for
    the other, then the other way round. A frame is NOT_JUDGED if its class is new and has no frame
    in the half that was learned. `learned` (C,) is true for slots that have learned.
    """
    halves, answers = deal(patterns.slots), np.full(len(patterns), NOT_JUDGED, np.int32)
    before = head.run("save", zero=ZERO)
    dtype = head.signatures["infer"].inputs["latents"].dtype
    for half in (0, 1):
        rows, asked = np.flatnonzero(halves != half), np.flatnonzero(halves == half)
        taught = [patterns.latents[row] for row in rows]
        part = Patterns(taught, patterns.slots[rows], patterns.memory)
        if len(rows):
            train_head(
                head,
                part,
                training,
                classes=len(learned),
                rng=np.random.Generator(np.random.PCG64(SEED)),
                session=session,
            )
        known = learned.copy()
        known[part.slots] = True
        for row in asked[known[patterns.slots[asked]]]:
            latents = patterns.latents[row][np.newaxis]
            found = head.run("infer", latents=latents.astype(dtype, copy=False))
            answers[row] = found["probabilities"][0].argmax()
        head.run("restore", **before)
    return answers


def deal(slots: SlotArray) -> Indices:
    """Return the half of each frame: 0, 1, 0, 1, ... within each class."""
    halves = np.empty(len(slots), np.int64)
    for slot in np.unique(slots):
        own = np.flatnonzero(slots == slot)
        halves[own] = np.arange(len(own)) % 2
    return halves
