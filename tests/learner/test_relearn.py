"""A class is forgotten and learned again in one commit, or not at all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from learning import fingerprint, frames_of
from lrtflite import Learner
from lrtflite.errors import InputError, SessionCancelled, StateError

Open = Callable[..., Learner]


@pytest.fixture
def taught(open_learner: Open, tmp_path: Path) -> Learner:
    learner = open_learner(tmp_path / "state")
    for kind, label in enumerate(("mug", "cup", "pen")):
        learner.learn(frames_of(kind, 12), label)
    return learner


def test_it_is_what_forgetting_and_learning_gives(taught: Learner, open_learner: Open) -> None:
    other = open_learner()
    for kind, label in enumerate(("mug", "cup", "pen")):
        other.learn(frames_of(kind, 12), label)
    other.forget("cup")
    other.learn(frames_of(4, 8), slot=1)
    other.rename(new="cup", slot=1)

    report = taught.relearn(frames_of(4, 8), "cup")

    assert (report.labels, report.frames, report.session) == (("cup",), 8, 4)
    assert taught.labels == other.labels
    assert taught.patterns == other.patterns == {"mug": 12, "cup": 8, "pen": 12}
    probes = np.stack([*frames_of(1, 4), *frames_of(4, 4)])
    np.testing.assert_allclose(
        taught.probabilities(taught.extract(probes)),
        other.probabilities(other.extract(probes)),
        atol=1e-5,
    )


def test_one_undo_takes_back_both(taught: Learner) -> None:
    before = fingerprint(taught)
    taught.relearn(frames_of(4, 8), slot=1)
    assert fingerprint(taught) != before
    taught.undo()
    assert fingerprint(taught) == before
    with pytest.raises(StateError):
        taught.undo()


def test_nothing_changes_without_frames_a_class_or_an_end(taught: Learner) -> None:
    before = fingerprint(taught)
    cancel = threading.Event()

    def cancelled() -> Iterator[np.ndarray]:
        yield from frames_of(4, 4)
        cancel.set()
        yield from frames_of(4, 4)

    with pytest.raises(InputError, match="empty session"):
        taught.relearn([], "cup")
    for label, slot in (("knife", None), (None, 7), (None, 99), (None, None)):
        with pytest.raises(InputError):
            taught.relearn(frames_of(4, 4), label, slot=slot)
    with pytest.raises(SessionCancelled):
        taught.relearn(cancelled(), "cup", cancel=cancel)
    with pytest.raises(RuntimeError, match="camera"):
        taught.relearn(broken(), "cup")
    assert fingerprint(taught) == before
    assert taught.labels[:4] == ("mug", "cup", "pen", None)


def broken() -> Iterator[np.ndarray]:
    yield from frames_of(4, 4)
    raise RuntimeError("camera")
