"""Networks of inverted residual blocks as tables: MobileNetV2 and its successors.

Replay layers are the units and blocks that lie on every path from the frames to the classifier:
`images`, `conv1`, `block_0` and so on, `conv_last` and `pool`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lrtflite.errors import ModelError

CLASSIFIER = "classifier"
# Every number of filters is a multiple of this, and at least this.
DIVISOR = 8


@dataclass(frozen=True)
class Row:
    """Blocks of one shape: their expansion, filters at alpha 1.0, number and kernel.

    `stride` is that of the first block; the others have 1.
    """

    expansion: int
    filters: int
    count: int
    stride: int
    kernel: int = 3


@dataclass(frozen=True)
class Block:
    """An inverted residual block: expand by 1x1, depthwise, project by 1x1 without activation.

    `joins` is True where the block's input is added to its output. A block with an expansion of 1
    has no `expand` unit.
    """

    name: str
    expanded: int
    filters: int
    stride: int
    joins: bool
    kernel: int = 3

    @property
    def expands(self) -> bool:
        return self.name != "block_0"


def width(filters: float, alpha: float) -> int:
    """Return a number of filters at width `alpha`, rounded as in keras.applications."""
    wanted = filters * alpha
    rounded = max(DIVISOR, int(wanted + DIVISOR / 2) // DIVISOR * DIVISOR)
    return rounded if rounded >= 0.9 * wanted else rounded + DIVISOR


def blocks_of(rows: Sequence[Row], alpha: float, *, first: int) -> Iterator[Block]:
    """Yield the blocks at width `alpha`; `first` is the number of filters of `conv1`."""
    below, number = first, 0
    for row in rows:
        for place in range(row.count):
            stride = row.stride if place == 0 else 1
            # keras.applications rounds twice here.
            wide = width(int(row.filters * alpha), 1.0)
            joins = stride == 1 and wide == below
            yield Block(f"block_{number}", row.expansion * below, wide, stride, joins, row.kernel)
            below, number = wide, number + 1


def replay_layers(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the names of the replay layers, in network order."""
    count = sum(row.count for row in rows)
    return ("images", "conv1", *(f"block_{i}" for i in range(count)), "conv_last", "pool")


def inside(name: str, block: str) -> ModelError:
    """Return the error for a layer that lies inside a block or unit."""
    return ModelError(
        f"Expected a replay layer that ends a block, got {name!r}, which lies inside one",
        f"choose {block!r}",
    )


def other_name(name: str, meant: str) -> ModelError:
    """Return the error for another name of a replay layer."""
    return ModelError(
        f"Expected a replay layer by its name in `lrtflite layers`, got {name!r}",
        f"choose {meant!r}",
    )


def refuse_classifier(name: str) -> None:
    """Raise ModelError for the classifier."""
    if name == CLASSIFIER:
        raise ModelError(
            f"Expected a replay layer below the classifier, got {name!r}", "choose 'pool'"
        )
