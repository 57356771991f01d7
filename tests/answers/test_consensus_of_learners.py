"""A consensus for a learner: where its threshold comes from, and the answers of real heads."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from learning import TRAINING, latents_of
from lrtflite import Consensus, InputError, Learner
from lrtflite.bundle.bundle import MANIFEST_FILE

Open = Callable[..., Learner]


@pytest.fixture
def advised(demo: Path, tmp_path: Path) -> Path:
    """Return the demo bundle with a threshold of its own."""
    bundle = tmp_path / "advised"
    shutil.copytree(demo, bundle)
    manifest = json.loads((bundle / MANIFEST_FILE).read_text())
    (bundle / MANIFEST_FILE).write_text(json.dumps({**manifest, "unknown": 0.02}))
    return bundle


def test_the_threshold_is_of_the_learner_else_of_the_bundle(
    open_learner: Open, advised: Path
) -> None:
    assert Consensus.of(open_learner()).threshold is None
    assert Consensus.of(open_learner(unknown=0.1)).threshold == 0.1
    with Learner.open(advised) as learner:
        assert learner.unknown is None
        assert Consensus.of(learner).threshold == 0.02
        assert Consensus.of(learner, threshold=0.3).threshold == 0.3
    with Learner.open(advised, unknown=0.0) as learner:
        assert Consensus.of(learner).threshold == 0.0


def test_options_are_those_of_a_consensus(open_learner: Open) -> None:
    with pytest.raises(
        InputError, match=r"^Expected frames as a whole number of at least 1, got 0"
    ):
        Consensus.of(open_learner(), frames=0)


@pytest.mark.parametrize("unknown", [None, 0.05])
@pytest.mark.parametrize("top", [1, 3])
def test_taught_and_untaught_things_settle(
    open_learner: Open, unknown: float | None, top: int
) -> None:
    learner = open_learner(unknown=unknown)
    for kind in range(4):
        learner.learn_latents(latents_of(kind), f"kind {kind}", training=TRAINING)
    consensus = Consensus.of(learner, threshold=0.05)
    for kind, expected in ((0, "kind 0"), (12, None), (3, "kind 3")):
        found = [
            consensus.add(guesses)
            for guesses in learner.predict_latents(latents_of(kind, 12, seed=1), top=top)
        ]
        assert found[-1].label == expected
        assert found[-1].kind == ("unknown" if expected is None else "answer")
        assert found[-1].slot == (-1 if expected is None else kind)
