"""Measure the costs of a bundle on this machine: time per frame, step and session, and RAM.

`python -m lrtflite.workbench.measuring BUNDLE RUNTIME` prints them as JSON. Its process runs
nothing but a learner, so its RAM is that of a device.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from lrtflite.bundle.bundle import Bundle
from lrtflite.bundle.costs import SESSION_FRAMES, Costs
from lrtflite.bundle.feeding import NOTHING
from lrtflite.learner import Learner
from lrtflite.progress import Phase
from lrtflite.runtime.model import default_threads, describe_runtime
from lrtflite.state.models import save_models
from lrtflite.system.machine import peak_ram_mb, this_machine

# Patterns in the measured session, each in a separate class. A step costs the same with any number
# of them.
MEASURED_PATTERNS = 2
# Epochs of the measured session.
ROUNDS = 3


def measure_costs(
    bundle: str | Path, *, runtime: str = "auto", threads: int | None = None
) -> Costs:
    """Teach a learner with a full memory, with its state in a temporary folder."""
    opened = Bundle.open(bundle)
    threads = threads or default_threads(trains_trunk=opened.manifest.trains_trunk)
    with (
        tempfile.TemporaryDirectory(prefix="lrtflite-costs-") as folder,
        Learner.open(opened, Path(folder) / "state", runtime=runtime, threads=threads) as learner,
    ):
        return _measure(learner, threads)


def _measure(learner: Learner, threads: int) -> Costs:
    manifest, rng = learner.bundle.manifest, np.random.default_rng(0)
    frame = rng.integers(0, 256, (manifest.input_size, manifest.input_size, 3), np.uint8)
    latent = learner.extract(frame)[0]
    places = [i % manifest.slots for i in range(MEASURED_PATTERNS)]
    labels = [learner.labels[place] or f"class {place}" for place in places]
    # Fill every row and commit them, so that all are on the disk, as after many sessions.
    count = learner.memory.capacity
    slots = (np.arange(count) % min(MEASURED_PATTERNS, manifest.slots)).astype(np.int32)
    committed = learner.committed
    with committed.change():
        learner.memory.update([latent] * count, slots, session=1, rng=rng)
        tensors = save_models(committed.working, committed.adapting)
        committed.commit(tensors, committed.learned, slots=committed.slots)
    patterns = np.stack([latent] * MEASURED_PATTERNS)
    training = learner.training.with_options(epochs=ROUNDS, least_steps=ROUNDS)
    if manifest.trains_trunk and manifest.feeding.gathers != NOTHING:
        # A trunk may rest until its classes are known.
        learner.learn_latents(patterns, labels, training=training)
    report = learner.learn_latents(patterns, labels, training=training)
    # The first step allocates, so it is left out. Everything but steps is paid once per session.
    trains = Phase.TRAIN in report.timings
    steps_ms = [
        sum(pair)
        for pair in zip(report.timings.get(Phase.PREPARE, ()), report.timings.get(Phase.TRAIN, ()))
    ]
    step_ms = float(np.median(steps_ms[1:])) if trains else 0.0
    once_ms = report.ready_to_committed_ms - sum(steps_ms)
    feeding = learner.training.feeding
    steps = feeding.longest(new=SESSION_FRAMES, stored=count) if trains else 0
    return Costs(
        machine=str(this_machine()),
        runtime=describe_runtime(learner.runtime),
        threads=threads,
        extract_ms=_extract_ms(learner, frame),
        step_ms=step_ms,
        steps=steps,
        session_s=(once_ms + steps * step_ms) / 1e3,
        ram_mb=peak_ram_mb(),
        memory_mb=learner.memory.nbytes / 1e6,
    )


def _extract_ms(learner: Learner, frame: np.ndarray[Any, np.dtype[np.uint8]]) -> float:
    times = []
    for _ in range(2 * ROUNDS + 1):
        started = time.perf_counter()
        learner.extract(frame)
        times.append(1e3 * (time.perf_counter() - started))
    return float(np.median(times))


if __name__ == "__main__":
    print(json.dumps(asdict(measure_costs(sys.argv[1], runtime=sys.argv[2]))))
