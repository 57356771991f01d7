"""Learners of every strategy: golden vectors, and states that are reopened between sessions."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from lrtflite import Bundle, Learner
from lrtflite.errors import InputError, NoFreeSlot, StateError
from lrtflite.progress import Phase, Progress
from lrtflite.verification.verify import verify_bundle
from strategy_bundles import NAMES, PAPER

EVERY = (*NAMES, *PAPER)


@pytest.fixture
def bundles(strategy_bundles: Path) -> Path:
    return strategy_bundles


def cloud(learner: Learner, kind: int, *, seed: int = 0, count: int = 10) -> np.ndarray:
    """Return latents of one class, (count, ...) float32."""
    shape = learner.bundle.manifest.latent_shape
    centre = np.random.default_rng(100 + kind).exponential(1, shape)
    noise = np.random.default_rng((seed, kind)).normal(0, 0.3, (count, *shape))
    return np.clip(centre + noise, 0, 6).astype("f")


@pytest.mark.parametrize("name", EVERY)
def test_golden_vectors(bundles: Path, name: str, runtime: str) -> None:
    failed = [each for each in verify_bundle(bundles / name, runtime=runtime) if not each.passed]
    assert failed == []


def sessions(learner: Learner, numbers: range) -> None:
    for number in numbers:
        kinds = (number, (number + 1) % 4)
        latents = np.concatenate([cloud(learner, kind, seed=number) for kind in kinds])
        learner.learn_latents(latents, [f"thing {kind}" for kind in kinds for _ in range(10)])


@pytest.mark.parametrize("name", EVERY)
def test_a_state_that_is_reopened_learns_on_as_if_it_had_not_been(
    bundles: Path, name: str, runtime: str, tmp_path: Path
) -> None:
    with Learner.open(bundles / name, tmp_path / "whole", runtime=runtime) as whole:
        sessions(whole, range(4))
        probe = np.concatenate([cloud(whole, kind, seed=9) for kind in range(4)])
        expected = whole.probabilities(probe)
        assert np.isfinite(expected).all()
        # Four classes of ten patterns each, 80 of them taught: far better than chance.
        right = expected[:, :4].argmax(1) == np.repeat(range(4), 10)
        assert right.mean() > (0.3 if "naive" in name or name in PAPER else 0.5), name
    for number in range(4):
        with Learner.open(bundles / name, tmp_path / "parts", runtime=runtime) as part:
            sessions(part, range(number, number + 1))
    with Learner.open(bundles / name, tmp_path / "parts", runtime=runtime) as part:
        np.testing.assert_array_equal(part.probabilities(probe), expected)
        part.undo()
        assert not np.array_equal(part.probabilities(probe), expected)
        part.forget("thing 1")
        assert "thing 1" not in part.learned
        assert (part.probabilities(probe)[:, 1] == 0).all()


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("phase", [Phase.TRAIN, Phase.GATHER])
def test_a_session_that_fails_in_the_middle_leaves_nothing_behind(
    bundles: Path, name: str, phase: str
) -> None:
    class Stopped(Exception):
        pass

    def stop(progress: Progress) -> None:
        if progress.phase == phase:
            raise Stopped

    with Learner.open(bundles / name) as whole, Learner.open(bundles / name) as failing:
        sessions(whole, range(2))
        sessions(failing, range(2))
        probe = np.concatenate([cloud(whole, kind, seed=9) for kind in range(4)])
        before = whole.probabilities(probe)
        with suppress(Stopped):
            failing.learn_latents(cloud(failing, 5), "another", on_progress=stop)
            return  # this strategy has no such phase
        np.testing.assert_array_equal(failing.probabilities(probe), before)
        assert "another" not in failing.labels
        for learner in (whole, failing):
            sessions(learner, range(2, 3))
        np.testing.assert_array_equal(failing.probabilities(probe), whole.probabilities(probe))


@pytest.mark.parametrize("name", EVERY)
def test_a_class_can_be_forgotten_and_its_slot_taught_again(bundles: Path, name: str) -> None:
    with Learner.open(bundles / name) as learner:
        sessions(learner, range(4))
        for extra in ("fifth", "sixth"):  # every slot is taken
            learner.learn_latents(cloud(learner, 4 + len(extra)), extra)
        with pytest.raises(NoFreeSlot):
            learner.learn_latents(cloud(learner, 4), "seventh")
        learner.forget("thing 1")
        assert not (learner.memory.slots == 1).any()
        learner.learn_latents(cloud(learner, 20), "new")
        assert learner.labels[1] == "new"
        found = learner.probabilities(cloud(learner, 20, seed=3))
        np.testing.assert_allclose(found.sum(1), 1, rtol=1e-4)
        if "lwf" not in name and name not in PAPER:  # these learn a class slowly
            assert (found.argmax(1) == 1).mean() > 0.5
        # A session of a known class alone.
        learner.learn_latents(cloud(learner, 20, seed=4), "new")
        assert len(learner.learned) == 6


@pytest.mark.parametrize("name", EVERY)
def test_one_pattern_of_one_class_without_a_memory(bundles: Path, name: str) -> None:
    with Learner.open(bundles / name, replay_size=0) as learner:
        for number in range(3):
            learner.learn_latents(cloud(learner, number, count=1), f"thing {number}")
        assert len(learner.memory) == 0
        found = learner.probabilities(cloud(learner, 2))
        np.testing.assert_allclose(found.sum(1), 1, rtol=1e-4)
        assert learner.learned == ("thing 0", "thing 1", "thing 2")


def test_a_state_of_another_strategy_is_refused(bundles: Path, tmp_path: Path) -> None:
    with Learner.open(bundles / "last-ewc", tmp_path / "state") as learner:
        sessions(learner, range(1))
    with pytest.raises(StateError, match="bundle"):
        Learner.open(bundles / "last-naive", tmp_path / "state")


def test_the_manifest_names_the_strategy(bundles: Path) -> None:
    for name in NAMES:
        place, _, strategy = name.partition("-")
        manifest = Bundle.open(bundles / name).manifest
        assert manifest.strategy == strategy
        assert manifest.trains_trunk == (place == "deep")
        assert set(manifest.merging.values()) == {"refuse"}


# `ar1free` has the head of `ar1`, without protection.
@pytest.mark.parametrize("strategy", ["ar1", "ewc", "lwf", "naive"])
def test_heads_whose_trunk_trains_have_no_unknown(
    bundles: Path, strategy: str, runtime: str, tmp_path: Path
) -> None:
    bundle = Bundle.open(bundles / f"deep-{strategy}")
    assert bundle.manifest.unknown is None
    expected = f"unknown=0.46, got the strategy '{strategy}'; convert with --strategy lda"
    with pytest.raises(InputError, match=expected):
        Learner.open(bundle, tmp_path / "s", runtime=runtime, unknown=0.46)
    with Learner.open(bundle, tmp_path / "s", runtime=runtime) as learner:
        assert not learner.reports_familiarity
        sessions(learner, range(1))
        assert learner.predict_latents(cloud(learner, 0))[0][0].familiarity is None
