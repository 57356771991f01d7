"""Cells of an experiment for tests, with results that were written by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lrtflite.system.machine import Machine
from lrtflite_firmware_sim.reporting.results import (
    BundleFacts,
    ClassResult,
    SessionResult,
    Simulation,
    Spread,
)

SPREAD = Spread(10.0, 12.0, 3)
# Accuracy of two classes after each of three sessions; class b comes in the second one.
HISTORY = ((0.8, 0.0), (0.6, 0.5), (0.4, 0.7))

# A plan's [report] table: two benchmarks, and a row without a run.
ROWS: dict[str, Any] = {
    "paper": {"dataset": "CORe50", "protocol": "NICv2-391", "backbone": "imagenet", "runs": 10},
    "published": [
        {
            "name": "CWR*",
            "source": "curves",
            "match": {"strategy": "cwr"},
            "benchmark": "NICv2-391",
            "accuracy": 57.0,
            "std": 1.0,
            "runs": 10,
        },
        {
            "name": "CWR*",
            "source": "curves",
            "match": {"strategy": "cwr"},
            "benchmark": "NICv2-79",
            "accuracy": 60.0,
        },
        {"name": "EWC", "source": "curves", "match": {"strategy": "ewc"}, "accuracy": 5.4},
    ],
}


@dataclass(frozen=True)
class MadeCell:
    digest: str
    options: Mapping[str, Any]
    axes: Mapping[str, Any]
    record: dict[str, Any] | None = None


def session(number: int, accuracy: float) -> SessionResult:
    return SessionResult(
        session=number,
        accuracy=accuracy,
        classes_seen=2,
        accuracy_seen=accuracy,
        accuracy_new=accuracy,
        accuracy_first=accuracy,
        classes=("a",),
        new_classes=(),
        frames=100,
        steps=5,
        loss=0.1,
        replay_patterns=10,
        session_ms=20.0,
    )


BUNDLE = BundleFacts(
    path="made",
    demo=False,
    backbone="mobilenet_v1, demo weights",
    replay_layer="pool6",
    input_size=128,
    latent_shape=(1024,),
    slots=50,
    batch_size=128,
    new_per_batch=21,
    features_bytes=1000,
    head_bytes=1000,
)


def simulation(curve: Sequence[float], **changes: Any) -> Simulation:
    """Return a result whose accuracies on the whole test set are `curve`."""
    made = Simulation(
        final_accuracy=curve[-1],
        forgetting=0.4,
        per_session=tuple(session(n, value) for n, value in enumerate(curve, start=1)),
        per_class=(ClassResult("a", 1, 0.4, 0.8), ClassResult("b", 2, 0.7, 0.7)),
        latency_ms={"train": SPREAD},
        session_ms_p50=20.0,
        session_ms=SPREAD,
        peak_ram_mb=50.0,
        replay_bytes=6_000_000,
        replay_patterns=10,
        replay_size=1500,
        policy="algorithm1",
        runtime="litert",
        threads=1,
        machine=Machine(cpu="made", cores=2, ram_gb=4.0, system="Linux"),
        versions={"lrtflite": "1.0", "runtime": "made 1.0"},
        seed=0,
        bundle=BUNDLE,
        dataset="synthetic",
        protocol="nic",
        stream={"protocol": "nic"},
        training={},
        sessions=len(curve),
        sessions_in_stream=len(curve),
        test_frames=100,
        notes=(),
        class_accuracy=HISTORY,
        phase_ms={"extract": 9000.0, "train": 1500.0, "memory": 500.0},
    )
    return replace(made, **changes)


def cell(
    axes: Mapping[str, Any],
    curve: Sequence[float],
    *,
    options: Mapping[str, Any] | None = None,
    **changes: Any,
) -> MadeCell:
    """Return a cell that is done."""
    digest = f"{abs(hash(tuple(axes.items()))):016x}"[:16]
    facts = replace(BUNDLE, strategy=axes.get("strategy", "cwr"))
    result = simulation(curve, **{"bundle": facts, **changes})
    record = {
        "format": 1,
        "digest": digest,
        "status": "done",
        "error": None,
        "extraction": {"shared": True, "frames": 300, "ms_per_frame": 8.0},
        "result": json.loads(result.to_json()),
    }
    return MadeCell(digest, {**(options or {}), **axes}, axes, record)


def failed(axes: Mapping[str, Any], error: str) -> MadeCell:
    record = {"format": 1, "status": "failed", "error": error, "result": None}
    return MadeCell("f" * 16, axes, axes, record)
