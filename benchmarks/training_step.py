"""Duration and RAM of one SGD step above a replay layer, compared with PyTorch.

The network is MobileNetV1 alpha 1.0 at 128 px with 50 classes, mini-batches of 21 new + 107
replayed latents, and one thread. A step is complete: forward with Batch Renorm in training mode,
backward, momentum, weight decay, moments. Each contestant has a process of its own. They take
turns, so that other programs on the machine disturb all equally. Bundles are converted once, into
build/steps.

    python benchmarks/training_step.py [--layers-table [--layers LAYER ...]]
    python benchmarks/training_step.py --networks     # MobileNetV1 and MobileNetV2 side by side
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bundles import IMAGENET, WEIGHTS, converted, lrtflite, say
from step_workers import ANSWER, Worker

from lrtflite.bundle.bundle import Bundle
from lrtflite.errors import LrtfliteError
from lrtflite.networks.mobilenet_v1 import REPLAY_LAYERS
from lrtflite.runtime.model import describe_runtime, installed_runtimes, pick_runtime
from lrtflite.system.machine import this_machine

LAYER, BATCH, NEW = "conv5_4/dw", 128, 21
BATCHES = (32, 64, 128, 256)
# Layers of both networks above which about the same number of operations trains.
SIDE_BY_SIDE = {"mobilenet_v1": LAYER, "mobilenet_v2": "block_6"}
TORCH = {
    "torch-renorm": "PyTorch, Batch Renorm in Python",
    "torch-batchnorm": "PyTorch, its fused Batch Norm",
}
# Memory layouts of PyTorch's arrays. Which is faster depends on the network.
ORDERS = ("nhwc", "nchw")
BASELINE = TORCH["torch-renorm"]
TARGETS = {"litert": "<= 0.85, <= 420 MB (aim 0.65, 260 MB)", "tflite": "<= 1.8"}


def main() -> None:
    arguments = parse()
    weights: str = arguments.weights
    load = os.getloadavg()[0]  # other programs affect every figure
    print(f"One SGD step, wall time, 1 thread; load {load:.1f} before the run", flush=True)
    try:
        pick_runtime("litert")  # every section needs it
        if arguments.networks:
            print(networks(arguments.rounds, arguments.steps))
            print(f"\n{this_machine()}; {versions()}")
            return
        print(comparison(weights, arguments.rounds, arguments.steps), flush=True)
        print(batch_sizes(weights, arguments.rounds, arguments.steps), flush=True)
        if arguments.layers_table:
            print(replay_layers(weights, arguments.layers or REPLAY_LAYERS), flush=True)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    print(f"\n{this_machine()}; {versions()}")


def parse() -> argparse.Namespace:
    weights = str(IMAGENET) if IMAGENET.exists() else "imagenet"
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=3, help="steps of each contestant in a round")
    parser.add_argument("--layers-table", action="store_true", help="one row per replay layer")
    parser.add_argument(
        "--layers",
        nargs="+",
        choices=REPLAY_LAYERS,
        metavar="LAYER",
        help="layers of the table [all of them, which take an hour to convert]",
    )
    parser.add_argument("--networks", action="store_true", help="compare two networks only")
    parser.add_argument("--weights", default=weights, help="[%(default)s]")
    arguments = parser.parse_args()
    if min(arguments.rounds, arguments.steps) < 1:
        parser.error("expected at least 1 round of at least 1 step; give more")
    if arguments.layers and not arguments.layers_table:
        parser.error("expected --layers-table with --layers; add it")
    return arguments


def comparison(weights: str, rounds: int, steps: int) -> str:
    """Compare LiteRT, tflite-runtime and PyTorch on the same step."""
    bundle = bundle_of(weights, LAYER, BATCH)
    torch = importlib.util.find_spec("torch") is not None
    runtimes = installed_runtimes()
    rivals = [f"{name}-{order}" for name in TORCH for order in ORDERS] if torch else []
    contestants = [*runtimes, *rivals]
    found = measure([(name, bundle) for name in contestants], rounds=rounds, steps=steps)
    by_name = dict(zip(contestants, found))
    timings = {describe_runtime(name): by_name[name] for name in runtimes}
    if torch:
        for name, title in TORCH.items():
            orders = [by_name[f"{name}-{order}"] for order in ORDERS]
            timings[title] = min(orders, key=lambda timing: timing.median)
    targets = {describe_runtime(name): TARGETS[name] for name in runtimes}
    rows = [["", "ms/step", "quartiles", "ratio", "peak RSS", "of files", "target"]]
    for name, timing in timings.items():
        ratio = f"{timing.ratio_to(timings[BASELINE]):.2f}" if torch else "-"
        rows.append([name, *timing.cells(), ratio, *timing.memory(), targets.get(name, "")])
    lines = [
        f"\nAbove {LAYER}, {NEW} + {BATCH - NEW} patterns; {rounds} rounds of {steps} steps",
        *table(rows),
    ]
    if torch:
        lines.append(
            f"ratio: median over the rounds, to {BASELINE}; PyTorch is eager, "
            f"and in the faster of {' and '.join(ORDERS)}"
        )
    else:
        lines.append("PyTorch is not installed, so its rows are missing: pip install torch==2.13.0")
    lines.append("of files: the part of the process that is mapped from files, such as libraries")
    return "\n".join(lines)


def networks(rounds: int, steps: int) -> str:
    """Compare the time per operation of two networks, on every runtime, taking turns."""
    rows = [["", "ms/step", "quartiles", "M ops/pattern", "ns per 1000 ops", "ratio", "peak RSS"]]
    for runtime in installed_runtimes():
        bundles = {
            name: bundle_of(str(WEIGHTS[name]), layer, BATCH, network=name)
            for name, layer in SIDE_BY_SIDE.items()
        }
        contestants = [(runtime, bundle) for bundle in bundles.values()]
        found = measure(contestants, rounds=rounds, steps=steps)
        ops = [ops_above(name, layer) for name, layer in SIDE_BY_SIDE.items()]
        for (name, layer), timing, count in zip(SIDE_BY_SIDE.items(), found, ops):
            ratio = timing.ratio_to(found[0]) * ops[0] / count
            rows.append(
                [
                    f"{describe_runtime(runtime)}, {name} {layer}",
                    *timing.cells(),
                    f"{count / 1e6:.1f}",
                    f"{timing.median * 1e9 / (BATCH * count):.0f}",
                    f"{ratio:.2f}",
                    timing.memory()[0],
                ]
            )
    return "\n".join(table(rows))


def ops_above(network: str, layer: str) -> float:
    """Return the operations above a layer for one pattern, as `lrtflite layers` counts them."""
    found = json.loads(lrtflite(["layers", "--network", network, "--json"]))
    (row,) = [row for row in found["layers"] if row["name"] == layer]
    return float(found["total"]["ops"] * row["computation"] / 100)


def batch_sizes(weights: str, rounds: int, steps: int) -> str:
    """Show that the cost is linear in the size of the mini-batch."""
    bundles = [bundle_of(weights, LAYER, batch) for batch in BATCHES]
    found = measure([("litert", bundle) for bundle in bundles], rounds=rounds, steps=steps)
    rows = [["batch", "ms/step", "quartiles", "ms/pattern", "peak RSS"]]
    for batch, timing in zip(BATCHES, found):
        each = f"{timing.median / batch:.2f}"
        rows.append([str(batch), *timing.cells(), each, timing.memory()[0]])
    return "\n".join((f"\nAbove {LAYER}, {describe_runtime('litert')}", *table(rows)))


def replay_layers(weights: str, layers: Sequence[str]) -> str:
    """Return a table with one row per replay layer, next to the paper's computation column."""
    computation = papers_computation()
    timings, answers, latent_bytes = {}, {}, {}
    for layer in layers:
        bundle = bundle_of(weights, layer, BATCH)
        latent_bytes[layer] = Bundle.open(bundle).manifest.latent_bytes
        say(f"3 steps above {layer}")
        (timings[layer],) = measure([("litert", bundle)], rounds=1, steps=3)
        (answers[layer],) = measure([("litert" + ANSWER, bundle)], rounds=1, steps=50)
    titles = ["replay layer", "ms/step", "% of images", "paper's %", "peak RSS", "bytes/latent"]
    rows = [[*titles, "ms/answer"]]
    for layer, timing in timings.items():
        share = "-"
        if "images" in timings:
            share = f"{100 * timing.median / timings['images'].median:.2f}"
        rows.append(
            [
                layer,
                f"{timing.median:.0f}" if timing.median >= 10 else f"{timing.median:.2f}",
                share,
                f"{computation[layer]:.3f}",
                timing.memory()[0],
                f"{latent_bytes[layer]:,}",
                f"{answers[layer].median:.1f}",
            ]
        )
    title = f"\nReplay layers, {NEW} + {BATCH - NEW} patterns, {describe_runtime('litert')}"
    return "\n".join((f"{title}; medians of 3 steps, 50 answers", *table(rows)))


