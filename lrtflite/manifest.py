"""What a bundle says of itself: `manifest.json` as a value."""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrtflite.arguments import LARGEST_FLOAT32, real_number, whole_number
from lrtflite.costs import Costs
from lrtflite.errors import BundleError, InputError
from lrtflite.slots import check_label

FORMAT = 5
LATENT_DTYPES = ("float32", "uint8")
# Greatest value of each number that signatures take.
RATES = {
    "head_start": 1.0,
    "lr": LARGEST_FLOAT32,
    "trunk_lr": LARGEST_FLOAT32,
    "momentum": 1.0,
    "weight_decay": 1.0,
    "moment_rate": 1.0,
    "adapt_rate": 1.0,
}
# Rates that a head without a trunk does not take.
TRUNK_RATES = ("trunk_lr", "moment_rate")
# Greatest value of each count: more would never end.
COUNTS = {"epochs": 100_000, "least_steps": 1_000_000}


@dataclass(frozen=True)
class Training:
    """How a session trains. There are no defaults: a bundle's own are in its manifest.

    To change some of them, begin with the bundle's: `learner.training.with_options(epochs=20)`.

    `lr` is the learning rate of the CWR layer, `trunk_lr` that of the layers between it and the
    replay layer, `moment_rate` the share of a mini-batch in their moving moments of Batch Renorm;
    `adapt_rate` is that of a session's frames below the replay layer, where moments may adapt. A
    session takes at least `least_steps`: a few pictures are few steps an epoch. A new class starts
    from `head_start` times the mean weights of the known ones that the session or the memory has;
    in the paper from 0.
    """

    lr: float
    momentum: float
    weight_decay: float
    epochs: int
    trunk_lr: float
    moment_rate: float
    adapt_rate: float
    least_steps: int
    head_start: float

    def __post_init__(self) -> None:
        # numpy's numbers become Python's, which JSON can hold.
        for name, most in RATES.items():
            object.__setattr__(self, name, real_number(name, getattr(self, name), most=most))
        for name, most in COUNTS.items():
            count = whole_number(name, getattr(self, name), least=1, most=most)
            object.__setattr__(self, name, count)

    def inputs(self, names: Collection[str]) -> dict[str, NDArray[np.float32]]:
        """Return those of RATES among the inputs `names` of a signature, each (1,) float32."""
        return {
            name: np.array([getattr(self, name)], np.float32) for name in RATES if name in names
        }

    def with_options(self, **options: float | None) -> Training:
        """Return a copy with the options that are given by name; None keeps what is here."""
        known = [field.name for field in fields(self)]
        for name in options:
            if name not in known:
                raise InputError(f"Expected options of {', '.join(known)}, got {name!r}")
        given: dict[str, Any] = {k: v for k, v in options.items() if v is not None}
        return replace(self, **given)


@dataclass(frozen=True)
class File:
    """Digest and size of one of the bundle's files."""

    sha256: str
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """The manifest of a bundle; see docs/bundle.md for each field."""

    replay_layer: str
    input_size: int
    latent_shape: tuple[int, ...]
    latent_range: tuple[float, float]
    labels: tuple[str | None, ...]
    batch_size: int
    new_per_batch: int
    training: Training
    replay_size: int
    policy: str
    backbone: str
    files: dict[str, File] = field(default_factory=dict)
    ops: dict[str, list[str]] = field(default_factory=dict)
    tools: dict[str, str] = field(default_factory=dict)
    latent_dtype: str = "float32"
    train_depthwise: bool = True
    adapt_moments: bool = False
    measured: Costs | None = None
    format: int = FORMAT

    @property
    def slots(self) -> int:
        """How many classes the head has room for, taken or free."""
        return len(self.labels)

    @property
    def latent_bytes(self) -> int:
        return np.dtype(self.latent_dtype).itemsize * math.prod(self.latent_shape)

    @property
    def trains_trunk(self) -> bool:
        """Whether more than the last layer trains."""
        return trains_trunk(self.replay_layer)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str, *, where: str) -> Manifest:
        """Parse a manifest; `where` names the file in errors."""
        try:
            found = json.loads(text)
        except ValueError as error:
            raise BundleError(f"Expected JSON in {where}, got: {error}") from error
        if not isinstance(found, dict) or "format" not in found:
            raise BundleError(f"Expected a bundle manifest in {where}, got something else")
        if found["format"] != FORMAT:
            raise BundleError(
                f"Expected a bundle of format {FORMAT}, got format {found['format']} in {where}; "
                "convert it again with this version, or install the version that made it"
            )
        known = {f.name for f in fields(cls)}
        if set(found) != known:
            odd = sorted(known.symmetric_difference(found))
            raise BundleError(f"Missing or unknown fields in {where}: {', '.join(odd)}")
        try:
            return cls(**_values(found))
        except (TypeError, ValueError, KeyError, AttributeError, InputError) as error:
            raise BundleError(f"Damaged field in {where}: {error}") from error


def trains_trunk(replay_layer: str) -> bool:
    """Whether there are units above the layer: above conv6/sep there is only the pooling."""
    return replay_layer not in ("pool6", "conv6/sep")


def _range(found: Any) -> tuple[float, float]:
    low, high = (float(limit) for limit in found)
    if not -math.inf < low < high < math.inf:
        raise ValueError(f"latent_range is {found!r}")
    return low, high


def _values(found: dict[str, Any]) -> dict[str, Any]:
    for name in ("input_size", "batch_size", "new_per_batch", "replay_size"):
        if not isinstance(found[name], int) or found[name] < 0:
            raise ValueError(f"{name} is {found[name]!r}")
    for name in ("replay_layer", "policy", "backbone"):
        if not isinstance(found[name], str):
            raise ValueError(f"{name} is {found[name]!r}")
    if found["latent_dtype"] not in LATENT_DTYPES:
        raise ValueError(f"latent_dtype is {found['latent_dtype']!r}")
    for name in ("adapt_moments", "train_depthwise"):
        if not isinstance(found[name], bool):
            raise ValueError(f"{name} is {found[name]!r}")
    odd = {f.name for f in fields(Training)}.symmetric_difference(found["training"])
    if odd:
        raise ValueError(f"training has or lacks {', '.join(sorted(odd))}")
    if not 1 <= found["new_per_batch"] <= found["batch_size"]:
        raise ValueError(f"new_per_batch is {found['new_per_batch']} of {found['batch_size']}")
    if not found["labels"] or not all(isinstance(x, (str, type(None))) for x in found["labels"]):
        raise ValueError(f"labels are {found['labels']!r}")
    return {
        **found,
        "latent_shape": tuple(int(n) for n in found["latent_shape"]),
        "latent_range": _range(found["latent_range"]),
        "labels": tuple(x if x is None else check_label(x) for x in found["labels"]),
        "training": Training(**found["training"]),
        "files": {name: File(**value) for name, value in found["files"].items()},
        "measured": None if found["measured"] is None else Costs.from_json(found["measured"]),
    }
