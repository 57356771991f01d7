"""Let the Batch Renorm moments below the replay layer follow the frames of a session.

The paper freezes the weights there after the first batch and not the moments (section 4). Stored
latents are of older moments then; they age.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lrtflite.runtime import Model
from lrtflite.session import Phase, Session
from lrtflite.training import Training


def adapt_moments(
    features: Model,
    frames: Sequence[NDArray[np.uint8]],
    training: Training,
    session: Session,
) -> None:
    """Show a session's frames to `features` once, in groups, in the order they came.

    A group is always full, wrapping around to the first frames: padding would spoil the moments.
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
