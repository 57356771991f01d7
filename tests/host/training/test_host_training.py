"""Whole training runs on a few frames each: learn, stop, resume, overwrite."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from coloured_source import ColouredSource
from lrtflite.errors import ModelError, SessionCancelled
from lrtflite.host.mobilenet import mobilenet_v1
from lrtflite.host.model_file import load_model
from lrtflite.host.training import BACKBONE, FIRST_BATCH, train
from lrtflite.host.training.checkpoint import TrainState, checkpoint_path
from lrtflite.host.training.data import Frames, TrainData
from lrtflite.host.training.loop import EpochLoop, rate_share
from lrtflite.host.training.sgd import SgdTrainer
from lrtflite.host.weights import write_npz
from train_stop import Stop

SMALL = replace(BACKBONE, epochs=2, batch_size=8, lr=0.05, frames_per_video=2, held_out_frames=2)


@pytest.mark.usefixtures("shallow")
def test_backbone_learns_from_random_weights(tmp_path: Path) -> None:
    options = replace(BACKBONE, epochs=6, batch_size=16, lr=0.05)
    result = train(ColouredSource(frames=16), tmp_path / "model.keras", options)
    first, last = result.history[0], result.history[-1]
    assert last.loss < 0.5 * first.loss
    assert last.held_out > 0.9
    assert result.labels == ("red", "green", "blue", "grey")
    assert result.counts == (32, 32, 32, 32)
    assert (result.best_epoch, result.stopped_early) == (6, False)


@pytest.mark.usefixtures("shallow")
def test_first_batch_learns(tmp_path: Path) -> None:
    options = replace(
        FIRST_BATCH,
        weights="none",
        alpha=1.0,
        freeze_below="images",
        first_classes=3,
        epochs=4,
        batch_size=8,
        lr=0.01,
        lower_lr=0.01,
        patience=None,
    )
    observer = Stop()
    result = train(ColouredSource(frames=16), tmp_path / "m.keras", options, observer=observer)
    assert result.history[-1].loss < 0.5 * result.history[0].loss
    assert observer.epochs == list(result.history)
    assert observer.steps == [(e, s, 6) for e in range(1, 5) for s in range(1, 7)]


@pytest.mark.usefixtures("eager")
def test_saved_model_is_what_convert_needs(tmp_path: Path) -> None:
    start = mobilenet_v1(alpha=0.25, input_size=32, classes=0)
    write_npz(start, tmp_path / "start.npz")
    options = replace(
        FIRST_BATCH,
        weights=str(tmp_path / "start.npz"),
        freeze_below="images",
        first_classes=3,
        epochs=1,
        batch_size=48,
        patience=None,
    )
    out = tmp_path / "new" / "model.keras"
    result = train(ColouredSource(frames=16), out, options)
    assert result.weights.startswith("start.npz (sha256 ")

    model = load_model(out)
    assert model.get_layer("fc7").labels == result.labels
    assert model.get_layer("fc7").counts == (16, 16, 16)
    kernel = model.get_layer("conv5_4/dw/conv").depthwise_kernel
    assert 0 < np.abs(kernel - start.get_layer("conv5_4/dw/conv").depthwise_kernel).max() < 0.1
    limits = model.get_layer("conv5_4/dw/brn").limits()
    assert limits == {"r_max": 1.25, "d_max": 0.5, "momentum": 0.99995}
    assert [path.name for path in out.parent.iterdir()] == ["model.keras"]


@pytest.mark.usefixtures("shallow", "eager")
def test_resumed_training_is_the_uninterrupted_one(tmp_path: Path) -> None:
    source = ColouredSource()
    whole = train(source, tmp_path / "whole.keras", SMALL)

    out = tmp_path / "parts.keras"
    stop = Stop(after=1)  # in the middle of the first epoch
    with pytest.raises(SessionCancelled, match=r"epoch 1 of 2 after step 1 of 2; .*--resume"):
        train(source, out, SMALL, observer=stop, cancel=stop.cancel)
    assert not out.exists()
    with pytest.raises(ModelError, match="add --resume"):
        train(source, out, SMALL)
    with pytest.raises(ModelError, match=r"Expected lr 0\.05 as in .*, got 0\.1"):
        train(source, out, replace(SMALL, lr=0.1), resume=True)
    with pytest.raises(ModelError, match="Expected frames"):
        train(ColouredSource(noise=61), out, SMALL, resume=True)
    on = Stop(after=1)  # the last step of the epoch
    with pytest.raises(SessionCancelled, match="epoch 1 of 2 after step 2 of 2"):
        train(source, out, SMALL, resume=True, observer=on, cancel=on.cancel)
    parts = train(source, out, SMALL, resume=True)

    assert parts.history == whole.history
    for ours, theirs in zip(parts.model.weights, whole.model.weights):
        np.testing.assert_array_equal(ours, theirs)
    assert not checkpoint_path(out).exists()


@pytest.mark.usefixtures("shallow", "eager")
def test_an_existing_model_is_replaced_only_on_request(tmp_path: Path) -> None:
    source, out = ColouredSource(), tmp_path / "model.keras"
    out.write_text("an older model")
    with pytest.raises(ModelError, match=r"got .*model\.keras, which exists; .*--replace"):
        train(source, out, SMALL)
    stop = Stop(after=1)
    with pytest.raises(SessionCancelled):
        train(source, out, SMALL, replace=True, observer=stop, cancel=stop.cancel)
    assert out.read_text() == "an older model"
    train(source, out, SMALL, resume=True)  # the interrupted run was allowed to replace it
    assert load_model(out).get_layer("fc7").labels == source.classes


@pytest.mark.usefixtures("shallow", "eager")
def test_divergence_is_one_line(tmp_path: Path) -> None:
    out = tmp_path / "model.keras"
    with pytest.raises(ModelError, match=r"rates below 1e\+30 \(--lr\) and 1e\+30 \(--lower-lr\)"):
        train(ColouredSource(), out, replace(SMALL, lr=1e30, cosine=False))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("shallow")
def test_stopping_while_reading_leaves_nothing(tmp_path: Path) -> None:
    stop = Stop(after=0)
    with pytest.raises(SessionCancelled, match=r"reading frames, .*; run the same command again"):
        train(ColouredSource(), tmp_path / "m.keras", SMALL, observer=stop, cancel=stop.cancel)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_work_fails_before_any_frame_is_read(tmp_path: Path) -> None:
    source = ColouredSource()
    with pytest.raises(ModelError, match=r"ends in \.keras"):
        train(source, tmp_path / "model.bin", SMALL)
    with pytest.raises(ModelError, match=r"got no .*run without --resume"):
        train(source, tmp_path / "model.keras", SMALL, resume=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="Expected to write"):
        train(source, tmp_path / "file" / "model.keras", SMALL)
    checkpoint_path(tmp_path / "model.keras").write_bytes(b"damaged")
    with pytest.raises(ModelError, match=r"cannot be read.*delete it"):
        train(source, tmp_path / "model.keras", SMALL, resume=True)


def test_every_mini_batch_is_full_and_every_frame_comes(tmp_path: Path) -> None:
    class Recorder:
        model = SimpleNamespace(weights=[], layers=[])
        velocities: tuple[float, ...] = ()

        def __init__(self) -> None:
            self.seen: list[NDArray[np.int64]] = []

        def step(
            self, frames: object, slots: NDArray[np.int64], *, lr: float, lower_lr: float
        ) -> tuple[float, int]:
            self.seen.append(slots)
            return 0.0, 0

        def accuracy(self, *_: object, **__: object) -> float:
            return 0.0

    frames = Frames(np.zeros((10, 1, 1, 3), np.uint8), np.arange(10))
    recorder, observer = Recorder(), Stop()
    options = replace(SMALL, batch_size=4, epochs=2, augment=False)
    loop = EpochLoop(
        cast(SgdTrainer, recorder), TrainData(frames, frames, frames), options, TrainState()
    )
    list(loop.run(observer, observer.cancel, tmp_path / "checkpoint.npz"))

    assert [len(slots) for slots in recorder.seen] == [4] * 6
    first, second = np.concatenate(recorder.seen[:3]), np.concatenate(recorder.seen[3:])
    assert sorted(first[:10]) == sorted(second[:10]) == list(range(10))
    assert first[10:].tolist() == first[:2].tolist()
    assert first.tolist() != second.tolist()


def test_cosine_warms_up_and_falls_to_zero() -> None:
    shares = [rate_share(step, 100, cosine=True) for step in range(100)]
    np.testing.assert_allclose(shares[:5], [0.2, 0.4, 0.6, 0.8, 1.0])  # 5 % of 100
    assert shares[5] == 1.0
    np.testing.assert_allclose(shares[5 + 95 // 2], 0.5, atol=0.01)  # half way down
    assert 0 < shares[99] < 0.0025
    assert rate_share(50, 100, cosine=False) == 1.0
