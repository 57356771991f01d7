"""What a simulation found, as values; `to_json` is what `simulate --json` writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from lrtflite.bundle import FEATURES, HEAD, Bundle
from lrtflite.errors import DataError
from lrtflite.machine import Machine
from lrtflite.metrics import percentiles

FORMAT = 2


@dataclass(frozen=True)
class Spread:
    """Median and 95th percentile of `n` measurements."""

    p50: float
    p95: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        found = percentiles(values)
        return cls(p50=float(found["p50"]), p95=float(found["p95"]), n=int(found["n"]))


@dataclass(frozen=True)
class SessionResult:
    """The test set after one session, and what the session did.

    `accuracy` is over the whole test set, classes not seen yet included; `accuracy_seen` over the
    classes seen so far, `accuracy_new` over those that came in most lately, `accuracy_first` over
    those of the first session. `session_ms` is from the last latent ready to the state committed.
    `diagnosis` has the lines of the session's diagnosis, if one was asked for.
    """

    session: int
    accuracy: float
    classes_seen: int
    accuracy_seen: float
    accuracy_new: float
    accuracy_first: float
    classes: tuple[str, ...]
    new_classes: tuple[str, ...]
    frames: int
    steps: int
    loss: float | None
    replay_patterns: int
    session_ms: float
    diagnosis: tuple[str, ...] = ()


@dataclass(frozen=True)
class StartResult:
    """The test set before the first session, where the bundle knows some of its classes.

    `accuracy` is over the whole test set, `accuracy_known` over these `classes`.
    """

    classes: tuple[str, ...]
    accuracy: float
    accuracy_known: float


@dataclass(frozen=True)
class ClassResult:
    """One class at the end.

    `first_session` is the one that first taught it, 0 where the bundle knew it, None for none.
    """

    name: str
    first_session: int | None
    final_accuracy: float
    best_accuracy: float


@dataclass(frozen=True)
class BundleFacts:
    path: str
    demo: bool
    backbone: str
    replay_layer: str
    input_size: int
    latent_shape: tuple[int, ...]
    slots: int
    batch_size: int
    new_per_batch: int
    features_bytes: int
    head_bytes: int
    latent_dtype: str = "float32"
    strategy: str = "cwr"
    trains_trunk: bool = False
    adapt_moments: bool = False

    @classmethod
    def of(cls, bundle: Bundle, *, demo: bool) -> BundleFacts:
        manifest = bundle.manifest
        return cls(
            path="demo" if demo else str(bundle.path),
            demo=demo,
            backbone=manifest.backbone,
            replay_layer=manifest.replay_layer,
            input_size=manifest.input_size,
            latent_shape=manifest.latent_shape,
            slots=manifest.slots,
            batch_size=manifest.feeding.batch_size,
            new_per_batch=manifest.feeding.new_per_batch,
            features_bytes=manifest.files[FEATURES].bytes,
            head_bytes=manifest.files[HEAD].bytes,
            latent_dtype=manifest.latent_dtype,
            strategy=manifest.strategy,
            trains_trunk=manifest.trains_trunk,
            adapt_moments=manifest.adapt_moments,
        )


@dataclass(frozen=True)
class Simulation:
    """The result of `simulate`. Latencies are milliseconds, MB are 10^6 bytes.

    `start` is the test before the first session, where the bundle knew some of the classes.
    `incomplete` says what ended the run before its last session, and after which one.
    """

    final_accuracy: float
    forgetting: float
    accuracy: tuple[SessionResult, ...]
    per_class: tuple[ClassResult, ...]
    latency_ms: dict[str, Spread]
    session_ms_p50: float
    session_ms: Spread
    peak_ram_mb: float
    replay_bytes: int
    replay_patterns: int
    replay_size: int
    policy: str
    runtime: str
    threads: int
    machine: Machine
    versions: dict[str, str]
    seed: int
    bundle: BundleFacts
    dataset: str
    protocol: str
    stream: dict[str, str | int | None]
    training: dict[str, float]
    sessions: int
    sessions_in_stream: int
    test_frames: int
    notes: tuple[str, ...]
    start: StartResult | None = None
    incomplete: str | None = None
    format: int = FORMAT

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Simulation:
        """Read what `to_json` wrote, to draw it again or to compare."""
        try:
            found = json.loads(text)
            if found["format"] != FORMAT:
                raise DataError(f"Expected results of format {FORMAT}, got {found['format']}")
            # Older results lack these: they are complete, of bundles that knew nothing.
            found = {"incomplete": None, "start": None, **found}
            return cls(**{field.name: _value(field.name, found) for field in fields(cls)})
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"Expected the JSON of `lrtflite simulate`, got: {error!r}") from error


def load_simulation(path: str | Path) -> Simulation:
    """Read the file that `simulate --json` wrote."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"Cannot read {path}: {error}") from error
    return Simulation.from_json(text)


def _value(name: str, found: dict[str, Any]) -> Any:
    value = found[name]
    if value is None:
        return None
    if name == "accuracy":
        return tuple(SessionResult(**_tuples(row)) for row in value)
    if name == "per_class":
        return tuple(ClassResult(**row) for row in value)
    if name == "latency_ms":
        return {phase: Spread(**spread) for phase, spread in value.items()}
    if name == "notes":
        return tuple(value)
    kinds: dict[str, Any] = {
        "session_ms": Spread,
        "machine": Machine,
        "bundle": BundleFacts,
        "start": StartResult,
    }
    return kinds[name](**_tuples(value)) if name in kinds else value


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(v) if isinstance(v, list) else v for key, v in row.items()}
