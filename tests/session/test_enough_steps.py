"""A session goes on in whole passes until its loss is low, as the feeding says, and no longer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fake_bundle import FEEDING, TRAINING, FakeModel, fake, frames, one
from lrtflite import Bundle, Learner, Progress
from lrtflite.bundle.feeding import Feeding
from lrtflite.bundle.manifest_json import read_manifest
from lrtflite.errors import BundleError
from scripted_losses import CASES, ENOUGH_LOSS, EXTRA_STEPS

Open = Callable[..., Learner]
# Three places for new patterns: a session of four has two steps a pass.
EXTRA = replace(FEEDING, extra_steps=EXTRA_STEPS, enough_loss=ENOUGH_LOSS)
# Steps where a caller chooses the epochs: that many passes, and extra ones only if asked for.
CHOSEN: list[tuple[list[float], dict[str, float], int]] = [
    ([9] * 99, {"epochs": 3}, 6),
    ([9] * 99, {"epochs": 3, "least_steps": 7}, 7),
    ([9] * 99, {"epochs": 3, "extra_steps": 2}, 8),
    ([9] * 99, {"epochs": 3, "enough_loss": 9.5}, 6),
    ([9] * 99, {"epochs": 3, "enough_loss": 8.5}, 10),
]


def scripted(monkeypatch: pytest.MonkeyPatch, losses: list[float]) -> None:
    """Let the fake head's steps return these losses, then 0."""
    left: Iterator[float] = iter(losses)

    def step(self: FakeModel, latents: Any, targets: Any, lr: Any, **_: Any) -> dict[str, Any]:
        return {"loss": one(next(left, 0.0)), "accuracy": one(0.5)}

    monkeypatch.setattr(FakeModel, "train", step)
    monkeypatch.setattr(FakeModel, "train_last", step)


def taught(open_deep: Open) -> Learner:
    """Return a learner that knows two classes and has two latents in its memory."""
    learner = open_deep(training=replace(TRAINING, feeding=EXTRA))
    learner.learn(frames(1, 2), ["a", "b"], training=learner.training.with_options(epochs=2))
    fake(learner.committed.working).calls.clear()
    return learner


@pytest.mark.parametrize(("losses", "numbers", "steps"), [*CASES, *CHOSEN])
def test_steps_of_a_session(
    open_deep: Open,
    monkeypatch: pytest.MonkeyPatch,
    losses: list[float],
    numbers: dict[str, float],
    steps: int,
) -> None:
    learner = taught(open_deep)
    scripted(monkeypatch, losses)
    training = learner.training.with_options(**numbers)
    heard: list[Progress] = []
    report = learner.learn(frames(3, 4, 5, 6), "c", training=training, on_progress=heard.append)
    assert report.steps == steps
    assert len(fake(learner.committed.working).inputs_of("train")) == steps
    told = [(p.done, p.total) for p in heard if p.phase == "train"]
    assert [done for done, _ in told] == list(range(1, steps + 1))
    # The total grows by a pass at a time, and is reached at the end only.
    assert [done == total for done, total in told] == [False] * (steps - 1) + [True]


