"""Convert a folded network to an int8 TFLite model: uint8 frames in, int8 latents out."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator

import numpy as np
import tensorflow as tf
import tf_keras as keras
from numpy.typing import NDArray
from tensorflow.lite.python import schema_py_generated as schema

from lrtflite.errors import ConversionError
from lrtflite.system.quiet import quiet_stderr
from lrtflite_converters.features.crops import latents_of
from lrtflite_converters.quantise.scaling import FrameScaling

# Name under which the converter stores the oldest TFLite version that has all ops of a model.
VERSION_KEY = b"min_runtime_version"


class _Extract(tf.Module):
    """A module with the one signature of quantised features, on scaled frames."""

    def __init__(self, model: keras.Model, *, crops: bool) -> None:
        super().__init__()
        object.__setattr__(self, "model", model)  # see `Features`
        self.tracked = model.variables
        spec = tf.TensorSpec([None, *model.input_shape[1:]], tf.float32, "frames")
        call = tf.function(lambda frames: {"latents": latents_of(model, frames, crops=crops)})
        object.__setattr__(self, "extract", call.get_concrete_function(frames=spec))


def to_int8(
    model: keras.Model, frames: NDArray[np.uint8], scaling: FrameScaling, *, crops: bool = False
) -> bytes:
    """Return the content of `features.tflite`, with ranges calibrated on these frames.

    The quantisation of its uint8 input is the scaling of frames, so frames need no other.
    """
    module = _Extract(model, crops=crops)

    def representative() -> Iterator[tuple[str, dict[str, NDArray[np.float32]]]]:
        for frame in (_full_range(frames[0]), *frames):
            yield "extract", {"frames": scaling(frame[np.newaxis])}

    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures={"extract": module.extract})
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = representative
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = tf.uint8
        converter.inference_output_type = tf.int8
        try:
            # Its calibration recommends another package, and prints settings from C++.
            with quiet_stderr(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return bytes(converter.convert())
        except Exception as error:
            # The converter's own exception type is private, and its message runs to several pages.
            lines = [line for line in str(error).splitlines() if line.strip()]
            raise ConversionError(
                f"The TFLite converter could not quantise the features: "
                f"{lines[0] if lines else type(error).__name__}",
                "convert without --quantize",
            ) from error


def oldest_runtime(content: bytes) -> str:
    """Return the oldest TFLite version that has all ops of a model, as the converter noted it."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    for entry in model.metadata or ():
        if entry.name == VERSION_KEY:
            return bytes(model.buffers[entry.buffer].data).split(b"\0")[0].decode()
    return ""


def _full_range(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the frame with one black and one white pixel: the input range is that of all frames.

    The two pixels hardly change the ranges of the layers above.
    """
    changed = frame.copy()
    changed[0, 0], changed[0, 1] = 0, 255
    return changed
