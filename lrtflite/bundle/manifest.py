"""The manifest of a bundle as a value; `lrtflite.bundle.manifest_json` reads it from JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.bundle.costs import Costs
from lrtflite.bundle.feeding import EXTRA, Feeding
from lrtflite.bundle.quantisation import Quantisation
from lrtflite.bundle.training import Rate, Training
from lrtflite.files.compatibility import REQUIRES
from lrtflite.files.digest import File
from lrtflite.replay.codecs import LatentForm

BUNDLE_FORMAT = 7
# Formats that this version reads, by the same rules.
BUNDLE_FORMATS = (6, 7)
LATENT_DTYPES = ("float32", "uint8", "int8")
# Rules for merging a tensor of several states: add them up; add them up row by row, where each row
# is a class slot; let `consolidate` recompute it from the tensors that add up; or refuse to merge.
MERGING = SUM, SUM_BY_CLASS, SOLVE, REFUSE = ("sum", "sum by class", "solve", "refuse")


@dataclass(frozen=True)
class Manifest:
    """The manifest of a bundle; see docs/bundle.md for each field."""

    network: str
    replay_layer: str
    strategy: str
    input_size: int
    latent_shape: tuple[int, ...]
    latent_range: tuple[float, float]
    labels: tuple[str | None, ...]
    feeding: Feeding
    rates: Mapping[str, Rate]
    merging: Mapping[str, str]
    replay_size: int
    policy: str
    backbone: str
    trains_trunk: bool
    pooled: bool = False
    files: dict[str, File] = field(default_factory=dict)
    ops: dict[str, list[str]] = field(default_factory=dict)
    tools: dict[str, str] = field(default_factory=dict)
    latent_dtype: str = "float32"
    train_dtype: str = "float32"
    codec: str = "raw"
    train_depthwise: bool = True
    adapt_moments: bool = False
    measured: Costs | None = None
    quantisation: Quantisation | None = None
    name: str | None = None
    version: str | None = None
    created: str | None = None
    replaces: str | None = None
    unknown: float | None = None
    second_layer: str | None = None
    crop: float | None = None
    format: int = BUNDLE_FORMAT

    @property
    def slots(self) -> int:
        """Return the number of class slots in the head, taken or free."""
        return len(self.labels)

    @property
    def layers(self) -> str:
        """Return in words which layers and views of a frame give a latent."""
        pooled = ", pooled" if self.pooled else ""
        second = f" and {self.second_layer}, pooled" if self.second_layer else ""
        crop = f"; mean of whole frames and their centres ({self.crop:g})" if self.crop else ""
        return f"{self.replay_layer}{pooled}{second}{crop}"

    @property
    def latent_bytes(self) -> int:
        """Return the number of bytes of one latent from `extract`."""
        return np.dtype(self.latent_dtype).itemsize * math.prod(self.latent_shape)

    @property
    def training(self) -> Training:
        """Return the default training of a session."""
        return Training(self.feeding, self.rates)

    @property
    def latent_form(self) -> LatentForm:
        """Return the properties of the latents that a codec needs."""
        return LatentForm(
            shape=self.latent_shape,
            extracted=np.dtype(self.latent_dtype),
            trained=np.dtype(self.train_dtype),
            range=self.latent_range,
            zero=0 if self.quantisation is None else self.quantisation.zero_point,
        )

    def real(self, latents: NDArray[Any]) -> NDArray[np.float32]:
        """Return the float32 values that latents stand for."""
        if self.quantisation is None:
            return latents.astype(np.float32, copy=False)
        return self.quantisation.real(latents)

    @property
    def requires(self) -> list[str]:
        """Return the names of the fields that a reader of this manifest must know."""
        return [name for name, is_needed in REQUIRED.items() if is_needed(self)]

    def to_json(self) -> str:
        """Return the manifest as JSON; optional fields that have no value are left out."""
        found = {
            name: value
            for name, value in asdict(self).items()
            if value is not None or name not in OPTIONAL
        }
        left_out = () if self.feeding.extra_steps else EXTRA
        found["feeding"] = {
            name: value
            for name, value in found["feeding"].items()
            if value is not None and name not in left_out
        }
        if self.requires:
            found[REQUIRES] = self.requires
        return json.dumps(found, indent=2, sort_keys=True) + "\n"


# Fields about a bundle as a whole, one line of text each.
ABOUT = ("name", "version", "created", "replaces")
# Fields that only some bundles have. Every other field of a Manifest is a base field.
OPTIONAL = ("quantisation", "unknown", "second_layer", "crop", *ABOUT)
# Fields beyond the base ones that a reader must know, by their names in `requires`, with the
# condition under which a manifest needs them. A name is the path of a field, "feeding.NAME". To add
# one, add its line here; this version then reads it, and writes it into `requires` where needed.
REQUIRED: dict[str, Callable[[Manifest], bool]] = {
    "feeding.extra_steps": lambda manifest: manifest.feeding.extra_steps > 0,
}