@dataclass(frozen=True)
class Timing:
    """The measurements of one contestant: milliseconds (rounds, steps), and its final memory."""

    ms: np.ndarray[tuple[int, int], np.dtype[np.float64]]
    peak_mb: float
    file_mb: float

    @property
    def median(self) -> float:
        return float(np.median(self.ms))

    def ratio_to(self, other: Timing) -> float:
        """Return the median ratio over the rounds, which both contestants took part in."""
        return float(np.median(np.median(self.ms, axis=1) / np.median(other.ms, axis=1)))

    def cells(self) -> list[str]:
        low, high = np.percentile(self.ms, [25, 75])
        return [f"{self.median:.0f}", f"{low:.0f} .. {high:.0f}"]

    def memory(self) -> list[str]:
        return [f"{self.peak_mb:.0f} MB", f"{self.file_mb:.0f} MB"]


def measure(contestants: Sequence[tuple[str, Path]], *, rounds: int, steps: int) -> list[Timing]:
    """Let the contestants take turns, after one step each that is not counted."""
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(*contestant)) for contestant in contestants]
        for worker in workers:
            worker.steps(1)
        replies = [[worker.steps(steps) for worker in workers] for _ in range(rounds)]
    return [
        Timing(np.array([reply.ms for reply in own]), own[-1].peak_mb, own[-1].file_mb)
        for own in zip(*replies)
    ]


