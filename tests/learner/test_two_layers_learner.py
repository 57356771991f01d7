"""A learner on two layers and two crops: golden vectors, sessions, undo, merging."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from closed_form_bundles import SIZE, cloud
from learning import fingerprint
from lrtflite import Bundle, Learner
from lrtflite.fleet.merge import merge
from lrtflite.verification.verify import verify_bundle

Open = Callable[..., Learner]
NAMES = ("mug", "hat", "shoe", "ball", "pen")


def of_both(kind: int, count: int = 20, *, seed: int = 0) -> np.ndarray:
    """(count, 128) float32: a latent of two layers."""
    return np.concatenate([cloud(kind, count, seed=seed), cloud(kind + 50, count, seed=seed)], 1)


PROBE = np.concatenate([of_both(kind, 8, seed=9) for kind in range(5)])


def test_the_bundle_says_what_a_latent_is_and_verifies(
    closed_form_bundles: Path, runtime: str
) -> None:
    checks = verify_bundle(closed_form_bundles / "two", runtime=runtime)
    assert [each for each in checks if not each.passed] == []
    manifest = Bundle.open(closed_form_bundles / "two").manifest
    assert (manifest.replay_layer, manifest.second_layer) == ("pool6", "conv5_6/sep")
    assert (manifest.strategy, manifest.crop, manifest.pooled) == ("lda", 0.8, False)
    assert manifest.latent_shape == (128,)
    assert not manifest.requires


def test_a_session_is_learned_kept_undone_and_diagnosed(
    opened: Open, tmp_path: Path, runtime: str
) -> None:
    learner = opened(tmp_path / "state", strategy="two", runtime=runtime)
    pictures = np.random.default_rng(0).integers(0, 256, (2, SIZE, SIZE, 3)).astype(np.uint8)
    for name, picture in zip(NAMES, pictures):
        learner.learn(np.repeat(picture[np.newaxis], 10, axis=0), name)
    assert [found[0].label for found in learner.predict(pictures)] == ["mug", "hat"]
    before = fingerprint(learner)
    report = learner.learn_latents(of_both(2), "shoe", diagnose=True)
    assert report.diagnosis is not None
    answers = learner.probabilities(PROBE)
    learner.close()
    again = opened(tmp_path / "state", strategy="two", runtime=runtime)
    np.testing.assert_array_equal(again.probabilities(PROBE), answers)
    again.undo()
    assert fingerprint(again) == before


def test_two_devices_merge_into_one_that_saw_everything(
    closed_form_bundles: Path, opened: Open, tmp_path: Path
) -> None:
    bundle = closed_form_bundles / "two"
    for device, kinds in {"left": (0, 1, 2), "right": (2, 3, 4)}.items():
        with Learner.open(bundle, tmp_path / device) as learner:
            for kind in kinds:
                latents = of_both(kind, seed=0 if device == "left" else 1)
                learner.learn_latents(latents, NAMES[kind])
    one = opened(strategy="two")
    for kind, seed in ((4, 1), (3, 1), (2, 1), (2, 0), (1, 0), (0, 0)):
        one.learn_latents(of_both(kind, seed=seed), NAMES[kind])
    merged = merge(bundle, [tmp_path / "left", tmp_path / "right"], tmp_path / "merged")
    with Learner.open(bundle, merged.out) as learner:
        found, expected = (
            each.probabilities(PROBE)[:, [each.labels.index(name) for name in NAMES]]
            for each in (learner, one)
        )
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert (expected.argmax(axis=1) == np.repeat(range(5), 8)).mean() > 0.9
