"""The feature model of a bundle, from a foreign `.tflite` file."""

from __future__ import annotations

import hashlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from lrtflite.contract.comparison import MAX_ROUNDING
from lrtflite.errors import ModelError
from lrtflite.runtime.model import Signature, Tensor
from lrtflite.system.quiet import quiet_stderr
from lrtflite_converters.features.latent_range import MAX_DEVIATIONS, UNKNOWN
from lrtflite_converters.features.sample_frames import pale_frames, wave_frames
from lrtflite_converters.foreign.surgery import add_contract
from lrtflite_converters.request.scaling import Scaling
from lrtflite_converters.tflite.foreign_file import ForeignFile

# Frames with which a model is tried.
SAMPLES = 4
# Largest difference between one frame and several, relative to the largest feature: kernels add in
# other orders.
ROUNDING = 1e-3


class ForeignFeatures:
    """A model with the signature `extract`, which TensorFlow's interpreter runs.

    `latent_range` has the limits of a latent, `strength` the mean square length of one.
    """

    latent_dtype = "float32"
    reads_frames = False

    def __init__(self, content: bytes, size: int, *, quantised: bool, where: str) -> None:
        """Try a model; raise ModelError if it does not take several frames at once."""
        self.content, self.input_size = content, size
        self.rounding = MAX_ROUNDING if quantised else 0.0
        try:
            with quiet_stderr(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # newer versions recommend another package
                self._interpreter = tf.lite.Interpreter(model_content=content, num_threads=1)
                self._interpreter.allocate_tensors()
            self._runner = self._interpreter.get_signature_runner("extract")
            frames = wave_frames(SAMPLES, size, np.random.default_rng(0))
            alone = np.concatenate([self._extract(frames[i : i + 1]) for i in range(SAMPLES)])
        except (ValueError, RuntimeError) as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise ModelError(
                f"Expected a .tflite model that TensorFlow runs, got {where}: {lines[0][:160]}",
                "export the model again",
            ) from error
        self._check(alone, frames, where)
        self.latent_shape = tuple(int(n) for n in alone.shape[1:])
        pale = self._extract(pale_frames(SAMPLES, size, np.random.default_rng(0)))
        self.strength = float(np.square(pale).sum(axis=-1).mean())
        highest = max(UNKNOWN, MAX_DEVIATIONS * float(np.abs(alone).max()))
        self.latent_range = (-highest, highest)
        self.signatures = {
            "extract": Signature(
                {"frames": Tensor((-1, size, size, 3), np.dtype(np.uint8))},
                {"latents": Tensor((-1, *self.latent_shape), np.dtype(np.float32))},
            )
        }

    def run(self, signature: str, **inputs: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Call `extract` with frames, as `lrtflite.runtime.model.Model` does."""
        return {"latents": self._extract(inputs["frames"])}

    def to_bytes(self) -> bytes:
        """Return the content of `features.tflite`."""
        return self.content

    def _extract(self, frames: NDArray[Any]) -> NDArray[Any]:
        return np.array(self._runner(frames=frames)["latents"])

    def _check(self, alone: NDArray[Any], frames: NDArray[Any], where: str) -> None:
        try:
            together = self._extract(frames)
        except (ValueError, RuntimeError):
            together = np.zeros(0)
        largest = np.abs(alone).max()
        fits = together.shape == alone.shape and (
            np.abs(together - alone).max() <= max(ROUNDING, self.rounding) * largest
        )
        if not np.isfinite(alone).all() or largest == 0:
            raise ModelError(
                f"Expected a model that gives finite features, got {alone.ravel()[0]} from {where}",
                "check its weights and --scale",
            )
        if not fits:
            raise ModelError(
                f"Expected a model that takes any number of images at once, got {where}, which is "
                "built for one",
                "export it with a dynamic batch size",
            )


def read_features(
    path: Path, scaling: Scaling | None, content: bytes | None = None
) -> tuple[ForeignFeatures, str]:
    """Return the features in a file, and one line about their source; `content` has its bytes."""
    content = path.read_bytes() if content is None else content
    file = ForeignFile(content, where=path.name)
    quantised = file.is_quantised
    changed, size = add_contract(file, scaling, where=path.name)
    origin = f"{path.name} (sha256 {hashlib.sha256(content).hexdigest()[:12]})"
    return ForeignFeatures(changed, size, quantised=quantised, where=path.name), origin
