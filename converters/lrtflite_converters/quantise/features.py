"""Quantised features: an int8 TFLite model in the place of a traced function."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from lrtflite.errors import ConversionError
from lrtflite.host.network import Network
from lrtflite.system.quiet import quiet_stderr
from lrtflite_converters.features.features import Features
from lrtflite_converters.gradients.window import Tensor
from lrtflite_converters.quantise.scaling import FrameScaling
from lrtflite_converters.tflite.signature import Outputs


class QuantisedFeatures(Features):
    """Features whose `extract` runs `content`, an int8 model, in TensorFlow's interpreter.

    `scale` and `zero_point` are those of its latents.
    """

    def __init__(
        self,
        network: Network,
        replay_layer: str,
        content: bytes,
        scaling: FrameScaling,
        *,
        pooled: bool = False,
        second: str | None = None,
        crops: bool = False,
    ) -> None:
        with quiet_stderr(), warnings.catch_warnings():
            # Recommends another package, which may not share a process with TensorFlow.
            warnings.simplefilter("ignore")
            interpreter = tf.lite.Interpreter(model_content=content, num_threads=1)
            runner = interpreter.get_signature_runner("extract")
        object.__setattr__(self, "runner", runner)
        self.content = content
        details = runner.get_output_details()["latents"]
        (frames,) = runner.get_input_details().values()
        scale, zero_point = details["quantization"]
        step, zero = frames["quantization"]
        if not (np.isclose(step, scaling.step, rtol=1e-4, atol=0) and zero == scaling.zero):
            raise ConversionError(
                f"Expected frames scaled by {scaling.step:g} around {scaling.zero}, got "
                f"{step:g} around {zero} from the converter",
                "leave --quantize out, and report this",
            )
        if details["dtype"] != np.int8 or not scale > 0:
            raise ConversionError(
                f"Expected int8 latents, got {details['dtype'].__name__} with a scale of {scale}",
                "leave --quantize out, and report this",
            )
        self.scale, self.zero_point = float(scale), int(zero_point)
        super().__init__(network, replay_layer, pooled=pooled, second=second, crops=crops)

    @property
    def latent_dtype(self) -> str:
        return "int8"

    def run(self, signature: str, **inputs: NDArray[Any]) -> dict[str, NDArray[Any]]:
        frames = inputs["frames"]
        found = [self.runner(frames=frame[np.newaxis])["latents"] for frame in frames]
        return {"latents": np.concatenate(found)}

    def extract(self, frames: Tensor) -> Outputs:
        """Return values of the right shape and dtype; `run` computes them."""
        return {"latents": tf.cast(super().extract(frames)["latents"], tf.int8)}

    @property
    def head_scale(self) -> Callable[[Tensor], Tensor]:
        return self.dequantise

    def dequantise(self, latents: Tensor) -> Tensor:
        """Return the float32 values that int8 latents stand for, in the head's graph."""
        return (tf.cast(latents, tf.float32) - float(self.zero_point)) * self.scale

    def to_bytes(self) -> bytes:
        return self.content
