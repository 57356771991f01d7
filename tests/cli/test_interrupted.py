"""Ctrl-C or SIGKILL in the middle of learning: earlier sessions are not lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lrtflite import Learner
from lrtflite.state.folder import read_state

pytestmark = pytest.mark.slow

# Learns "mug", then "hat" from a camera that never stops, or in endless training.
SCRIPT = """
import sys
import numpy as np
from lrtflite import Learner
bundle, state, phase = sys.argv[1:]
learner = Learner.open(bundle, state)
rng = np.random.default_rng(0)
learner.learn_latents(rng.random((30, *learner.bundle.manifest.latent_shape), np.float32), "mug")
size = learner.bundle.manifest.input_size

def camera():
    while True:
        yield rng.integers(0, 255, (size, size, 3)).astype(np.uint8)

def tell(progress):
    if progress.phase == phase:
        print(progress.done, flush=True)

print("taught", flush=True)
if phase == "extract":
    learner.learn(camera(), "hat", on_progress=tell)
else:
    frames = [frame for frame, _ in zip(camera(), range(5))]
    endless = learner.training.with_options(epochs=10**5)
    learner.learn(frames, "hat", training=endless, on_progress=tell)
"""


@pytest.mark.parametrize(
    ("phase", "number"),
    [("extract", signal.SIGINT), ("train", signal.SIGINT), ("train", signal.SIGKILL)],
)
def test_a_session_that_is_cut_off_never_was(
    demo: Path, tmp_path: Path, phase: str, number: signal.Signals
) -> None:
    state = tmp_path / "state"
    command = [sys.executable, "-c", SCRIPT, str(demo), str(state), phase]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "taught\n"
        before = {path.name: path.read_bytes() for path in state.glob("state-*")}
        while process.stdout.readline().strip() != "20":
            assert process.poll() is None
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == -number
    if number == signal.SIGINT:
        assert stderr.rstrip().endswith("KeyboardInterrupt")

    assert {path.name: path.read_bytes() for path in state.glob("state-*")} == before
    kept = read_state(state)
    assert kept.meta.sessions == 1
    with Learner.open(demo, state) as learner:
        assert [label for label in learner.labels if label] == ["mug"]
        np.testing.assert_array_equal(learner.memory.codes, kept.memory.rows.all())
