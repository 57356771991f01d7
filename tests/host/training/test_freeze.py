"""Frozen layers stay as they are, and the layers above them train."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tf_keras as keras
from numpy.typing import NDArray

from coloured_source import ColouredSource
from lrtflite.errors import InputError, SessionCancelled
from lrtflite.host.mobilenet import mobilenet_v1, scale_frames
from lrtflite.host.model_file import load_model
from lrtflite.host.training import FIRST_BATCH, TrainOptions, freeze, train
from lrtflite.host.weights import mobilenet_with_weights
from lrtflite.progress import Phase, Progress
from train_stop import Stop

SOURCE = ColouredSource(clips=1, frames=4)
DEPTHWISE = {"conv6/dw/conv", "conv6/dw/brn"}
POINTWISE = {"conv6/sep/conv", "conv6/sep/brn"}


def options(**changes: Any) -> TrainOptions:
    few = replace(FIRST_BATCH, weights="demo", first_classes=None, patience=None, epochs=2)
    return replace(few, **{"batch_size": 8, "lr": 0.1, "lower_lr": 0.01, **changes})


def weights(model: keras.Model) -> dict[str, list[NDArray[Any]]]:
    """Return the weights of each layer that has any, without the limits of Batch Renorm."""
    found = {
        layer.name: [w.numpy() for w in layer.weights if w.shape.rank] for layer in model.layers
    }
    return {name: arrays for name, arrays in found.items() if arrays}


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    ("layer", "augment", "moves"),
    [
        ("pool6", False, set()),
        ("conv6/dw", False, POINTWISE),
        ("conv6/dw", True, POINTWISE),  # every epoch brings other frames
        ("conv5_6/sep", False, POINTWISE | DEPTHWISE),
    ],
)
def test_only_layers_above_move(tmp_path: Path, layer: str, augment: bool, moves: set[str]) -> None:
    out = tmp_path / "model.keras"
    asked = options(freeze_below=layer, augment=augment)
    keras.utils.set_random_seed(asked.seed)  # decides the initial fc7
    before = weights(mobilenet_with_weights(weights="demo", input_size=32, classes=4)[0])
    train(SOURCE, out, asked)
    model = load_model(out)
    for name, arrays in weights(model).items():
        same = [np.array_equal(now, then) for now, then in zip(arrays, before[name])]
        # A unit that trains moves as a whole: kernel, gamma, beta and both moments.
        assert not any(same) if name in moves | {"fc7"} else all(same), name
    assert all(layer.trainable for layer in model.layers)


@pytest.mark.usefixtures("eager")
def test_latents_give_the_same_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = options(freeze_below="conv6/dw")
    once = train(SOURCE, tmp_path / "once.keras", asked)
    monkeypatch.setattr(freeze, "MAX_LATENT_BYTES", 0)  # the frozen layers run in every step
    always = train(SOURCE, tmp_path / "always.keras", asked)
    for ours, theirs in zip(once.model.weights, always.model.weights):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)
    assert [epoch.held_out for epoch in once.history] == [e.held_out for e in always.history]


@pytest.mark.usefixtures("eager")
def test_resumed_above_frozen_layers(tmp_path: Path) -> None:
    asked = options(freeze_below="conv6/dw")
    whole = train(SOURCE, tmp_path / "whole.keras", asked)
    out, stop = tmp_path / "parts.keras", Stop(after=1)
    with pytest.raises(SessionCancelled, match="after step 1 of 2"):
        train(SOURCE, out, asked, observer=stop, cancel=stop.cancel)
    parts = train(SOURCE, out, asked, resume=True)
    assert parts.history == whole.history
    for ours, theirs in zip(parts.model.weights, whole.model.weights):
        np.testing.assert_array_equal(ours, theirs)


def test_the_parts_make_the_whole() -> None:
    model = mobilenet_v1(alpha=0.25, input_size=32, classes=3)
    frames = np.random.default_rng(0).integers(0, 256, (70, 32, 32, 3), np.uint8)
    below, above = freeze.split(model, "conv5_4/dw")
    seen: list[int] = []
    latents = freeze.extract(below, frames, seen.append)
    assert seen == [64, 6]
    assert latents.shape == (70, 2, 2, 128)
    np.testing.assert_allclose(
        above(latents, training=False), model(scale_frames(frames), training=False), atol=1e-5
    )


def test_frozen_layers_can_be_interrupted(tmp_path: Path) -> None:
    class Impatient(Stop):
        def progress(self, progress: Progress) -> None:
            if progress.phase == Phase.EXTRACT:
                assert progress == Progress(Phase.EXTRACT, 16, 32)
                self.cancel.set()

    stop = Impatient()
    asked = options(freeze_below="pool6")
    with pytest.raises(SessionCancelled, match=r"frozen layers .*; run the same command again"):
        train(SOURCE, tmp_path / "m.keras", asked, observer=stop, cancel=stop.cancel)
    assert list(tmp_path.iterdir()) == []


def test_wrong_layers_are_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"did you mean 'conv5_4/dw' or .* \(--freeze-below\)"):
        options(freeze_below="conv5_4")
    with pytest.raises(InputError, match=r"got 'fc7'; choose 'pool6'"):
        options(freeze_below="fc7")
    with pytest.raises(InputError, match="Expected trained weights to freeze below pool6"):
        replace(FIRST_BATCH, weights="none", freeze_below="pool6")
