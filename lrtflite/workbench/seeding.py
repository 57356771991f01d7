"""Fill the replay memory of a new bundle with pictures that its network was trained with.

`python -m lrtflite.workbench.seeding BUNDLE FRAMES` reads an .npz with `images` (N, S, S, 3) uint8
and `slots` (N,) int32 and writes the bundle's initial state. It needs no TensorFlow.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from lrtflite.bundle.bundle import INITIAL_FILE
from lrtflite.learner import Learner
from lrtflite.state.history import History
from lrtflite.state.reading import write_state


def seed_memory(
    bundle: Path, frames: Path, *, open_learner: Callable[..., Learner] = Learner.open
) -> None:
    """Write the state of a learner after one session, with all its latents in the memory."""
    with np.load(frames, allow_pickle=False) as archive:
        images, slots = archive["images"], archive["slots"]
    with open_learner(bundle, replay_size=len(images)) as learner:
        latents = learner.extract(images)
        if learner.learned:
            learner.memory.update(latents, slots, session=1, rng=np.random.default_rng(0))
            labels = [str(learner.labels[slot]) for slot in slots]
            state = learner.snapshot(history=History().with_session(Counter(labels)))
        else:
            # The head could not start from the host's classifier. A closed form never sees stored
            # latents again, so without this session their classes would have no answer.
            learner.learn_latents(latents, slot=slots.tolist())
            state = learner.snapshot()
        write_state(bundle / INITIAL_FILE, state)


if __name__ == "__main__":
    seed_memory(Path(sys.argv[1]), Path(sys.argv[2]))
