"""Let the Batch Renorm moments below the replay layer follow the frames of a session.

The paper freezes the weights there after the first batch and not the moments (section 4). Stored
latents are of older moments then; they age.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lrtflite.manifest import Training
from lrtflite.runtime import Model
from lrtflite.session import Phase, Session


def adapt_moments(
    features: Model,
    frames: Sequence[NDArray[np.uint8]],
    *,
    group: int,
    training: Training,
    session: Session,
) -> None:
    """Show a session's frames to `features` once, in groups of `group`, in the order they came.

    In the paper the moments move with every new mini-batch of every epoch; here one pass has the
    rate of all epochs together. A group is always full, wrapping around to the first frames:
    padding would spoil the moments.
    """
    rate = 1 - (1 - training.adapt_rate) ** training.epochs
    if not rate:
        return
    for start in range(0, len(frames), group):
        rows = [frames[row % len(frames)] for row in range(start, start + group)]
        with session.clock(Phase.ADAPT):
            features.run("adapt", frames=np.stack(rows), rate=np.array([rate], np.float32))
        session.report(Phase.ADAPT, min(start + group, len(frames)), len(frames))
