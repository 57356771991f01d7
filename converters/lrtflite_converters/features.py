"""The feature model: camera frames in, latents out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tf_keras as keras

from lrtflite.host.mobilenet import scale_frames
from lrtflite_converters.differentiable import global_average_pool
from lrtflite_converters.signature import SCALAR, signature
from lrtflite_converters.tflite import to_tflite
from lrtflite_converters.unit import Unit

MOMENTS = ("mean", "variance")


class Features(tf.Module):
    """The network below the replay layer, with its preprocessing, frozen."""

    below: keras.Model

    def __init__(self, below: keras.Model) -> None:
        super().__init__()
        # Only the variables are tracked: saving a tracked Keras model traces each of its layers
        # several times over, which is most of a conversion's time and changes no byte of the file.
        object.__setattr__(self, "below", below)
        self.tracked = below.variables
        size = below.input_shape[1]
        self.extract = signature(self._extract, frames=((None, size, size, 3), tf.uint8))

    @property
    def signatures(self) -> dict[str, Any]:
        return {"extract": self.extract}

    def _extract(self, frames: tf.Tensor) -> dict[str, tf.Tensor]:
        """(n, H, W, 3) uint8 RGB -> latents (n, ...) float32; frames where these are replayed."""
        if len(self.below.layers) == 1:
            return {"latents": tf.identity(frames)}
        return {"latents": self.below(scale_frames(frames), training=False)}


class AdaptingFeatures(Features):
    """The same with moments that move: `adapt` passes frames as training would.

    Weights, gamma and beta are constants; the moments are variables, with `save` and `restore`.
    """

    units: tuple[Unit, ...]

    def __init__(self, below: keras.Model, units: Sequence[Unit], *, group: int) -> None:
        """`group` is how many frames `adapt` takes at a time."""
        object.__setattr__(self, "units", tuple(units))
        self.moments = {
            f"{unit.prefix}_{name}": tf.Variable(
                tf.constant(unit.values[name], tf.float32), name=f"{unit.prefix}_{name}"
            )
            for unit in units
            for name in MOMENTS
        }
        super().__init__(below)
        self.group = group
        size = below.input_shape[1]
        self.adapt = signature(self._adapt, frames=((group, size, size, 3), tf.uint8), rate=SCALAR)
        self.save = signature(self._save)
        self.restore = signature(
            self._restore,
            **{name: (tuple(value.shape), tf.float32) for name, value in self.moments.items()},
        )

    @property
    def signatures(self) -> dict[str, Any]:
        names = ("extract", "adapt", "save", "restore")
        return {name: getattr(self, name) for name in names}

    def _extract(self, frames: tf.Tensor) -> dict[str, tf.Tensor]:
        x = scale_frames(frames)
        for unit in self.units:
            x = unit.infer(x, self._values(unit))
        x = tf.reshape(x, [-1, *self.units[-1].output])
        at_pool6 = len(self.below.output_shape) == 2
        return {"latents": global_average_pool(x)[0] if at_pool6 else x}

    def _adapt(self, frames: tf.Tensor, rate: tf.Tensor) -> dict[str, tf.Tensor]:
        """Move the moments towards those of these frames; gives the largest move of a mean."""
        x = scale_frames(frames)
        moves = []
        for unit in self.units:
            values = self._values(unit)
            z, _ = unit.convolve(x, values["kernel"], constant=True)
            norm = unit.renorm([z], values)
            mean, variance = (values[name] for name in MOMENTS)
            for moment, moved in zip(self._moments(unit), norm.moved(mean, variance, rate=rate)):
                moment.assign(moved)
            moves.append(tf.reduce_max(tf.abs(norm.mean - mean)) * rate)
            x = unit.activation.value(norm(z))
        return {"moved": tf.reduce_max(tf.stack(moves))}

    def _save(self) -> dict[str, tf.Tensor]:
        return {name: tf.identity(value) for name, value in self.moments.items()}

    def _restore(self, **moments: tf.Tensor) -> dict[str, tf.Tensor]:
        for name, value in self.moments.items():
            value.assign(moments[name])
        return {"units": tf.constant(float(len(self.units)))}

    def _values(self, unit: Unit) -> dict[str, tf.Tensor]:
        """Constants, but for the moments as they are."""
        constants = {name: tf.constant(value) for name, value in unit.values.items()}
        moments = zip(MOMENTS, map(tf.convert_to_tensor, self._moments(unit)))
        return {**constants, **dict(moments)}

    def _moments(self, unit: Unit) -> list[tf.Variable]:
        return [self.moments[f"{unit.prefix}_{name}"] for name in MOMENTS]


def convert_features(features: Features) -> bytes:
    """The content of `features.tflite`."""
    variables = isinstance(features, AdaptingFeatures)
    return to_tflite(features, features.signatures, variables=variables)
