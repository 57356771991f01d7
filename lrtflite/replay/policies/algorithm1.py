"""The paper's Algorithm 1: random replacement, less of it in each session."""

from __future__ import annotations

import numpy as np

from lrtflite.replay.policies.policy import Incoming, Placement, Stored


def algorithm1(stored: Stored, incoming: Incoming, rng: np.random.Generator) -> Placement:
    """Replace random latents with random new ones, fewer in each session (the paper's Algorithm 1).

    In session i, h = capacity / i patterns replace h others. A small session does not fill the
    memory as the paper's first one does, so patterns are appended while there is room.
    """
    room = stored.capacity - len(stored)
    wanted = min(len(incoming), max(stored.capacity // incoming.session, room))
    appended = min(wanted, room)
    replaced = rng.choice(len(stored), wanted - appended, replace=False)
    rows = np.concatenate([np.arange(len(stored), len(stored) + appended), replaced])
    return Placement(rng.permutation(len(incoming))[:wanted], rows.astype(np.int64))
