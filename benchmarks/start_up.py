"""Seconds from `import lrtflite` to the first answer, in a new process each time.

    python benchmarks/start_up.py [BUNDLE] [--runs 15] [--runtime litert]

The state exists already, so the models have passed their trial in a child process. Rows are medians
over the runs, with the first and the third quartile. CPU time depends less on other programs.
The demo bundle is the default.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from lrtflite import Learner
from lrtflite.bundle.bundle import demo_bundle
from lrtflite.runtime.model import RUNTIMES, describe_runtime, installed_runtimes
from lrtflite.system.machine import this_machine

TARGET_S = 0.4
# The program of a device that wakes up to answer one frame.
PROGRAM = """
import json, sys, time
times, spent = [time.perf_counter()], time.process_time()
import lrtflite
times.append(time.perf_counter())
bundle, state, runtime, frame = sys.argv[1:]
learner = lrtflite.Learner.open(bundle, state, runtime=runtime)
times.append(time.perf_counter())
import numpy
learner.predict(numpy.load(frame))
times.append(time.perf_counter())
spent = time.process_time() - spent
print(json.dumps([*(after - before for before, after in zip(times, times[1:])), spent]))
"""
ROWS = ("import", "open bundle and state", "first answer")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bundle", nargs="?", type=Path)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--runtime", action="append", choices=list(RUNTIMES))
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    for runtime in arguments.runtime or installed_runtimes():
        with demo_bundle() as demo, tempfile.TemporaryDirectory() as folder:
            bundle = arguments.bundle or demo
            print(f"{describe_runtime(runtime)}, {arguments.runs} runs")
            tell(measure(bundle, runtime, arguments.runs, Path(folder)))
    print(f"target: {TARGET_S} s with the demo bundle; {this_machine()}, load {load:.1f} before")


def measure(bundle: Path, runtime: str, runs: int, folder: Path) -> np.ndarray:
    """Return seconds (runs, 4): import, opening, first answer, and the CPU's for all three."""
    state, picture = folder / "state", folder / "frame.npy"
    with Learner.open(bundle, state, runtime=runtime) as learner:
        size = learner.bundle.manifest.input_size
        rng = np.random.default_rng(0)
        frames = rng.integers(0, 256, (8, size, size, 3), np.uint8)
        learner.learn(frames, ["a", "b"] * 4)
    np.save(picture, frames[0])
    words = [str(bundle), str(state), runtime, str(picture)]
    found = []
    for run in range(runs + 1):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        if run:  # the first run fills the page cache
            found.append(json.loads(done.stdout))
    return np.array(found)


def tell(found: np.ndarray) -> None:
    rows = {name: found[:, column] for column, name in enumerate(ROWS)}
    rows.update({"total": found[:, :3].sum(axis=1), "total, CPU time": found[:, 3]})
    for name, seconds in rows.items():
        low, median, high = np.percentile(seconds, [25, 50, 75])
        print(f"  {name:<24} {median:.3f} s ({low:.3f} .. {high:.3f})")


if __name__ == "__main__":
    main()
