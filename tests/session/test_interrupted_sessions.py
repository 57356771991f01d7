"""An interrupt anywhere in a session leaves the state before it or after it."""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from learning import TRAINING, fingerprint, latents_of
from lrtflite import Learner

pytestmark = pytest.mark.slow

Open = Callable[..., Learner]
INTERRUPTS = 120


def interrupted_after(seconds: float, call: Callable[[], object]) -> None:
    """Raise KeyboardInterrupt inside `call` after this many seconds, unless it ends first."""
    # Like Ctrl-C: a SIGINT, wherever the main thread is.
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        # One-shot: wherever in here the signal lands, it is the only one.
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass


# An interrupt inside the standard library leaves open files to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("stored", [True, False])
def test_an_interrupt_leaves_a_whole_state(
    open_learner: Open, tmp_path: Path, stored: bool
) -> None:
    learner = open_learner(tmp_path if stored else None)
    learner.learn_latents(latents_of(0), "cup", training=TRAINING)
    started = time.perf_counter()
    learner.learn_latents(latents_of(1), "hat", training=TRAINING)
    whole = time.perf_counter() - started
    rng = np.random.default_rng(0)
    ended = set()
    for number in range(INTERRUPTS):
        before, sessions = fingerprint(learner), learner.sessions
        latents = latents_of(number % 3)
        interrupted_after(
            float(rng.uniform(1e-4, 1.2 * whole)),
            lambda: learner.learn_latents(latents, "ball", training=TRAINING),  # noqa: B023
        )
        if stored:
            with Learner.open(learner.bundle, tmp_path, read_only=True) as disk:
                assert disk.sessions - sessions in (0, 1)
                # The next change first finishes in RAM what the interrupt prevented.
                learner.rename("cup", "cup")
                with Learner.open(learner.bundle, tmp_path, read_only=True) as after:
                    assert fingerprint(after) == fingerprint(learner)
        ended.add(learner.sessions - sessions)
        if learner.sessions == sessions and not stored:
            assert fingerprint(learner) == before
    gc.collect()
    assert ended == {0, 1}, "the interrupts came all too early or all too late"
    learner.learn_latents(latents_of(2), "ball", training=TRAINING)
    assert learner.predict_latents(latents_of(2, 1, seed=5))[0][0].label == "ball"
