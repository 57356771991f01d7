"""Frames of the first batch, kept in the saved model to fill the replay memory that ships with it.

The paper's app ships 500 latents from its ten classes: without patterns to replay, a device would
forget the old classes when it learns the first new one.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import ModelError
from lrtflite.files.keras import MAX_BYTES, first_line, read_given
from lrtflite.files.npz import read_npz
from lrtflite.files.zip import MALFORMED, ZipContent
from lrtflite.replay.policies import balanced_choice

# Maximum number of frames kept, spread evenly over the classes: the number of latents in the
# paper's app.
KEPT_FRAMES = 500
# Name inside the `.keras` file, which is a zip archive. Keras ignores members it did not write.
MEMBER = "lrtflite/first_batch.npz"


@dataclass(frozen=True)
class FirstBatch:
    """`images` (N, S, S, 3) uint8 RGB and `slots` (N,) int32, the class slot of each."""

    images: NDArray[np.uint8]
    slots: NDArray[np.int32]

    def sample(self, count: int, rng: np.random.Generator) -> FirstBatch:
        """Return at most `count` frames, as evenly over the classes as possible."""
        kept = np.sort(balanced_choice(self.slots, count, rng))
        return FirstBatch(self.images[kept], self.slots[kept])

    def to_npz(self) -> bytes:
        """Return the content of an `.npz` file with both arrays."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, images=self.images, slots=self.slots)
        return buffer.getvalue()


def add_first_batch(path: Path, batch: FirstBatch) -> None:
    """Add `batch` to the `.keras` file at `path`, which must not have one yet."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(MEMBER, batch.to_npz())


def read_first_batch(path: Path, *, size: int, classes: int) -> FirstBatch | None:
    """Return the first batch of a saved model, or None if the file lacks one.

    `size` is the side of the model's frames, `classes` the number of its labels.
    """
    most = KEPT_FRAMES * (size * size * 3 + 8) + (1 << 20)
    try:
        content = read_given(path, most=MAX_BYTES)
        if not content.startswith(b"PK"):
            return None  # an .h5 file
        archive = ZipContent(content)
        if MEMBER not in archive.names:
            return None
        found = read_npz(archive.read(MEMBER, most=most), most=most)
        return _checked(FirstBatch(found["images"], found["slots"]), size, classes)
    except MALFORMED as error:
        raise ModelError(
            f"Expected the frames of the first batch in {path}, got a damaged {MEMBER} "
            f"({first_line(error)})",
            "train the model again, or convert it with --seed-memory 0",
        ) from error


def _checked(batch: FirstBatch, size: int, classes: int) -> FirstBatch:
    images, slots = batch.images, batch.slots
    if images.dtype != np.uint8 or images.shape[1:] != (size, size, 3):
        raise ValueError(f"images of {images.dtype} {images.shape}")
    if slots.dtype != np.int32 or slots.shape != images.shape[:1]:
        raise ValueError(f"slots of {slots.dtype} {slots.shape}")
    if len(slots) and not 0 <= slots.min() <= slots.max() < classes:
        raise ValueError(f"slots beyond the {classes} classes")
    return batch
