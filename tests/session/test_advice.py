"""Advice about teaching that does not suit a replay layer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fake_bundle import SHAPE, make_bundle, open_fake
from lrtflite.bundle.bundle import Bundle
from lrtflite.session.run import few_classes, without_effect


def test_a_trunk_should_learn_several_classes_first(demo: Path) -> None:
    last = Bundle.open(demo).manifest
    deep = replace(last, replay_layer="conv5_4/dw", trains_trunk=True)
    advice = few_classes(deep, learned=0, coming=1)
    assert advice is not None
    assert "first session has 1 class:" in advice
    assert "convert with --strategy lda" in advice
    assert few_classes(deep, learned=0, coming=10) is None
    assert few_classes(deep, learned=3, coming=1) is None
    assert few_classes(last, learned=0, coming=1) is None
    # A closed form above the trunk is refitted, so classes may come one by one.
    refitted = replace(deep.feeding, gathers="session and memory")
    assert few_classes(replace(deep, feeding=refitted), learned=0, coming=1) is None
    # A bundle for a few classes has no other choice.
    assert few_classes(replace(deep, labels=(None,) * 5), learned=0, coming=1) is None


def test_a_learner_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # The fake head has five slots, too few for the advice.
    monkeypatch.setattr("lrtflite.session.run.ENOUGH", 4)
    with open_fake(make_bundle(tmp_path / "bundle")) as learner:
        for value in (10, 20, 30):
            learner.learn(np.full(SHAPE, value, np.uint8), f"{value}")
    assert [record.message.count("convert with --strategy lda") for record in caplog.records] == [1]


@pytest.mark.parametrize("strategy", ["lda", "ncm"])
def test_a_head_without_steps_does_not_use_epochs(closed_form_bundles: Path, strategy: str) -> None:
    bundle = Bundle.open(closed_form_bundles / strategy)
    rates = [*bundle.manifest.rates, "epochs"]
    [line] = without_effect(bundle, rates)
    assert line.startswith(f"epochs has no effect: a head of the strategy {strategy} is solved")
    assert not list(without_effect(bundle, bundle.manifest.rates))


def test_a_head_with_steps_uses_every_rate(demo: Path) -> None:
    bundle = Bundle.open(demo)
    assert not list(without_effect(bundle, bundle.manifest.training.names))
