"""MobileNetV1 with Batch Renorm: the paper's network, under the paper's layer names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

import tensorflow as tf
import tf_keras as keras

from lrtflite.errors import ModelError
from lrtflite.host.batch_renorm import BatchRenorm
from lrtflite.networks.architecture import ACTIVATIONS, MAX_CLASSES, RELU6
from lrtflite.networks.mobilenet_v1 import BLOCKS, CONV1_FILTERS, check_network


def conv_name(layer: str) -> str:
    """Return the name of the convolution of a unit: "conv5_4/dw" -> "conv5_4/dw/conv"."""
    return f"{layer}/conv"


def norm_name(layer: str) -> str:
    """Return the name of the BatchRenorm of a unit: "conv5_4/dw" -> "conv5_4/dw/brn"."""
    return f"{layer}/brn"


def scale_frames(frames: Any) -> tf.Tensor:
    """Scale frames `(N, H, W, 3)`, RGB from 0 to 255, to float32 from -1 to 1."""
    return tf.cast(frames, tf.float32) / 127.5 - 1.0


def check_build(
    alpha: float, input_size: int, classes: int, activation: str, *, classifier: str
) -> None:
    """Raise ModelError for a network that cannot be built."""
    check_network(alpha, input_size)
    if not 0 <= classes <= MAX_CLASSES:
        raise ModelError(
            f"Expected 0 (no {classifier}) to {MAX_CLASSES:,} classes, got {classes:,}",
        )
    ACTIVATIONS.check(activation)


def activated(x: Any, activation: str, *, name: str) -> Any:
    """Return the output of ReLU6 or ReLU, as a layer called `name`."""
    return keras.layers.ReLU(ACTIVATIONS.choose(activation), name=name)(x)


def mobilenet_v1(
    *,
    alpha: float = 1.0,
    input_size: int = 128,
    classes: int = 50,
    activation: str = RELU6,
) -> keras.Model:
    """Build MobileNetV1, from scaled frames (see `scale_frames`) to logits.

    The layer whose output is replay layer X is called X: `conv1`, `conv2_1/dw`, `conv2_1/sep`,
    ..., `conv6/sep`, `pool6`; the input is `images`, the classifier `fc7`. Each convolution unit X
    is `X/conv` (bias-free), `X/brn` (BatchRenorm) and the activation X.

    Args:
        alpha: width; every number of filters is `int(filters * alpha)`, as in keras.applications.
        input_size: side of the square input, at least 32.
        classes: slots of `fc7`; 0 leaves `fc7` out, and the model ends at `pool6`.
        activation: "relu6" (keras.applications' weights) or "relu" (the paper's own network).

    Shapes: `(N, input_size, input_size, 3) float32` to `(N, classes) float32` logits.
    """
    check_build(alpha, input_size, classes, activation, classifier="fc7")

    def unit(name: str, x: Any, convolution: Callable[..., keras.layers.Layer]) -> Any:
        x = convolution(name=conv_name(name), use_bias=False)(x)
        x = BatchRenorm(name=norm_name(name))(x)
        return activated(x, activation, name=name)

    def conv3x3(**options: Any) -> keras.layers.Layer:
        filters = int(CONV1_FILTERS * alpha)
        return keras.layers.Conv2D(filters, 3, strides=2, padding="same", **options)

    images = keras.Input((input_size, input_size, 3), name="images")
    x = unit("conv1", images, conv3x3)
    for block, filters, stride in BLOCKS:
        x, padding = _pad(x, stride, name=f"{block}/dw/pad")

        def depthwise(_stride: int = stride, _padding: str = padding, **options: Any) -> Any:
            return keras.layers.DepthwiseConv2D(3, strides=_stride, padding=_padding, **options)

        def pointwise(_filters: int = int(filters * alpha), **options: Any) -> Any:
            return keras.layers.Conv2D(_filters, 1, **options)

        x = unit(f"{block}/dw", x, depthwise)
        x = unit(f"{block}/sep", x, pointwise)
    x = keras.layers.GlobalAveragePooling2D(name="pool6")(x)
    if classes:
        x = ClassSlots(classes, name="fc7")(x)
    return keras.Model(images, x, name="mobilenet_v1")


def _pad(x: Any, stride: int, *, name: str) -> tuple[Any, str]:
    """Pad as keras.applications does before stride 2, bottom and right: SAME on even sizes."""
    if stride == 1 or x.shape[1] % 2 == 0:
        return x, "same"
    return keras.layers.ZeroPadding2D(((0, 1), (0, 1)), name=name)(x), "valid"


@keras.utils.register_keras_serializable(package="lrtflite")
class ClassSlots(keras.layers.Layer):
    """The last layer: one bias-free column of weights per class slot, giving logits.

    A saved model keeps the names of the learned classes, and the number of patterns of each class
    (CWR*'s `past`), in the config of this layer. Slot i has `labels[i]` and `counts[i]`; all later
    slots are free.

    Shapes: `(N, F) float32` to `(N, classes) float32`; `kernel` is `(F, classes)`.
    """

    def __init__(
        self,
        classes: int,
        *,
        labels: Sequence[str] = (),
        counts: Sequence[int] = (),
        **base: Any,
    ) -> None:
        super().__init__(**base)
        self.classes = classes
        self.labels: tuple[str, ...] = ()
        self.counts: tuple[int, ...] = ()
        self.set_labels(labels, counts)

    def set_labels(self, labels: Sequence[str], counts: Sequence[int]) -> None:
        """Set the names of the first slots, and the number of patterns that each has learned."""
        if len(labels) > self.classes:
            raise ModelError(
                f"Expected at most {self.classes} labels, got {len(labels)}", "give more classes"
            )
        if len(set(labels)) != len(labels):
            raise ModelError(
                f"Expected distinct labels, got {list(labels)}", "name each class once"
            )
        if len(counts) != len(labels):
            raise ModelError(
                f"Expected {len(labels)} counts, one per label, got {len(counts)}", "give all"
            )
        self.labels = tuple(str(label) for label in labels)
        self.counts = tuple(int(count) for count in counts)

    def build(self, input_shape: Any) -> None:
        features = tf.TensorShape(input_shape)[-1]
        self.kernel = self.add_weight("kernel", (features, self.classes))
        super().build(input_shape)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        return tf.matmul(inputs, self.kernel)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "classes": self.classes,
            "labels": list(self.labels),
            "counts": list(self.counts),
        }
