"""The quantisation of a bundle's features: a value of the manifest, with what it changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.arguments import real_number, whole_number
from lrtflite.files.compatibility import fields_of

# Range of an int8 latent.
LOWEST, HIGHEST = -128, 127


@dataclass(frozen=True)
class Quantisation:
    """Scale and zero point of int8 latents, and how they compare with float ones.

    A latent stands for `scale` times its value minus `zero_point`. `mode` is the name that a user
    types, `epochs` the passes of fine-tuning, and `calibration` the data set, of which `frames`
    frames were used. On these frames, `snr_db` is the signal-to-noise ratio of the latents, and
    `agreement` the share of equal answers of two nearest-mean classifiers, one on float and one on
    int8 latents; None if the data set has too few frames per class. `float_bytes` and `int8_bytes`
    are the sizes of `features.tflite`. `runtime` is the oldest TFLite version that has its ops.
    """

    mode: str
    scale: float
    zero_point: int
    calibration: str
    frames: int
    epochs: int
    snr_db: float
    agreement: float | None
    float_bytes: int
    int8_bytes: int
    runtime: str

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Quantisation:
        """Return the value that `asdict` wrote, or raise ValueError or InputError."""
        found = fields_of(found, cls, "quantisation")
        for name in ("mode", "calibration", "runtime"):
            if not isinstance(found[name], str):
                raise ValueError(f"{name} is {found[name]!r}")
        for name in ("frames", "epochs", "float_bytes", "int8_bytes"):
            whole_number(name, found[name])
        whole_number("zero_point", found["zero_point"], least=LOWEST, most=HIGHEST)
        real_number("snr_db", found["snr_db"], least=-1e3, most=1e3)
        if found["agreement"] is not None:
            real_number("agreement", found["agreement"], most=1.0)
        if not real_number("scale", found["scale"]) > 0:
            raise ValueError(f"scale is {found['scale']!r}")
        return cls(**found)

    def real(self, latents: NDArray[Any]) -> NDArray[np.float32]:
        """Return the float32 values that int8 latents stand for."""
        return (latents.astype(np.float32) - np.float32(self.zero_point)) * np.float32(self.scale)

    def __str__(self) -> str:
        ratio = self.float_bytes / max(self.int8_bytes, 1)
        agreement = (
            "agreement not measured, because the data set has too few frames per class"
            if self.agreement is None
            else f"{100 * self.agreement:.1f} % of the predictions agree"
        )
        tuned = f", {self.epochs} epochs of fine-tuning" if self.epochs else ""
        return (
            f"features.tflite {self.float_bytes / 1e6:.2f} MB as float, "
            f"{self.int8_bytes / 1e6:.2f} MB as int8 ({ratio:.2f} times smaller); "
            "latents with a signal-to-noise ratio of "
            f"{self.snr_db:.1f} dB; {agreement} ({self.mode}{tuned}, {self.frames} frames of "
            f"{self.calibration})"
        )
