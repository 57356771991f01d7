"""MobileNetV2 as a table, with the names of its layers; imports no TensorFlow.

The numbers of its blocks are those of keras.applications.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lrtflite.networks.architecture import Architecture
from lrtflite.networks.inverted_residuals import (
    CLASSIFIER,
    Block,
    Row,
    blocks_of,
    inside,
    other_name,
    refuse_classifier,
    replay_layers,
    width,
)

CONV1_FILTERS, LAST_FILTERS = 32, 1280
# Table 2 of Sandler et al. (2018). conv1 (3x3, 32 filters, stride 2) precedes the blocks; a 1x1
# convolution of 1,280 filters and the pooling follow them.
ROWS = (
    Row(1, 16, 1, 1),
    Row(6, 24, 2, 2),
    Row(6, 32, 3, 2),
    Row(6, 64, 4, 2),
    Row(6, 96, 3, 1),
    Row(6, 160, 3, 2),
    Row(6, 320, 1, 1),
)


def first_width(alpha: float) -> int:
    """Return the number of filters of `conv1`."""
    return width(CONV1_FILTERS, alpha)


def last_width(alpha: float) -> int:
    """Return the number of filters of `conv_last`, which does not get narrower."""
    return width(LAST_FILTERS, max(alpha, 1.0))


def blocks(alpha: float) -> Iterator[Block]:
    """Yield the 17 blocks at width `alpha`."""
    return blocks_of(ROWS, alpha, first=first_width(alpha))


REPLAY_LAYERS = replay_layers(ROWS)

# Names of keras.applications that mean the output of a replay layer.
_OUTPUTS = {"Conv1_relu": "conv1", "out_relu": "conv_last", "expanded_conv_project_BN": "block_0"}
_INSIDE = {"Conv1": "conv1", "bn_Conv1": "conv1", "Conv_1": "conv_last", "Conv_1_bn": "conv_last"}
_IN_BLOCK = re.compile(r"(block_\d+|expanded_conv)[/_](.+)")


def _explain_layer(name: str) -> None:
    """Raise ModelError for names that users may know from elsewhere, with the right name."""
    if found := _OUTPUTS.get(name):
        raise other_name(name, found)
    refuse_classifier(name)
    around = _INSIDE.get(name) or (name.rpartition("/")[0] if "/" in name else "")
    if match := _IN_BLOCK.fullmatch(name):
        around = "block_0" if match[1] == "expanded_conv" else match[1]
        if match[2] == "add":
            raise other_name(name, around)
    if around in REPLAY_LAYERS:
        raise inside(name, around)


MOBILENET_V2 = Architecture(
    name="mobilenet_v2",
    title="MobileNetV2",
    replay_layers=REPLAY_LAYERS,
    classifier=CLASSIFIER,
    resting_layers=("conv_last", "pool"),
    # The resolution of MobileNetV1's conv3_1/dw, for which this was measured.
    lowest_quick="block_1",
    second_layer="block_16",
    build="lrtflite.host.weights:build_mobilenet_v2",
    named_weights=("imagenet", "none"),
    explain_layer=_explain_layer,
    activation_varies=True,
    # As in MobileNetV1, the last 1x1 convolution trains.
    freeze_below="block_16",
)
