"""Measure the RAM of a learner, part by part, and the cost of a replay memory on disk.

    python benchmarks/learner_ram.py BUNDLE [--frames 100] [--steps 2] [--rows 1000 100000]
        [--runtime litert]

The first table has the parts of a learner that only answers: resident memory that each adds, and
how much of it is anonymous; the rest is mapped from files. The second has the stages of a session:
resident memory afterwards, and the peak so far. The memory is full, and its rows are in the state
folder. Frames are made one at a time, as a camera does. With --rows, memories of `pool6` latents
(1024 floats) are filled, every row is drawn once, and mini-batches of 100 rows are timed. Each part
runs in a process of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from lrtflite import Learner
from lrtflite.bundle.bundle import Bundle
from lrtflite.replay.codecs import LatentForm
from lrtflite.replay.memory import Content, ReplayMemory
from lrtflite.runtime.model import RUNTIMES, pick_runtime
from lrtflite.state.checkpoint import Checkpoint
from lrtflite.state.meta import NO_STATE, StateMeta
from lrtflite.state.models import save_models
from lrtflite.state.reading import State
from lrtflite.system.machine import peak_ram_mb

FLOATS, BATCH, DRAWS = 1024, 100, 3000
# A program that loads one part after another; it must import nothing before it measures.
PARTS = """
import sys

def used():
    with open("/proc/self/status") as file:
        found = dict(line.split(":", 1) for line in file)
    names = ("VmRSS", "RssAnon", "VmHWM")
    return [int(found[name].split()[0]) * 1024 / 1e6 for name in names]

before = [0.0, 0.0]
def row(name):
    global before
    now, anonymous, peak = used()
    cells = f"{now - before[0]:.1f} | {anonymous - before[1]:.1f} | {peak:.1f}"
    print(f"| {name} | {cells} |", flush=True)
    before = [now, anonymous]

row("Python")
import numpy
row("numpy")
import lrtflite
row("this package")
import importlib
from lrtflite.runtime.model import RUNTIMES, Model
bundle, runtime = lrtflite.Bundle.open(sys.argv[1]), sys.argv[2]
importlib.import_module(RUNTIMES[runtime][1])
row("the runtime's library")
features = Model(bundle.features, runtime=runtime)
size = bundle.manifest.input_size
frame = numpy.zeros((1, size, size, 3), numpy.uint8)
latents = features.run("extract", frames=frame)["latents"]
row("features, and one frame")
head = Model(bundle.head, runtime=runtime)
head.run("infer", latents=latents.astype(bundle.manifest.train_dtype))
row("head that answers")
second = Model(bundle.head, runtime=runtime)
tensors = second.run("save", zero=numpy.zeros(1, numpy.float32))
for model in (head, second):
    model.run("restore", **tensors)
