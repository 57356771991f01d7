"""The replay memories of several devices combined, without duplicate latents."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.fleet.devices import Device
from lrtflite.replay.memory import Content
from lrtflite.replay.policies import balanced_choice


def merge_memories(
    devices: Sequence[Device],
    dropped: Sequence[Device],
    labels: Sequence[str | None],
    *,
    capacity: int,
    rng: np.random.Generator,
) -> Content:
    """Return the patterns of all memories, balanced, at most `capacity`.

    `labels` has the merged label of each slot. Shipped latents are in many memories but are used
    once; they stay if a device that also has them is dropped.
    """
    shipped = {key for device in devices for key in _digests(device.origin.codes)}
    gone = {key for device in dropped for key in _digests(device.state.memory.rows.all())}
    leaving = [gone - shipped, *[set[bytes]()] * (len(devices) - 1)]
    kept: dict[bytes, tuple[NDArray[Any], int]] = {}
    for device, left_out in zip(devices, leaving):
        codes, slots = device.state.memory.rows.all(), device.state.memory.facts["slots"]
        for key, code, slot in zip(_digests(codes), codes, slots):
            label = device.labels[slot]
            if key not in left_out and label is not None and label in labels:
                kept.setdefault(key, (code, labels.index(label)))
    placed = np.array([slot for _, slot in kept.values()], np.int32)
    chosen = np.arange(len(placed))
    if len(placed) > capacity:
        chosen = np.sort(balanced_choice(placed, capacity, rng))
    found = [code for code, _ in kept.values()]
    like = devices[0].state.memory.rows
    empty = Content.empty(like.shape, like.dtype)
    rows = np.arange(len(chosen))
    return empty.with_rows([found[pick] for pick in chosen], rows, slots=placed[chosen])


def _digests(codes: NDArray[Any]) -> list[bytes]:
    return [hashlib.sha256(code.tobytes()).digest() for code in codes]
