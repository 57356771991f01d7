"""Draw the frames once that every machine learns from, so that all get the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lrtflite.data import open_source

CLASSES = ("adapter-1", "scissors-1", "can-1", "ball-1")
# Fewer or simpler pictures make mini-batches of much the same latents, and where a trunk trains
# on those, Batch Renorm divides by small deviations and rounding grows a thousandfold in a session.
TRAIN_FRAMES, TEST_FRAMES = 24, 2


def draw_frames(path: Path, *, size: int) -> None:
    """Write an .npz: `classes` (C,), `train` and `test` (C, n, size, size, 3) uint8."""
    source = open_source(f"synthetic?frames={TRAIN_FRAMES}&test_frames={TEST_FRAMES}", size=size)
    labels = [source.classes.index(name) for name in CLASSES]
    splits = {
        split: np.stack(
            [
                # The first session of each object.
                np.stack(list(next(clip for clip in clips if clip.label == label).read()))
                for label in labels
            ]
        )
        for split, clips in (("train", source.train_clips()), ("test", source.test_clips()))
    }
    np.savez(path, classes=np.array(CLASSES), **splits)
