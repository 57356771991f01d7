"""The test set: what is kept in RAM, and the requests to the device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lrtflite_firmware_sim.held_out as held_out_module
from lrtflite.answers.prediction import Answers
from lrtflite.bundle.bundle import Bundle, demo_bundle
from lrtflite.bundle.manifest import Manifest
from lrtflite.data import Clip
from lrtflite_firmware_sim import SimulateOptions, Simulation, simulate
from lrtflite_firmware_sim.held_out import HeldOut

SIZE = 8
CLASSES = ("a", "b")
# Labels of a device, in another order, with one that is not in the data set.
LABELS = ("b", None, "stranger", "a")
# Slot for each grey of a frame; 0 gets no answer.
SLOT = {10: 3, 20: 0, 30: 2}


@dataclass
class Source:
    """Two classes; one frame gets an unknown label, and one gets no answer."""

    name: str = "greys"
    classes: tuple[str, ...] = CLASSES
    size: int = SIZE
    read: list[str] = field(default_factory=list)

    def test_clips(self) -> list[Clip]:
        return [self._clip(0, [10, 10, 20]), self._clip(1, [20, 30, 0])]

    def train_clips(self) -> list[Clip]:
        return []

    def _clip(self, label: int, greys: list[int]) -> Clip:
        def reader(indices: Sequence[int]) -> Iterator[NDArray[np.uint8]]:
            self.read.append(CLASSES[label])
            return (np.full((SIZE, SIZE, 3), greys[k], np.uint8) for k in indices)

        return Clip(label, CLASSES[label], len(greys), reader)


@dataclass
class Device:
    """A device whose latents are the frames as float32; their first value decides the answer."""

    asked: list[tuple[str, int]] = field(default_factory=list)
    shift: int = 0

    def extract(self, frame: NDArray[np.uint8]) -> NDArray[np.float32]:
        self.asked.append(("extract", 1))
        return frame[np.newaxis].astype(np.float32)

    def answers(self, latents: NDArray[Any]) -> Answers:
        self.asked.append(("answers", len(latents)))
        return Answers(
            np.stack([self._row(latent) for latent in latents]),
            np.array([latent.flat[0] / 100 for latent in latents], np.float32),
        )

    def recognise(self, frame: NDArray[np.uint8]) -> Answers:
        self.asked.append(("recognise", 1))
        return Answers(self._row(frame)[np.newaxis], np.array([frame.flat[0] / 100], np.float32))

    def _row(self, pattern: NDArray[Any]) -> NDArray[np.float32]:
        row = np.zeros(len(LABELS), np.float32)
        grey = int(pattern.flat[0])
        if grey:
            row[(SLOT[grey] + self.shift) % len(LABELS)] = 1
        return row


@pytest.fixture
def manifest() -> Manifest:
    with demo_bundle() as path:
        found = Bundle.open(path).manifest
    return replace(found, input_size=SIZE, latent_shape=(SIZE, SIZE, 3), replay_layer="conv1")


def read(manifest: Manifest) -> tuple[HeldOut, Source, Device]:
    source, device = Source(), Device()
    return HeldOut.read(source, device, manifest), source, device  # type: ignore[arg-type]


def predicted(test: HeldOut, device: Device) -> list[int]:
    tested = test.predicted(device, LABELS)  # type: ignore[arg-type]
    assert tested.familiarity is not None
    np.testing.assert_allclose(tested.familiarity, [0.1, 0.1, 0.2, 0.2, 0.3, 0], rtol=1e-6)
    return tested.guess.tolist()


# 6 latents of 8 x 8 x 3 float32 are 4608 bytes, 6 frames 1152.
@pytest.mark.parametrize(
    ("limit", "adapt", "kept", "asked", "reads"),
    [
        (4608, False, "latents", {"answers"}, 2),
        (4607, False, "frames", {"recognise"}, 2),
        (4608, True, "frames", {"recognise"}, 2),
        (1151, False, "nothing", {"recognise"}, 6),
        (1151, True, "nothing", {"recognise"}, 6),
    ],
)
def test_what_is_kept_and_what_is_answered(
    manifest: Manifest,
    monkeypatch: pytest.MonkeyPatch,
    limit: int,
    adapt: bool,
    kept: str,
    asked: set[str],
    reads: int,
) -> None:
    monkeypatch.setattr(held_out_module, "LIMIT", limit)
    test, source, device = read(replace(manifest, adapt_moments=adapt))
    assert test.truth.tolist() == [0, 0, 0, 1, 1, 1]
    assert [(len(test.latents), len(test.frames))] == [
        {"latents": (6, 0), "frames": (0, 6), "nothing": (0, 0)}[kept]
    ]
    assert test.is_extracted == (kept == "latents") == (("extract", 1) in device.asked)
    assert len(test.samples) == 6
    device.asked.clear()
    # 2 is not a class of the data set: an unknown label, or no answer.
    assert predicted(test, device) == [0, 0, 1, 1, 2, 2]
    assert predicted(test, device) == [0, 0, 1, 1, 2, 2]
    assert {name for name, _ in device.asked} == asked
    assert sum(count for _, count in device.asked) == 12
    assert len(source.read) == reads


def test_a_device_whose_latents_change_is_tested_again(manifest: Manifest) -> None:
    test, _, device = read(replace(manifest, adapt_moments=True))
    assert predicted(test, device) == [0, 0, 1, 1, 2, 2]
    device.shift = 1
    assert predicted(test, device) == [1, 1, 2, 2, 0, 2]


def test_uint8_latents_count_one_byte_each(
    manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_out_module, "LIMIT", 1152)
    test, _, _ = read(replace(manifest, latent_dtype="uint8", replay_layer="images"))
    assert test.is_extracted


@pytest.mark.parametrize(("message", "sizes"), [(10_000, [6]), (1536, [2, 2, 2]), (1, [1] * 6)])
def test_messages_stay_small(
    manifest: Manifest, monkeypatch: pytest.MonkeyPatch, message: int, sizes: list[int]
) -> None:
    monkeypatch.setattr(held_out_module, "MESSAGE", message)
    test, _, device = read(manifest)
    device.asked.clear()
    heard: list[tuple[int, int | None]] = []
    test.predicted(device, LABELS, on_progress=lambda p: heard.append((p.done, p.total)))  # type: ignore[arg-type]
    assert device.asked == [("answers", size) for size in sizes]
    assert heard == [(int(done), 6) for done in np.cumsum(sizes)]


def test_extracting_again_gives_the_same_accuracy(
    simulated: Simulation, options: SimulateOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_out_module, "LIMIT", 0)
    again = simulate(None, options)
    for found, expected in zip(again.per_session, simulated.per_session):
        assert replace(found, session_ms=0) == replace(expected, session_ms=0)
    assert again.per_class == simulated.per_class
    assert any("extracts the test set again" in note for note in again.notes)
    assert not any("extracts the test set again" in note for note in simulated.notes)