row("head that trains; both restored")
"""
FLOAT = np.dtype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle", nargs="?", type=Path)
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", type=int, nargs="*", default=[])
    parser.add_argument("--runtime", choices=list(RUNTIMES), default=pick_runtime())
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part == "rows":
        draw(options.rows[0])
    elif options.part == "learner":
        stages(options)
    else:
        if options.bundle is not None:
            parts(options)
            again("--part", "learner", str(options.bundle), f"--frames={options.frames}",
                  f"--steps={options.steps}", f"--threads={options.threads}",
                  f"--runtime={options.runtime}")  # fmt: skip
        for rows in options.rows:
            again("--part", "rows", "--rows", str(rows))


def again(*words: str) -> None:
    subprocess.run([sys.executable, __file__, *words], check=True, stderr=subprocess.DEVNULL)


def parts(options: argparse.Namespace) -> None:
    """Print a row per part of a learner, in MB of 10^6 bytes."""
    print("| part | RAM | anonymous | peak so far |\n| --- | --- | --- | --- |", flush=True)
    words = [sys.executable, "-c", PARTS, str(options.bundle), options.runtime]
    subprocess.run(words, check=True, stderr=subprocess.DEVNULL)


def stages(options: argparse.Namespace) -> None:
    """Print a row per stage of one session, with a full memory."""
    row("stage", "RAM now", "peak")
    row("Python, numpy and this package", *used())
    bundle = Bundle.open(options.bundle)
    rng = np.random.default_rng(0)
    size = bundle.manifest.input_size

    def frame() -> np.ndarray:
        return rng.integers(0, 256, (size, size, 3), np.uint8)

    with tempfile.TemporaryDirectory() as folder:
        learner = Learner.open(
            bundle, Path(folder) / "state", threads=options.threads, runtime=options.runtime
        )
        row("three models loaded, new state committed", *used())
        fill(learner, frame())
        row(f"{len(learner.memory)} latents in the memory, on disk", *used())
        latents = np.concatenate([learner.extract(frame()) for _ in range(options.frames)])
        row(f"{len(latents)} latents of a session, {latents.nbytes / 1e6:.1f} MB", *used())
        training = learner.training.with_options(epochs=1, least_steps=1)
        labels = ["a", "b"] * (len(latents) // 2) + ["a"] * (len(latents) % 2)
        seen = 0

        def tell(progress: object) -> None:
            nonlocal seen
            if getattr(progress, "phase", "") == "train":
                seen += 1
                if seen <= options.steps:
                    row(f"training step {seen}", *used())

        learner.learn_latents(latents, labels, training=training, on_progress=tell)
        row("session committed", *used())
        learner.predict(frame())
        row("a frame answered", *used())
        learner.close()


def fill(learner: Learner, frame: np.ndarray) -> None:
    """Commit a full memory; the rows are one latent."""
    latent = learner.extract(frame)[0]
    count, committed = learner.memory.capacity, learner.committed
    rng = np.random.default_rng(0)
    with committed.change():
        slots = (np.arange(count) % learner.bundle.manifest.slots).astype(np.int32)
        learner.memory.update([latent] * count, slots, session=1, rng=rng)
        tensors = save_models(committed.working, committed.adapting)
        committed.commit(tensors, committed.learned, slots=committed.slots)


def draw(count: int) -> None:
    """Print RAM and time of a memory of `count` rows on disk."""
    latent = np.random.default_rng(0).random(FLOATS, np.float32)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        stored = Content.empty((FLOATS,), FLOAT).with_rows(
            [latent] * count, np.arange(count), slots=np.zeros(count, np.int32)
        )
        checkpoint = Checkpoint(Path(folder) / "state")
        content = checkpoint.commit(State({}, stored, meta(count)))
        memory = ReplayMemory(count, LatentForm((FLOATS,), FLOAT, FLOAT, (0.0, 1.0)))
        before = used()[0]
        memory.load(content)
        rng, out = np.random.default_rng(0), np.empty((BATCH, FLOATS), np.float32)
        order = rng.permutation(count)
        for start in range(0, count, BATCH):
            memory.read(order[start : start + BATCH], out)
        times = []
        for _ in range(DRAWS):
            started = time.perf_counter()
            memory.read(memory.draw(BATCH, rng), out)
            times.append(1e6 * (time.perf_counter() - started))
        p50, p95 = np.percentile(times, (50, 95))
        print(
            f"{count} rows of {FLOATS} floats: {used()[0] - before:.1f} MB of RAM after every row "
            f"was drawn once; {BATCH} rows in p50 {p50:.0f} us, p95 {p95:.0f} us (n = {DRAWS})"
        )
        checkpoint.close()


def meta(count: int) -> StateMeta:
    rng = np.random.PCG64(0).state
    return replace(NO_STATE, replay_size=count, labels=(None,), learned=(False,), rng=rng)


def used() -> tuple[float, float]:
    """Return the resident memory now, and its peak, in MB of 10^6 bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6, peak_ram_mb()


def row(name: str, now: float | str, peak: float | str) -> None:
    cells = [each if isinstance(each, str) else f"{each:.0f} MB" for each in (now, peak)]
    print(f"| {name} | {cells[0]} | {cells[1]} |", flush=True)


if __name__ == "__main__":
    main()
