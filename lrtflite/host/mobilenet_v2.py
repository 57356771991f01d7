"""MobileNetV2 with Batch Renorm: inverted residual blocks with linear bottlenecks."""

from __future__ import annotations

from typing import Any

import tf_keras as keras

from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.host.mobilenet import ClassSlots, check_build, conv_name, norm_name
from lrtflite.networks.mobilenet_v2 import CLASSIFIER, Block, blocks, first_width, last_width


def mobilenet_v2(
    *,
    alpha: float = 1.0,
    input_size: int = 128,
    classes: int = 50,
    activation: str = "relu6",
) -> keras.Model:
    """Build MobileNetV2, from scaled frames (see `scale_frames`) to logits.

    The layer whose output is replay layer X is called X: `conv1`, `block_0`, ..., `block_16`,
    `conv_last`, `pool`; the input is `images`. Each unit X is `X/conv` (bias-free), `X/brn`
    (BatchRenorm) and the activation X. The projection at the end of a block has no activation: its
    BatchRenorm is called `block_3` if that is the block's output, and `block_4/project` if the
    block's input is added to it.

    Args:
        alpha: width; numbers of filters are rounded as in keras.applications.
        input_size: side of the square input, at least 32.
        classes: slots of `classifier`; 0 leaves it out, and the model ends at `pool`.
        activation: "relu6" (keras.applications' weights) or "relu".

    Shapes: `(N, input_size, input_size, 3) float32` to `(N, classes) float32` logits.
    """
    check_build(alpha, input_size, classes, activation, classifier=CLASSIFIER)
    limit = 6.0 if activation == "relu6" else None

    def unit(x: Any, name: str, convolution: keras.layers.Layer) -> Any:
        x = BatchRenorm(name=norm_name(name))(convolution(x))
        return keras.layers.ReLU(limit, name=name)(x)

    def block(x: Any, entry: Block) -> Any:
        y, name = x, entry.name
        if entry.expands:
            y = unit(y, f"{name}/expand", _pointwise(f"{name}/expand", entry.expanded))
        # SAME padding is what keras.applications adds as a layer before stride 2, at any size.
        depthwise = keras.layers.DepthwiseConv2D(
            3, entry.stride, "same", use_bias=False, name=conv_name(f"{name}/dw")
        )
        y = unit(y, f"{name}/dw", depthwise)
        y = _pointwise(f"{name}/project", entry.filters)(y)
        y = BatchRenorm(name=f"{name}/project" if entry.joins else name)(y)
        return keras.layers.Add(name=name)([x, y]) if entry.joins else y

    images = keras.Input((input_size, input_size, 3), name="images")
    first = keras.layers.Conv2D(
        first_width(alpha), 3, 2, "same", use_bias=False, name=conv_name("conv1")
    )
    x = unit(images, "conv1", first)
    for entry in blocks(alpha):
        x = block(x, entry)
    x = unit(x, "conv_last", _pointwise("conv_last", last_width(alpha)))
    x = keras.layers.GlobalAveragePooling2D(name="pool")(x)
    if classes:
        x = ClassSlots(classes, name=CLASSIFIER)(x)
    return keras.Model(images, x, name="mobilenet_v2")


def _pointwise(name: str, filters: int) -> keras.layers.Layer:
    return keras.layers.Conv2D(filters, 1, use_bias=False, name=conv_name(name))
