"""Ctrl-C at any moment of a session leaves no thread behind and a learner that still learns."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads as Linux does"),
]

# SIGALRM stands in for Ctrl-C, at a chosen time. `threads` counts every thread of the process, also
# threads that are missing from Python's own list.
COMMON = """
import os, random, signal, sys, time
import numpy as np

in_session = False

def ctrl_c(number, frame):
    if in_session:
        raise KeyboardInterrupt

signal.signal(signal.SIGALRM, ctrl_c)
rng = random.Random(0)

def threads():
    return len(os.listdir("/proc/self/task"))

def interrupt_after(delay):
    signal.setitimer(signal.ITIMER_REAL, delay)

def interrupted(session):
    global in_session
    try:
        in_session = True
        session()
        in_session = False
    except KeyboardInterrupt:
        in_session = False
        return True
    interrupt_after(0)
    return False

def threads_left(before):
    deadline = time.monotonic() + 2
    while threads() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    return threads() - before
"""

# Sessions of a few tiny frames take some 100 microseconds, most of them to start and end a thread.
EXTRACTION = (
    COMMON
    + """
from lrtflite.session.recording import extract_while_arriving

def session(count, delay=0.0):
    interrupt_after(delay)
    frames = [np.full(1, value, np.uint8) for value in range(count)]
    found = extract_while_arriving(iter(frames), np.float32, on_frame=lambda count: None)
    assert np.concatenate(found).tolist() == list(range(count))

session(3)
time.sleep(0.1)  # the last thread ends
before, hits = threads(), 0
for attempt in range(4000):
    hits += interrupted(lambda: session(attempt % 4 + 1, rng.uniform(1e-6, 4e-4)))
session(100)
print(hits, threads_left(before))
"""
)

# The timer starts with the first frame, when the session is open.
LEARNER = (
    COMMON
    + """
from lrtflite import Learner

learner = Learner.open(sys.argv[1], replay_size=20)
size = learner.bundle.manifest.input_size
frames = np.random.default_rng(0).integers(0, 256, (3, size, size, 3), np.uint8)

def session(delay=0.0):
    def camera():
        interrupt_after(delay)
        yield from frames
    learner.learn(camera(), "mug", training=learner.training.with_options(epochs=1, least_steps=1))

session()
started = time.perf_counter()
session()
whole = time.perf_counter() - started
time.sleep(0.1)  # the last thread ends
before, hits = threads(), 0
for _ in range(150):
    hits += interrupted(lambda: session(rng.uniform(1e-5, 0.6 * whole)))
left = threads_left(before)
done = learner.sessions
session()
assert learner.sessions == done + 1
print(hits, left)
"""
)


def run(script: str, *words: str) -> tuple[int, int]:
    """Return the number of interrupts that hit a session, and of threads left over."""
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "Exception ignored" not in done.stderr
    hits, left = map(int, done.stdout.split())
    return hits, left


def test_no_thread_outlives_an_interrupted_extraction() -> None:
    hits, left = run(EXTRACTION)
    assert hits > 500
    assert left == 0


def test_a_learner_learns_after_interrupts(demo: Path) -> None:
    hits, left = run(LEARNER, str(demo))
    assert hits > 20
    assert left == 0
