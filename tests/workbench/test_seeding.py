"""A memory of the host's frames: the head must know what the memory holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fake_bundle import FEEDING, TRAINING, frames, make_bundle, open_fake
from lrtflite.bundle.bundle import INITIAL_FILE
from lrtflite.state.reading import read_state_file
from lrtflite.workbench.seeding import seed_memory


@pytest.mark.parametrize(("strategy", "gathers"), [("steps", "nothing"), ("gathering", "session")])
def test_a_head_that_does_not_start_from_a_classifier_is_taught(
    tmp_path: Path, strategy: str, gathers: str
) -> None:
    """Sums of a closed form never see stored latents again, so they must see them first."""
    labels = ("cup", None, "ball", None, None)
    training = replace(TRAINING, feeding=replace(FEEDING, gathers=gathers))
    facts = {"labels": labels, "strategy": strategy}
    bundle = make_bundle(tmp_path / "bundle", training=training, **facts)
    archive = tmp_path / "frames.npz"
    np.savez(archive, images=frames(10, 20, 30), slots=np.array([0, 2, 2], np.int32))
    seed_memory(bundle, archive, open_learner=open_fake)
    state = read_state_file(bundle / INITIAL_FILE)
    assert state.meta.learned == (True, False, True, False, False)
    assert state.meta.labels == labels
    assert state.meta.sessions == 1
    assert sorted(state.memory.facts["slots"]) == [0, 2, 2]