def bundle_of(weights: str, layer: str, batch: int, *, network: str = "mobilenet_v1") -> Path:
    """Return the bundle for a layer and a batch size."""
    name = layer.replace("/", "-") + (f"-{batch}" if batch != BATCH else "")
    words = ["--replay-layer", layer, "--weights", weights, "--alpha", "1.0"]
    if network != "mobilenet_v1":
        name, words = f"{network}-{name}", [*words, "--network", network]
    words += ["--batch-size", str(batch), "--new-per-batch", str(batch * NEW // BATCH)]
    return converted(f"steps/{name}", words)


def papers_computation() -> dict[str, float]:
    """Return the computation of each layer in percent of native rehearsal, as the paper counts."""
    found = json.loads(lrtflite(["layers", "--json"]))
    return {layer["name"]: layer["computation"] for layer in found["layers"]}


def table(rows: list[list[str]]) -> list[str]:
    """Return lines; the first column and `target` are aligned left, figures right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    left = [number == 0 or header == "target" for number, header in enumerate(rows[0])]
    return [
        "  ".join(
            cell.ljust(width) if to_left else cell.rjust(width)
            for cell, width, to_left in zip(row, widths, left)
        ).rstrip()
        for row in rows
    ]


def versions() -> str:
    torch = importlib.util.find_spec("torch") is not None
    names = ["lrtflite", "numpy", *(["torch"] if torch else [])]
    found = [f"{name} {importlib.metadata.version(name)}" for name in names]
    return ", ".join([f"Python {platform.python_version()}", *found])


if __name__ == "__main__":
    main()
