"""Scaling of frames to the input of a network, as a user writes it or as a model's layers do it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lrtflite.errors import ModelError

Channels = tuple[float, ...]


@dataclass(frozen=True)
class Scaling:
    """x * multiplier + offset for each of three channels; `bgr` reverses their order first."""

    multiplier: Channels = (1.0, 1.0, 1.0)
    offset: Channels = (0.0, 0.0, 0.0)
    bgr: bool = False

    def then(self, multiplier: Any, offset: Any) -> Scaling:
        """Return this scaling, followed by another one."""
        more, shift = _three(multiplier), _three(offset)
        return Scaling(
            tuple(a * m for a, m in zip(self.multiplier, more)),
            tuple(b * m + s for b, m, s in zip(self.offset, more, shift)),
            self.bgr,
        )

    def __call__(self, frames: Any) -> Any:
        """Scale frames (n, S, S, 3) uint8 RGB to float32."""
        import tensorflow as tf

        x = tf.cast(frames, tf.float32)
        if self.bgr:
            x = tf.reverse(x, [3])
        if self.multiplier != (1.0, 1.0, 1.0):
            x = x * tf.constant(self.multiplier, tf.float32)
        return x + tf.constant(self.offset, tf.float32) if any(self.offset) else x


def _imagenet() -> Scaling:
    means, deviations = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    return Scaling(
        tuple(1 / (255 * d) for d in deviations), tuple(-m / d for m, d in zip(means, deviations))
    )


# Scalings that have a name: torchvision's models, and keras.applications' ResNet50 and VGG16.
SCALINGS: Mapping[str, Scaling] = {
    "imagenet": _imagenet(),
    "caffe": Scaling(offset=(-103.939, -116.779, -123.68), bgr=True),
}
FORMS = f"LOW..HIGH such as 0..1 or -1..1, or {' or '.join(SCALINGS)}"


def read_scaling(text: str) -> Scaling:
    """Return the scaling that `text` names; `LOW..HIGH` takes 0 to LOW and 255 to HIGH."""
    if text in SCALINGS:
        return SCALINGS[text]
    low, dots, high = text.partition("..")
    try:
        limits = float(low), float(high)
    except ValueError:
        limits = math.nan, math.nan
    if not (dots and limits[0] < limits[1] and all(map(math.isfinite, limits))):
        raise ModelError(f"Expected --scale as {FORMS}, got {text!r}", "give one of these")
    return Scaling().then((limits[1] - limits[0]) / 255, limits[0])


def _three(value: Any) -> Channels:
    values = [float(each) for each in (value if isinstance(value, (list, tuple)) else [value])]
    if len(values) not in (1, 3) or not all(map(math.isfinite, values)):
        raise ValueError(f"a scaling of {values}")
    return tuple(values * 3 if len(values) == 1 else values)
