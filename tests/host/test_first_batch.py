"""The frames that a saved model keeps for the replay memory of its bundle."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tf_keras as keras

from coloured_source import ColouredSource
from lrtflite.errors import ModelError
from lrtflite.host.first_batch import MEMBER, FirstBatch, read_first_batch
from lrtflite.host.model_file import save_model
from lrtflite.host.training import FIRST_BATCH, train


def batch(*counts: int) -> FirstBatch:
    """Return `counts[i]` frames of class i; the first pixel of a frame is its class."""
    slots = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    images = np.zeros((len(slots), 2, 2, 3), np.uint8)
    images[:, 0, 0, 0] = slots
    return FirstBatch(images, slots)


def test_a_sample_has_as_many_of_each_class() -> None:
    found = batch(100, 40, 7).sample(30, np.random.default_rng(0))
    # The smallest class has only seven frames, so the other classes get more.
    counts = np.bincount(found.slots)
    assert counts[2] == 7
    assert counts.sum() == 30
    assert abs(int(counts[0]) - int(counts[1])) <= 3
    np.testing.assert_array_equal(found.images[:, 0, 0, 0], found.slots)
    assert len(batch(3, 3).sample(500, np.random.default_rng(0)).slots) == 6


def test_a_model_carries_its_frames(tmp_path: Path) -> None:
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(2,))])
    save_model(model, tmp_path / "m.keras", batch=batch(2, 3))
    found = read_first_batch(tmp_path / "m.keras", size=2, classes=2)
    assert found is not None
    np.testing.assert_array_equal(found.slots, [0, 0, 1, 1, 1])
    # Keras ignores the added file.
    again = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(again.get_weights()[0], model.weights[0])
    save_model(model, tmp_path / "bare.keras")
    assert read_first_batch(tmp_path / "bare.keras", size=2, classes=2) is None
    (tmp_path / "old.h5").write_bytes(b"no zip")
    assert read_first_batch(tmp_path / "old.h5", size=2, classes=2) is None


def damaged(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    whole: dict[str, np.ndarray] = {"images": IMAGES, "slots": SLOTS}
    np.savez_compressed(buffer, **{**whole, **arrays})
    return buffer.getvalue()


IMAGES, SLOTS = np.zeros((3, 2, 2, 3), np.uint8), np.zeros(3, np.int32)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"no frames", "not a zip file"),
        (damaged(images=np.zeros((3, 4, 4, 3), np.uint8)), r"images of uint8 \(3, 4, 4, 3\)"),
        (damaged(images=IMAGES.astype(np.float32)), "images of float32"),
        (damaged(slots=SLOTS[:2]), r"slots of int32 \(2,\)"),
        (damaged(slots=SLOTS - 1), "slots beyond the 2 classes"),
        (damaged(slots=SLOTS + 2), "slots beyond the 2 classes"),
        (damaged(more=np.zeros(1 << 24, np.uint8)), r"more than [0-9,]+ bytes"),
        (damaged(images=np.array([{}])), "an invalid array 'images.npy'"),
    ],
)
def test_damaged_frames_are_named(tmp_path: Path, content: bytes, why: str) -> None:
    with zipfile.ZipFile(tmp_path / "m.keras", "w") as archive:
        archive.writestr(MEMBER, content)
    with pytest.raises(ModelError, match=f"{why}.*--seed-memory 0"):
        read_first_batch(tmp_path / "m.keras", size=2, classes=2)


@pytest.mark.usefixtures("shallow", "eager")
def test_training_keeps_frames_of_every_class(tmp_path: Path) -> None:
    options = replace(
        FIRST_BATCH, weights="none", alpha=0.125, freeze_below="images", epochs=1, batch_size=4
    )
    result = train(ColouredSource(clips=2, frames=3), tmp_path / "model.keras", options)
    found = read_first_batch(tmp_path / "model.keras", size=32, classes=4)
    assert found is not None
    assert np.bincount(found.slots).tolist() == list(result.counts)