def test_every_pattern_is_seen_equally_often_in_extra_passes(
    open_deep: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = taught(open_deep)
    scripted(monkeypatch, [9.0] * 99)
    training = learner.training.with_options(epochs=2, extra_steps=4)
    learner.learn(frames(3, 4, 5, 6, 7, 8), "c", training=training)
    # Six new patterns, three in each of two steps a pass, in two passes and two extra ones.
    new = Counter(
        float(latent[0, 0, 0])
        for inputs in fake(learner.committed.working).inputs_of("train")
        for latent, target in zip(inputs["latents"], inputs["targets"])
        if target[2]
    )
    assert list(new.values()) == [4] * 6


def test_a_trunk_that_rests_goes_on_with_the_cheaper_step(
    open_deep: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = open_deep(training=replace(TRAINING, feeding=EXTRA))
    scripted(monkeypatch, [9, 9, 9, 0.1])
    # One class and no memory: all six places are new, one step a pass, two epochs.
    assert learner.learn(frames(1, 2), "a").steps == 4
    assert len(fake(learner.committed.working).inputs_of("train_last")) == 4


def test_moments_adapt_by_the_epochs_of_the_feeding(
    open_deep: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = taught(open_deep)
    scripted(monkeypatch, [9.0] * 99)
    learner.learn(frames(3, 4, 5, 6), "c")
    assert {
        one["epochs"].item() for one in fake(learner.committed.adapting).inputs_of("adapt")
    } == {2}


@pytest.mark.parametrize("enough", [1e9, 0.05, 0.02, 0.0])
def test_both_runtimes_stop_where_their_own_losses_say(
    demo: Path, runtime: str, enough: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses: list[float] = []
    rng = np.random.default_rng(0)
    with Learner.open(demo, runtime=runtime) as learner:
        size = learner.bundle.manifest.latent_shape[0]
        centres = rng.uniform(0, 3, (3, size))
        latents = np.clip(centres.repeat(9, 0) + rng.normal(0, 1, (27, size)), 0, 6)
        latents = latents.astype(np.float32)
        learner.learn_latents(latents[:18], ["a"] * 9 + ["b"] * 9)
        model = learner.committed.working
        run = model.run

        def spy(signature: str, **inputs: Any) -> Any:
            found = run(signature, **inputs)
            if signature == "train":
                losses.append(float(found["loss"][0]))
            return found

        monkeypatch.setattr(model, "run", spy)
        training = learner.training.with_options(extra_steps=40, enough_loss=enough)
        steps = learner.learn_latents(latents[18:], "c", training=training).steps
    # 9 new and 18 stored: at most 20 of 120 places are new, so one step is a pass.
    low = [k for k in range(24, 65) if losses[k - 1 : k] and losses[k - 1] < enough]
    assert steps == len(losses) == (low[0] if low else 64)


def test_a_bundle_without_the_fields_trains_as_before(demo: Path) -> None:
    fields = json.loads((demo / "manifest.json").read_text())
    fields["feeding"] = {
        name: value
        for name, value in fields["feeding"].items()
        if name not in ("extra_steps", "enough_loss")
    }
    fields.pop("requires", None)
    manifest = read_manifest(json.dumps(fields), where="here")
    assert (manifest.feeding.extra_steps, manifest.requires) == (0, [])
    assert manifest.feeding.longest(new=25, stored=1500) == 52
    written = json.loads(manifest.to_json())
    assert "requires" not in written
    assert not {"extra_steps", "enough_loss"}.intersection(written["feeding"])


def test_the_manifest_requires_what_a_client_must_know(demo: Path) -> None:
    manifest = Bundle.open(demo).manifest
    feeding = replace(manifest.feeding, extra_steps=100, enough_loss=0.01)
    text = replace(manifest, feeding=feeding).to_json()
    assert json.loads(text)["requires"] == ["feeding.extra_steps"]
    assert json.loads(text)["feeding"]["enough_loss"] == 0.01
    assert read_manifest(text, where="here").feeding == feeding


@pytest.mark.parametrize(
    "hostile",
    [
        {"extra_steps": -1},
        {"extra_steps": 1_000_001},
        {"extra_steps": 10**30},
        {"extra_steps": 1.5},
        {"extra_steps": True},
        {"extra_steps": "100"},
        {"extra_steps": None},
        {"extra_steps": [1]},
        {"enough_loss": -0.1},
        {"enough_loss": 1e39},
        {"enough_loss": 10**40},
        {"enough_loss": False},
        {"enough_loss": "0.01"},
        {"enough_loss": None},
        {"enough_loss": {}},
        {"enough_loss": ...},  # missing
        {"extra_steps": ...},
    ],
)
def test_a_manifest_with_hostile_numbers_is_refused(demo: Path, hostile: dict[str, Any]) -> None:
    fields = json.loads((demo / "manifest.json").read_text())
    feeding = {**fields["feeding"], "extra_steps": 9, "enough_loss": 0.01, **hostile}
    fields["feeding"] = {name: value for name, value in feeding.items() if value is not ...}
    with pytest.raises(BundleError, match=r"^Damaged field in here: .*; copy the bundle again$"):
        read_manifest(json.dumps(fields), where="here")


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_loss_that_is_no_number_is_refused(demo: Path, word: str) -> None:
    fields = json.loads((demo / "manifest.json").read_text())
    fields["feeding"].update(extra_steps=9, enough_loss="LOSS")
    with pytest.raises(BundleError, match=r"in here.*; copy the bundle again$"):
        read_manifest(json.dumps(fields).replace('"LOSS"', word), where="here")


def test_numpy_numbers_become_python_ones() -> None:
    given: dict[str, Any] = {"extra_steps": np.int64(7), "enough_loss": np.float32(0.5)}
    found = Feeding(8, 4, 1, 1, **given)
    assert (type(found.extra_steps), type(found.enough_loss)) == (int, float)
