"""`lrtflite train --network`: defaults of each network, and a MobileNetV2 that convert takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from coloured_source import ColouredSource
from lrtflite.errors import InputError, ModelError
from lrtflite.host.training import BACKBONE, FIRST_BATCH, TrainOptions, train
from lrtflite_converters.conversion.making import find_network
from lrtflite_converters.request.source import Source


def test_each_network_has_its_defaults() -> None:
    def found(network: str, schedule: str = "first-batch", **given: object) -> tuple[str, str]:
        options = TrainOptions.for_schedule(schedule, {"network": network, **given})
        return options.weights, options.freeze_below

    assert found("mobilenet_v1") == ("demo", "conv6/dw")
    assert found("mobilenet_v2") == ("imagenet", "block_16")
    assert found("mobilenet_v2", weights="none") == ("none", "images")
    assert found("mobilenet_v2", schedule="backbone") == ("none", "images")
    with pytest.raises(InputError, match=r"'conv6/dw'.*--freeze-below"):
        found("mobilenet_v2", freeze_below="conv6/dw")


def test_a_schedule_is_changed_by_what_is_chosen() -> None:
    assert TrainOptions.for_schedule("first-batch", {}) == FIRST_BATCH
    assert TrainOptions.for_schedule("backbone", {}) == BACKBONE
    assert TrainOptions.for_schedule("backbone", {"lr": 0.2}) == replace(BACKBONE, lr=0.2)
    assert TrainOptions.for_schedule("first-batch", {"patience": 0}).patience is None
    with pytest.raises(InputError, match="Expected a schedule of first-batch, backbone, got 'all'"):
        TrainOptions.for_schedule("all", {})
    with pytest.raises(InputError, match=r"got --first-classes 3 and --visits 2; leave that out"):
        TrainOptions.for_schedule("backbone", {"first_classes": 3, "visits": 2})
    with pytest.raises(InputError, match=r"Expected no --lower-lr with --freeze-below pool6"):
        TrainOptions.for_schedule("first-batch", {"freeze_below": "pool6", "lower_lr": 0.1})


@pytest.mark.usefixtures("eager")
def test_a_trained_mobilenet_v2_is_what_convert_needs(tmp_path: Path) -> None:
    options = replace(
        BACKBONE,
        network="mobilenet_v2",
        alpha=0.1,
        epochs=1,
        batch_size=8,
        frames_per_video=1,
        held_out_frames=1,
    )
    path = tmp_path / "model.keras"
    result = train(ColouredSource(), path, options)
    assert result.model.layers[-1].name == "classifier"
    network = find_network(Source(network="mobilenet_v2", model=str(path)))
    assert network.classifier is not None
    assert network.classifier.labels == ("red", "green", "blue", "grey")
    assert network.input_size == 32
    with pytest.raises(ModelError, match="got a mobilenet_v2; use --network mobilenet_v2"):
        find_network(Source(model=str(path)))
