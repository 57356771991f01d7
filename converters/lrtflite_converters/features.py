"""The feature model: camera frames in, latents out."""

from __future__ import annotations

import tensorflow as tf
import tf_keras as keras

from lrtflite.host.mobilenet import scale_frames
from lrtflite_converters.tflite import to_tflite


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

        @tf.function(input_signature=[tf.TensorSpec([None, size, size, 3], tf.uint8, "frames")])
        def extract(frames: tf.Tensor) -> dict[str, tf.Tensor]:
            """(n, H, W, 3) uint8 RGB -> latents (n, ...) float32."""
            return {"latents": self.below(scale_frames(frames), training=False)}

        self.extract = extract


def convert_features(features: Features) -> bytes:
    """The content of `features.tflite`."""
    return to_tflite(features, {"extract": features.extract}, variables=False)
