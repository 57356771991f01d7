"""Devices of a fleet for the tests of merging, and what their states answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from learning import alike_latents
from lrtflite import Learner
from lrtflite.errors import LrtfliteError
from lrtflite.state.folder import read_state

# A session: label, kind of object, day on which it is seen.
TeachingReport = tuple[str, int, int]
# Three devices with classes in common and classes of their own, in different orders.
KITCHEN: list[TeachingReport] = [("mug", 0, 1), ("pan", 1, 1), ("mug", 0, 2)]
OFFICE: list[TeachingReport] = [("pen", 2, 3), ("mug", 0, 3), ("book", 3, 3)]
HALL: list[TeachingReport] = [("hat", 4, 4), ("pan", 1, 4)]
LABELS = ("mug", "pan", "pen", "book", "hat")


def teach(bundle: Path, state: Path, *sessions: TeachingReport, seed: int = 0) -> Path:
    """Teach 20 patterns in each session; return the state folder."""
    with Learner.open(bundle, state, seed=seed) as learner:
        for label, kind, day in sessions:
            learner.learn_latents(alike_latents(kind, day), label)
    return state


def teach_fleet(bundle: Path, folder: Path) -> list[Path]:
    """Make the states `kitchen`, `office` and `hall`."""
    devices = {"kitchen": KITCHEN, "office": OFFICE, "hall": HALL}
    return [teach(bundle, folder / name, *sessions) for name, sessions in devices.items()]


def forget(bundle: Path, state: Path, label: str) -> None:
    with Learner.open(bundle, state) as learner:
        learner.forget(label)


def rename(bundle: Path, state: Path, label: str, new: str) -> None:
    with Learner.open(bundle, state) as learner:
        learner.rename(label, new)


def refused(kind: type[LrtfliteError], said: str, run: Callable[[Path], object], out: Path) -> None:
    """The error is one line that says `said`, and nothing is written."""
    before = sorted(out.parent.iterdir())
    with pytest.raises(kind, match=said) as caught:
        run(out)
    assert len(str(caught.value).splitlines()) == 1
    assert sorted(out.parent.iterdir()) == before


def sums(state: Path, *labels: str) -> dict[str, np.ndarray]:
    """The sums of an lda state; rows of classes are in the order of `labels`."""
    found = read_state(state)
    slots = [found.meta.labels.index(label) for label in labels]
    arrays = {name[5:]: found.arrays[name] for name in found.arrays if name.startswith("head/")}
    rows = {name: arrays[name][slots] for name in ("class_sums", "class_counts")}
    return {**rows, **{name: arrays[name] for name in ("scatter", "squares", "pattern_count")}}


def scores(state: Path, latents: np.ndarray, *labels: str) -> np.ndarray:
    """(n, labels) float64: z . w + b, computed here from the weights of an lda state."""
    found = read_state(state)
    slots = [found.meta.labels.index(label) for label in labels]
    roots = np.sqrt(latents.astype(np.float64))
    z = roots / np.linalg.norm(roots, axis=1, keepdims=True)
    answers: Any = z @ found.arrays["head/weights"][slots].T + found.arrays["head/bias"][slots]
    return np.asarray(answers)


def assert_same_sums(one: Path, other: Path, *labels: str) -> None:
    found, expected = sums(one, *labels), sums(other, *labels)
    for name, values in expected.items():
        scale = np.abs(values).max()
        np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-6 * scale, err_msg=name)


def assert_same_answers(one: Path, other: Path, *labels: str) -> None:
    """The same answers on a new day, and scores within 1e-4 of their range."""
    latents = np.concatenate([alike_latents(kind, 90) for kind in range(5)])
    found, expected = scores(one, latents, *labels), scores(other, latents, *labels)
    np.testing.assert_array_equal(found.argmax(axis=1), expected.argmax(axis=1))
    assert np.abs(found - expected).max() < 1e-4 * np.ptp(expected)
