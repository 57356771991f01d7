"""Networks of inverted residual blocks with linear bottlenecks and Batch Renorm."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tf_keras as keras

from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.host.mobilenet import ClassSlots, activated, check_build, conv_name, norm_name
from lrtflite.networks.inverted_residuals import CLASSIFIER, Block


def inverted_residuals(
    name: str,
    blocks: Iterable[Block],
    *,
    first: int,
    last: int,
    alpha: float,
    input_size: int,
    classes: int,
    activation: str,
) -> keras.Model:
    """Build a network of inverted residual blocks, from scaled frames to logits.

    The layer whose output is replay layer X is called X: `conv1`, `block_0` and so on,
    `conv_last`, `pool`; the input is `images`. Each unit X is `X/conv` (bias-free), `X/brn`
    (BatchRenorm) and the activation X. The projection at the end of a block has no activation: its
    BatchRenorm is called `block_3` if that is the block's output, and `block_4/project` if the
    block's input is added to it.

    Args:
        name: name of the model.
        blocks: the blocks at width `alpha`.
        first, last: number of filters of `conv1` and of `conv_last`.
        alpha: width.
        input_size: side of the square input, at least 32.
        classes: slots of `classifier`; 0 leaves it out, and the model ends at `pool`.
        activation: "relu6" (published weights) or "relu".

    Shapes: `(N, input_size, input_size, 3) float32` to `(N, classes) float32` logits.
    """
    check_build(alpha, input_size, classes, activation, classifier=CLASSIFIER)

    def unit(x: Any, name: str, convolution: keras.layers.Layer) -> Any:
        x = BatchRenorm(name=norm_name(name))(convolution(x))
        return activated(x, activation, name=name)

    def block(x: Any, entry: Block) -> Any:
        y, name = x, entry.name
        if entry.expands:
            y = unit(y, f"{name}/expand", _pointwise(f"{name}/expand", entry.expanded))
        # SAME padding is what keras.applications adds as a layer before stride 2, at any size.
        depthwise = keras.layers.DepthwiseConv2D(
            entry.kernel, entry.stride, "same", use_bias=False, name=conv_name(f"{name}/dw")
        )
        y = unit(y, f"{name}/dw", depthwise)
        y = _pointwise(f"{name}/project", entry.filters)(y)
        y = BatchRenorm(name=f"{name}/project" if entry.joins else name)(y)
        return keras.layers.Add(name=name)([x, y]) if entry.joins else y

    images = keras.Input((input_size, input_size, 3), name="images")
    stem = keras.layers.Conv2D(first, 3, 2, "same", use_bias=False, name=conv_name("conv1"))
    x = unit(images, "conv1", stem)
    for entry in blocks:
        x = block(x, entry)
    x = unit(x, "conv_last", _pointwise("conv_last", last))
    x = keras.layers.GlobalAveragePooling2D(name="pool")(x)
    if classes:
        x = ClassSlots(classes, name=CLASSIFIER)(x)
    return keras.Model(images, x, name=name)


def _pointwise(name: str, filters: int) -> keras.layers.Layer:
    return keras.layers.Conv2D(filters, 1, use_bias=False, name=conv_name(name))
