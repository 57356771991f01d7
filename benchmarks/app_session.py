"""Duration of a learning session of the paper's app, and peak RAM of the device.

A session has 100 frames, 8 epochs x 5 iterations of 20 new + 100 replayed latents, a memory of 500
and one thread, and commits its state to a disk. The clock runs from the last latent ready to the
state committed. The paper's phone (OnePlus 6, Caffe) took 1,672 ms by the rows of its table.

    python benchmarks/app_session.py BUNDLE [--sessions 30] [--runtime litert --runtime tflite]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np

from lrtflite.errors import LrtfliteError
from lrtflite.options import LearnerOptions
from lrtflite.runtime.model import RUNTIMES, installed_runtimes
from lrtflite.system.machine import this_machine
from lrtflite_firmware_sim import SimulateOptions, Simulation, simulate
from lrtflite_firmware_sim.plan import APP_EPOCHS, APP_FRAMES, APP_NEW
from lrtflite_firmware_sim.watcher import watch

STEPS = APP_EPOCHS * APP_FRAMES // APP_NEW
# The test set is small, because accuracy does not matter here.
DATASET = f"synthetic?frames={APP_FRAMES}&test_frames=1"
TARGET_MS, TARGET_MB = 100.0, 110.0
PHASES = ("extract", "prepare", "train", "consolidate", "checkpoint", "infer")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bundle", type=Path, help="pool6, mini-batches of 20 + 100, 50 classes")
    parser.add_argument("--sessions", type=int, default=30, help="sessions to measure, at most 40")
    parser.add_argument("--runtime", action="append", choices=list(RUNTIMES))
    arguments = parser.parse_args()
    load = os.getloadavg()[0]  # other programs affect every figure
    try:
        results = [
            simulate(
                arguments.bundle,
                SimulateOptions(
                    dataset=DATASET,
                    protocol="app",
                    # The first session, of ten classes, is not the app's and is not counted.
                    sessions=arguments.sessions + 1,
                    learner=LearnerOptions(runtime=runtime),
                ),
                watcher=watch(),
            )
            for runtime in arguments.runtime or installed_runtimes()
        ]
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    print(table(results, load=load))


def table(results: list[Simulation], *, load: float) -> str:
    """Return a table with one column per runtime; `load` is the machine's before the run."""
    bundle = results[0].bundle
    rows = [["", *(result.versions["runtime"] for result in results)]]
    rows.append(["session of the app", *map(_session, results)])
    rows += [
        [
            f"  {phase}",
            *(
                f"{result.latency_ms[phase].p50:.2f} / {result.latency_ms[phase].p95:.2f} ms"
                for result in results
            ),
        ]
        for phase in PHASES
    ]
    rows.append(["peak RAM of the device", *(f"{r.peak_ram_mb:.1f} MB" for r in results)])
    rows.append(["replay memory", *(f"{r.replay_patterns} latents" for r in results)])
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows]
    return "\n".join(
        (
            f"{bundle.backbone}, {bundle.replay_layer}, {bundle.slots} slots, "
            f"{STEPS} steps of {bundle.batch_size}, 1 thread; p50 / p95",
            *lines,
            f"targets: session p50 <= {TARGET_MS:.0f} ms on ai-edge-litert, "
            f"peak RAM <= {TARGET_MB:.0f} MB (alpha 1.0, 500 latents)",
            f"{this_machine()}, load {load:.1f} before the run; "
            f"Python {results[0].versions['python']}, numpy {results[0].versions['numpy']}",
        )
    )


def _session(result: Simulation) -> str:
    times = [session.session_ms for session in result.per_session if session.steps == STEPS]
    if not times:
        bundle = result.bundle
        raise LrtfliteError(
            f"Expected a bundle with mini-batches of 20 + 100, got {bundle.new_per_batch} + "
            f"{bundle.batch_size - bundle.new_per_batch}",
            "convert one with --batch-size 120",
        )
    p50, p95 = np.percentile(times, [50, 95])
    return f"{p50:.1f} / {p95:.1f} ms, n = {len(times)}"


if __name__ == "__main__":
    main()
