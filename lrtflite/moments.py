"""Adapt the Batch Renorm moments below the replay layer to the frames of a session.

After the first batch, the paper freezes the weights there, but not the moments (section 4). Stored
latents were computed with older moments; they age.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.training import Training
from lrtflite.runtime.model import Model
from lrtflite.session import Phase, Session


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
