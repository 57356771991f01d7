"""The results of a simulation, as values; `simulate --json` writes `Simulation.to_json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from lrtflite.bundle.bundle import FEATURES_FILE, HEAD_FILE, Bundle
from lrtflite.errors import DataError
from lrtflite.system.machine import Machine
from lrtflite.workbench.metrics import percentiles
from lrtflite.workbench.unknown import Threshold, UnknownAnswers

FORMAT = 2
# Field -> key in the JSON, where the two differ.
_KEYS = {"per_session": "accuracy"}


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
    """One session, and the accuracy on the test set after it.

    `accuracy` is over the complete test set, which includes classes not taught yet. `accuracy_seen`
    is over the classes taught so far, `accuracy_new` over the newest classes, `accuracy_first` over
    those of the first session. `session_ms` is the time from the last latent ready to the state
    committed. `diagnosis` has the lines of the session's diagnosis, if one was requested.
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
    """The accuracy before the first session of a bundle that already knows some of the classes.

    `accuracy` is over the complete test set, `accuracy_known` over the known `classes`.
    """

    classes: tuple[str, ...]
    accuracy: float
    accuracy_known: float


@dataclass(frozen=True)
class ClassResult:
    """One class after the last session.

    `first_session` is the number of the session that first taught it, 0 if the bundle shipped with
    it, None if it was never taught.
    """

    name: str
    first_session: int | None
    final_accuracy: float
    best_accuracy: float


@dataclass(frozen=True)
class BundleFacts:
    """Facts about the bundle that a reader of the results needs."""

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
            features_bytes=manifest.files[FEATURES_FILE].bytes,
            head_bytes=manifest.files[HEAD_FILE].bytes,
            latent_dtype=manifest.latent_dtype,
            strategy=manifest.strategy,
            trains_trunk=manifest.trains_trunk,
            adapt_moments=manifest.adapt_moments,
        )


@dataclass(frozen=True)
class Simulation:
    """The result of `simulate`. Latencies are in milliseconds; 1 MB is 10^6 bytes.

    `start` is the test before the first session, if the bundle already knew some of the classes.
    `incomplete` names the cause of a run that ended before its last session. `rival` names the
    rival that learned instead of the bundle's head, if any. `unknown` judges the thresholds of
    unknown, if the head reports familiarity: each class is known in the last test, and unknown in
    the last test before it was taught. `improve` has a line for each frequent confusion in the last
    test. `class_accuracy` has a row for the test before the first session, if `start` is given, and
    for the test after each session; its columns are the classes of `per_class`. `phase_ms` is the
    time of each phase over all sessions. `parameter_bytes` is the size of the tensors in the head's
    state, unless a rival learned.
    """

    final_accuracy: float
    forgetting: float
    per_session: tuple[SessionResult, ...]
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
    rival: str | None = None
    unknown: UnknownAnswers | None = None
    improve: tuple[str, ...] = ()
    class_accuracy: tuple[tuple[float, ...], ...] = ()
    phase_ms: dict[str, float] = field(default_factory=dict)
    parameter_bytes: int | None = None
    format: int = FORMAT

    @property
    def strategy(self) -> str:
        """Return the name of the strategy that learned: the rival's, or the bundle's."""
        return self.rival or self.bundle.strategy

    def to_json(self) -> str:
        """Return the text that `simulate --json` writes."""
        record = {_KEYS.get(name, name): value for name, value in asdict(self).items()}
        return json.dumps(record, indent=2, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Simulation:
        """Return the results that `to_json` wrote."""
        try:
            found = json.loads(text)
            if found["format"] != FORMAT:
                raise DataError(
                    f"Expected results of format {FORMAT}, got {found['format']}",
                    "run the simulation again",
                )
            # Older files lack these keys: complete runs of the head of a bundle that knew nothing.
            older = dict.fromkeys(("incomplete", "start", "rival", "unknown", "parameter_bytes"))
            found = {**older, "improve": (), "class_accuracy": (), "phase_ms": {}, **found}
            return cls(**{each.name: _value(each.name, found) for each in fields(cls)})
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"Expected the JSON of `lrtflite simulate`, got {error!r}",
                "run the simulation again",
            ) from error


def load_simulation(path: str | Path) -> Simulation:
    """Read the file that `simulate --json` wrote."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"Expected a readable file of `simulate --json`, got {path} ({error})", "check the path"
        ) from error
    return Simulation.from_json(text)


def _value(name: str, found: dict[str, Any]) -> Any:
    value = found[_KEYS.get(name, name)]
    if value is None:
        return None
    if name == "per_session":
        return tuple(SessionResult(**_tuples(row)) for row in value)
    if name == "per_class":
        return tuple(ClassResult(**row) for row in value)
    if name == "unknown":
        thresholds = tuple(Threshold(**row) for row in value["thresholds"])
        return UnknownAnswers(**{**value, "thresholds": thresholds})
    if name == "latency_ms":
        return {phase: Spread(**spread) for phase, spread in value.items()}
    if name == "class_accuracy":
        return tuple(map(tuple, value))
    if name in ("notes", "improve"):
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
