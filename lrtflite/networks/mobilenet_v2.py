"""MobileNetV2 as a table, with the names of its layers; imports no TensorFlow.

Replay layers are the units and blocks that lie on every path from the frames to the classifier:
`images`, `conv1`, `block_0` to `block_16`, `conv_last` and `pool`. The numbers of the blocks are
those of keras.applications.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lrtflite.errors import ModelError
from lrtflite.networks.architecture import Architecture

CONV1_FILTERS, LAST_FILTERS = 32, 1280
# Rows of Table 2 of Sandler et al. (2018): expansion, filters at alpha 1.0, number of blocks,
# stride of the first one. conv1 (3x3, 32 filters, stride 2) precedes them; a 1x1 convolution of
# 1,280 filters and the pooling follow them.
ROWS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
# Every number of filters is a multiple of this, and at least this.
DIVISOR = 8


@dataclass(frozen=True)
class Block:
    """An inverted residual block: expand by 1x1, 3x3 depthwise, project by 1x1 without activation.

    `joins` is True where the block's input is added to its output. A block with an expansion of 1
    has no `expand` unit.
    """

    name: str
    expanded: int
    filters: int
    stride: int
    joins: bool

    @property
    def expands(self) -> bool:
        return self.name != "block_0"


def width(filters: float, alpha: float) -> int:
    """Return a number of filters at width `alpha`, rounded as in keras.applications."""
    wanted = filters * alpha
    rounded = max(DIVISOR, int(wanted + DIVISOR / 2) // DIVISOR * DIVISOR)
    return rounded if rounded >= 0.9 * wanted else rounded + DIVISOR


def first_width(alpha: float) -> int:
    """Return the number of filters of `conv1`."""
    return width(CONV1_FILTERS, alpha)


def last_width(alpha: float) -> int:
    """Return the number of filters of `conv_last`, which does not get narrower."""
    return width(LAST_FILTERS, max(alpha, 1.0))


def blocks(alpha: float) -> Iterator[Block]:
    """Yield the 17 blocks at width `alpha`."""
    below, number = first_width(alpha), 0
    for expansion, filters, count, first_stride in ROWS:
        for place in range(count):
            stride = first_stride if place == 0 else 1
            # keras.applications rounds twice here.
            wide = width(int(filters * alpha), 1.0)
            joins = stride == 1 and wide == below
            yield Block(f"block_{number}", expansion * below, wide, stride, joins)
            below, number = wide, number + 1


BLOCK_NAMES = tuple(block.name for block in blocks(1.0))
REPLAY_LAYERS: tuple[str, ...] = ("images", "conv1", *BLOCK_NAMES, "conv_last", "pool")
CLASSIFIER = "classifier"

# Names of keras.applications that mean the output of a replay layer.
_OUTPUTS = {"Conv1_relu": "conv1", "out_relu": "conv_last", "expanded_conv_project_BN": "block_0"}
_INSIDE = {"Conv1": "conv1", "bn_Conv1": "conv1", "Conv_1": "conv_last", "Conv_1_bn": "conv_last"}
_IN_BLOCK = re.compile(r"(block_\d+|expanded_conv)[/_](.+)")


def _explain_layer(name: str) -> None:
    """Raise ModelError for names that users may know from elsewhere, with the right name."""
    if found := _OUTPUTS.get(name):
        raise _other_name(name, found)
    if name == CLASSIFIER:
        raise ModelError(
            f"Expected a replay layer below the classifier, got {name!r}",
            f"choose {REPLAY_LAYERS[-1]!r}",
        )
    inside = _INSIDE.get(name) or (name.rpartition("/")[0] if "/" in name else "")
    if match := _IN_BLOCK.fullmatch(name):
        inside = "block_0" if match[1] == "expanded_conv" else match[1]
        if match[2] == "add":
            raise _other_name(name, inside)
    if inside in REPLAY_LAYERS:
        raise ModelError(
            f"Expected a replay layer that ends a block, got {name!r}, which lies inside one",
            f"choose {inside!r}",
        )


def _other_name(name: str, meant: str) -> ModelError:
    return ModelError(
        f"Expected a replay layer by its name in `lrtflite layers`, got {name!r}",
        f"choose {meant!r}",
    )


MOBILENET_V2 = Architecture(
    name="mobilenet_v2",
    title="MobileNetV2",
    replay_layers=REPLAY_LAYERS,
    classifier=CLASSIFIER,
    resting_layers=("conv_last", "pool"),
    # The resolution of MobileNetV1's conv3_1/dw, for which this was measured.
    lowest_quick="block_1",
    build="lrtflite.host.weights:build_mobilenet_v2",
    named_weights=("imagenet", "none"),
    explain_layer=_explain_layer,
    # As in MobileNetV1, the last 1x1 convolution trains.
    freeze_below="block_16",
)
