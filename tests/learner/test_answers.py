"""Every answer comes from a single state, also while a session is committed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fake_bundle import SHAPE, make_bundle, open_fake
from learning import TRAINING, frames_of, latents_of
from lrtflite import Learner
from lrtflite.errors import InputError, LrtfliteError
from lrtflite.state.slots import Slots

pytestmark = pytest.mark.slow

Open = Callable[..., Learner]


class Intruder:
    """A thread that commits a session when a model is asked for `signature`.

    Before the model answers, or, with `late`, after it. It waits a second for the commit and then
    lets the call through: where a lock keeps the commit out, it comes later.
    """

    def __init__(
        self, model: Any, signature: str, session: Callable[[], object], *, late: bool = False
    ) -> None:
        self._late = late
        self._model, self._run, self._signature = model, model.run, signature
        self._committed = threading.Event()
        self._thread = threading.Thread(target=self._learn, args=(session,))
        self._skip = 0
        model.run = self

    def after(self, calls: int) -> Intruder:
        """Let this many calls pass first."""
        self._skip = calls
        return self

    def __call__(self, signature: str, **inputs: Any) -> Any:
        mine = signature == self._signature and not self._thread.ident
        if mine and self._skip:
            self._skip -= 1
            mine = False
        if mine and not self._late:
            self._intrude()
        answer = self._run(signature, **inputs)
        if mine and self._late:
            self._intrude()
        return answer

    def _intrude(self) -> None:
        self._thread.start()
        self._committed.wait(1.0)

    def join(self) -> None:
        assert self._thread.ident, "the model was not asked"
        self._thread.join()
        self._model.run = self._run

    def _learn(self, session: Callable[[], object]) -> None:
        session()
        self._committed.set()


@pytest.fixture
def open_adapting(tmp_path: Path) -> Iterator[Learner]:
    """Return a learner with adapting moments that has learned two grey objects."""
    with open_fake(make_bundle(tmp_path / "bundle")) as learner:
        for value, label in ((10, "dark"), (30, "grey")):
            learner.learn(frame(value), label)
        yield learner


def frame(value: int) -> np.ndarray:
    return np.full(SHAPE, value, np.uint8)


def test_labels_and_weights_are_of_one_state(open_learner: Open) -> None:
    learner = open_learner()
    learner.learn_latents(latents_of(0), "old", training=TRAINING)
    intruder = Intruder(
        learner.committed.serving,
        "infer",
        lambda: learner.learn_latents(latents_of(1), "new", training=TRAINING),
    )
    [[answer]] = learner.predict_latents(latents_of(1, 1), top=1)
    assert (answer.label, answer.probability) == ("old", 1.0)
    intruder.join()
    [[answer]] = learner.predict_latents(latents_of(1, 1), top=1)
    assert answer.label == "new"


def test_moments_and_weights_are_of_one_state(open_adapting: Learner) -> None:
    learner = open_adapting
    before = learner.predict(frame(20))
    session = lambda: learner.learn([frame(v) for v in (200, 210, 220)], "white")  # noqa: E731
    intruder = Intruder(learner.committed.features, "extract", session, late=True)
    answer = learner.predict(frame(20))
    intruder.join()
    after = learner.predict(frame(20))
    assert before != after
    assert answer in (before, after)


def test_latents_are_of_one_state(open_adapting: Learner) -> None:
    learner = open_adapting
    both = np.stack([frame(20), frame(20)])
    session = lambda: learner.learn([frame(v) for v in (200, 210, 220)], "white")  # noqa: E731
    intruder = Intruder(learner.committed.features, "extract", session).after(1)
    # The session extracts in its own thread, so only the second frame comes after the commit.
    first, second = learner.extract(both)
    intruder.join()
    np.testing.assert_array_equal(first, second)


def test_many_latents_are_answered_by_one_state(
    open_learner: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = open_learner()
    learner.learn_latents(latents_of(0), "old", training=TRAINING)
    monkeypatch.setattr("lrtflite.learner.AT_ONCE_BYTES", 4 * 1024)  # four latents at a time
    intruder = Intruder(
        learner.committed.serving,
        "infer",
        lambda: learner.learn_latents(latents_of(1), "new", training=TRAINING),
    ).after(1)
    found = learner.probabilities(latents_of(1, 12))
    intruder.join()
    np.testing.assert_array_equal(found[:, 0], 1.0)
    assert learner.probabilities(latents_of(1, 12))[:, 1].min() > 0.5


def test_a_learner_without_learned_labels_says_so(open_learner: Open, tmp_path: Path) -> None:
    learner = open_learner(tmp_path)
    latents, frames = latents_of(0, 2), frames_of(0, 2)

    def refused() -> None:
        asks: list[Callable[[], object]] = [
            lambda: learner.predict_latents(latents),
            lambda: learner.predict(frames),
        ]
        for ask in asks:
            with pytest.raises(InputError, match=r"nothing yet; teach it a label with learn\(\)"):
                ask()
        assert learner.probabilities(latents).tolist() == [[0] * 50] * 2

    refused()
    learner.rename(new="a name alone", slot=0)
    refused()
    learner.learn_latents(latents_of(0), "cup", training=TRAINING)
    assert learner.predict(frames)[1][0].label == "cup"
    learner.forget("cup")
    refused()


class PausedSlots:
    """Slots whose labels are read once while `session` runs in another thread.

    The reader waits a second for the session, which a lock may keep out until later.
    """

    def __init__(self, slots: Slots, session: Callable[[], object]) -> None:
        self._slots = slots
        self._thread = threading.Thread(target=session)

    @property
    def labels(self) -> tuple[str | None, ...]:
        labels = self._slots.labels
        if not self._thread.ident:
            self._thread.start()
            self._thread.join(1.0)
        return labels

    def join(self) -> None:
        assert self._thread.ident, "nobody read the labels"
        self._thread.join()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._slots, name)


def test_what_is_learned_is_of_one_state(open_learner: Open) -> None:
    learner = open_learner()
    learner.learn_latents(latents_of(0), "cup", training=TRAINING)
    learner.rename(new="pen", slot=1)

    def rename_and_learn() -> None:
        learner.rename("cup", "mug")
        learner.learn_latents(latents_of(1), "pen", training=TRAINING)

    paused = PausedSlots(learner.committed.slots, rename_and_learn)
    learner.committed.slots = paused  # type: ignore[assignment]
    # Labels of the first state with the learned slots of the last one would be ("cup", "pen").
    during = learner.learned
    paused.join()
    assert (during, learner.learned) == (("cup",), ("mug", "pen"))


def test_reading_what_is_learned_copies_no_head(open_learner: Open) -> None:
    learner = open_learner()
    learner.learn_latents(latents_of(0), "cup", training=TRAINING)
    learner.committed.serving.run = lambda *_, **__: pytest.fail("no model is asked")  # type: ignore[method-assign]
    assert learner.learned == ("cup",)


def test_a_session_saves_its_head_once(open_learner: Open, tmp_path: Path) -> None:
    learner = open_learner(tmp_path)
    run, calls = learner.committed.working.run, []

    def record(signature: str, **inputs: Any) -> Any:
        calls.append(signature)
        return run(signature, **inputs)

    learner.committed.working.run = record  # type: ignore[method-assign]
    learner.learn_latents(latents_of(0), "cup", training=TRAINING)
    assert calls.count("save") == 1


def test_any_thread_may_ask_and_only_one_change_runs(open_learner: Open) -> None:
    """Other changes are refused at once, and no answer or error is anything else."""
    learner = open_learner()
    learner.learn_latents(latents_of(0), "old", training=TRAINING)
    enough, odd, refused = threading.Event(), list[BaseException](), list[str]()
    frame = frames_of(0)[0]

    def again(call: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            while not enough.is_set():
                try:
                    call()
                except LrtfliteError as error:
                    refused.append(str(error))
                except BaseException as error:
                    odd.append(error)

        return run

    def ask() -> None:
        [found] = learner.predict(frame)
        assert "old" in [each.label for each in found]
        assert learner.probabilities(learner.extract(frame)).sum() == pytest.approx(1, abs=1e-5)
        assert "old" in learner.learned

    def learn(label: str) -> Callable[[], object]:
        return lambda: learner.learn_latents(latents_of(1, 10), label, training=TRAINING)

    calls = [ask, ask, learn("new"), learn("newer"), learner.snapshot]
    threads = [threading.Thread(target=again(call)) for call in calls]
    for thread in threads:
        thread.start()
    enough.wait(1.5)
    enough.set()
    for thread in threads:
        thread.join()
    assert odd == []
    assert {text.partition(";")[0] for text in refused} == {"A session is running already"}
    assert learner.sessions > 2
