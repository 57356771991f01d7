"""One contestant of training_step.py, alone in its process.

It reads a number of steps per line, and answers with a line of JSON: the milliseconds of each step,
and the memory of the process so far.

    echo 3 | python benchmarks/step_workers.py litert BUNDLE
    echo 3 | python benchmarks/step_workers.py litert-answer BUNDLE     # infers one frame instead
    echo 3 | python benchmarks/step_workers.py torch-renorm-nhwc BUNDLE
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Callable

import numpy as np

from lrtflite.bundle.bundle import Bundle
from lrtflite.errors import LrtfliteError
from lrtflite.runtime.model import RUNTIMES, Model
from lrtflite.system.quiet import quiet_stderr

# Suffix of a runtime that infers instead of training.
ANSWER = "-answer"


@dataclass(frozen=True)
class Reply:
    """The reply to one line: milliseconds per step, peak memory, and memory mapped from files."""

    ms: list[float]
    peak_mb: float
    file_mb: float


class Worker:
    """The parent's side of a contestant, whose process is idle between requests."""

    def __init__(self, contestant: str, bundle: Path) -> None:
        self.contestant = contestant
        self._process = subprocess.Popen(
            [sys.executable, __file__, contestant, str(bundle)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # the process ends when its input ends

    def steps(self, count: int) -> Reply:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(f"{count}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the process has ended, so no line follows
        line = self._process.stdout.readline()
        if not line:
            raise LrtfliteError(
                f"The process of {self.contestant} ended early", "fix the error above"
            )
        return Reply(**json.loads(line))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("contestant", help="a runtime, or torch-NORM-ORDER")
    parser.add_argument("bundle")
    arguments = parser.parse_args()
    contestant: str = arguments.contestant
    bundle = Bundle.open(arguments.bundle)
    runtime = contestant.removesuffix(ANSWER)
    if runtime in RUNTIMES:
        make = bundle_answer if contestant.endswith(ANSWER) else bundle_step
        step = make(bundle, runtime)
    else:
        from torch_step import training_step

        manifest = bundle.manifest
        step = training_step(
            *contestant.split("-")[1:],
            batch=manifest.feeding.batch_size,
            classes=manifest.slots,
            training=manifest.training,
        )
    for line in sys.stdin:
        ms = [_timed(step) for _ in range(int(line))]
        print(json.dumps(asdict(Reply(ms, _memory_mb("VmHWM"), _memory_mb("RssFile")))), flush=True)


def bundle_step(bundle: Bundle, runtime: str) -> Callable[[], Any]:
    """Return a function that calls `train` on random latents, in a session with all classes."""
    manifest = bundle.manifest
    with quiet_stderr():
        head = Model(bundle.head, runtime=runtime, threads=1)
    rng = np.random.default_rng(0)
    latents = head.buffer("train", "latents")
    if latents.dtype == np.uint8:
        latents[:] = rng.integers(0, 256, latents.shape, dtype=np.uint8)
    else:
        rng.standard_normal(out=latents, dtype=np.float32)
        np.maximum(latents, 0, out=latents)
    targets = np.eye(manifest.slots, dtype=np.float32)[np.arange(len(latents)) % manifest.slots]
    rates = manifest.training.scalars(head.signatures["train"].inputs)
    start = manifest.training.scalars(head.signatures["begin"].inputs)
    head.run("begin", counts=targets.sum(axis=0), **start)
    return lambda: head.run("train", latents=latents, targets=targets, **rates)


def bundle_answer(bundle: Bundle, runtime: str) -> Callable[[], Any]:
    """Return a function that passes one frame through both models, as a camera loop does."""
    with quiet_stderr():
        features = Model(bundle.features, runtime=runtime, threads=1)
        head = Model(bundle.head, runtime=runtime, threads=1)
    size = bundle.manifest.input_size
    frame = np.random.default_rng(0).integers(0, 256, (1, size, size, 3), np.uint8)
    return lambda: head.run("infer", latents=features.run("extract", frames=frame)["latents"])


def _timed(step: Callable[[], Any]) -> float:
    start = time.perf_counter()
    step()
    return 1e3 * (time.perf_counter() - start)


def _memory_mb(field: str) -> float:
    """Return a value of /proc/self/status, which is in KiB, in MB."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024 / 1e6
    raise LrtfliteError(f"Expected {field} in /proc/self/status, got none", "run this on Linux")


if __name__ == "__main__":
    main()
