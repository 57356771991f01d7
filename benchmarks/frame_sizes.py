"""Accuracy and cost of each size of a frame: MobileNetV1 with ImageNet weights, `pool6`.

- photographs: fifty classes at 224 x 224 (`../shared`), resized to each size as a camera's pictures
  are. Ten seeds of the stream of `lrtflite simulate` (ten classes first, then one class in each of
  90 sessions), one by one (twelve classes of 20 photographs, a session each, from nothing), and
  twelve classes of 3, 6 and 12. Each photograph's latent is extracted once per size.
- drawn: the drawn videos, drawn at each size; streams, and one by one.
- costs: milliseconds per frame with one thread and with two, the sizes in turns; the peak RAM of a
  learner in a process of its own, as `convert` measures it; bytes.

With --validation, streams test on a quarter of the training photographs, few photographs use other
draws of classes on that split, and drawn videos are other worlds: these are for choosing.
Differences are paired by seed, from the first size, with 95 % intervals.

    python benchmarks/frame_sizes.py photographs|drawn [--strategies lda cwr] [--validation]
    python benchmarks/frame_sizes.py costs
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import numpy as np
from bundles import IMAGENET, LARGE_PHOTOGRAPHS, converted, say
from closed_form import PICTURES, VALIDATION, draws, learn
from intervals import shown
from worlds import Latents, World, extract

from lrtflite import Bundle, Learner, LrtfliteError
from lrtflite.data import Clip, FrameSource, StreamOptions, nic_stream, open_source
from lrtflite.runtime.model import describe_runtime, pick_runtime
from lrtflite.system.machine import this_machine

# The paper's size is the base of all differences, so it comes first.
SIZES = (128, 96, 160, 192, 224)
# Seeds of the streams, memory of `cwr` there, and worlds for testing and for choosing.
SEEDS, MEMORY = range(10), {"photographs": 1000, "drawn": 1500}
WORLDS, VALIDATION_WORLDS = (2000, 2001, 2002), (1000, 1001)
# Photographs of a class, where there are few.
FEW = (3, 6, 12)
# Frames timed at each size; on a busy machine only the fastest says something.
ROUNDS = 400


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=["photographs", "drawn", "costs"])
    parser.add_argument("--strategies", nargs="+", default=["lda", "cwr"])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--validation", action="store_true", help="streams for choosing")
    parser.add_argument("--runtime", default="auto")
    arguments = parser.parse_args()
    try:
        table = {"photographs": photographs, "drawn": drawn, "costs": costs}[arguments.case]
        for line in table(arguments):
            print(line, flush=True)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    print(f"\n{describe_runtime(pick_runtime(arguments.runtime))}, 1 thread, on {this_machine()}")


def bundle_of(size: int, strategy: str) -> Bundle:
    words = ["--replay-layer", "pool6", "--weights", str(IMAGENET), "--strategy", strategy]
    words += ["--input-size", str(size)]
    return Bundle.open(converted(f"sizes/{size}-{strategy}", words))


def photographs(arguments: argparse.Namespace) -> Iterator[str]:
    titles = ["streams", "difference", "one by one", "difference"]
    yield from heading([*titles, *(f"{count} photographs" for count in FEW)])
    seeds = arguments.seeds or SEEDS
    first = VALIDATION if arguments.validation else 0
    found: dict[tuple[int, str], list[list[float]]] = {}
    for size in arguments.sizes:
        worlds = photograph_worlds(size, seeds)
        if arguments.validation:
            worlds = [world.validation() for world in worlds]
        for strategy in arguments.strategies:
            bundle = bundle_of(size, strategy)
            streams = [
                learn(bundle, world, MEMORY["photographs"], seed, arguments)[0]
                for seed, world in zip(seeds, worlds)
            ]
            few = [
                draws(bundle, worlds[0], count, arguments, first=first)
                for count in (PICTURES, *FEW)
            ]
            found[size, strategy] = [streams, *few]
            say(f"{size} {strategy}: {[float(np.mean(each)) for each in found[size, strategy]]}")
    for strategy in arguments.strategies:
        for size in arguments.sizes:
            mine, base = found[size, strategy], found[arguments.sizes[0], strategy]
            cells = [*compared(mine[0], base[0]), *compared(mine[1], base[1])]
            yield row(size, strategy, [*cells, *(f"{np.mean(each):.3f}" for each in mine[2:])])


def drawn(arguments: argparse.Namespace) -> Iterator[str]:
    yield from heading(["streams, by seed", "mean", "one by one, by seed", "mean"])
    seeds = arguments.seeds or (VALIDATION_WORLDS if arguments.validation else WORLDS)
    for size in arguments.sizes:
        worlds = [
            extract(
                bundle_of(size, "lda"), "synthetic", seed=seed, visits=2, runtime=arguments.runtime
            )
            for seed in seeds
        ]
        for strategy in arguments.strategies:
            bundle = bundle_of(size, strategy)
            streams = [
                learn(bundle, world, MEMORY["drawn"], seed, arguments)[0]
                for seed, world in zip(seeds, worlds)
            ]
            single = [float(np.mean(draws(bundle, world, PICTURES, arguments))) for world in worlds]
            yield row(size, strategy, [*listed(streams), *listed(single)])


def heading(titles: Sequence[str]) -> Iterator[str]:
    yield f"| size, strategy | {' | '.join(titles)} |"
    yield f"|{' --- |' * (len(titles) + 1)}"


def row(size: int, strategy: str, cells: Sequence[str]) -> str:
    return f"| {size}, `{strategy}` | {' | '.join(cells)} |"


def listed(values: Sequence[float]) -> list[str]:
    return [" ".join(f"{value:.3f}" for value in values), f"{np.mean(values):.3f}"]


def compared(values: Sequence[float], base: Sequence[float]) -> list[str]:
    return [f"{np.mean(values):.3f}", "" if values is base else shown(values, base)]


def photograph_worlds(size: int, seeds: Sequence[int]) -> list[World]:
    """Return the world of each seed; every photograph passes through the features once."""
    if not LARGE_PHOTOGRAPHS.exists():
        raise LrtfliteError(
            f"Expected {LARGE_PHOTOGRAPHS}, which is missing", "set LRTFLITE_SHARED"
        )
    latents: dict[str, Latents] = {}
    with Learner.open(bundle_of(size, "lda")) as learner:

        def of(clips: Sequence[Clip]) -> Latents:
            for clip in clips:
                if clip.name not in latents:
                    latents[clip.name] = learner.extract(np.stack(list(clip.read())))
            return np.concatenate([latents[clip.name] for clip in clips])

        return [world_of(open_large(size, seed), seed, of) for seed in seeds]


def open_large(size: int, seed: int) -> FrameSource:
    return open_source(f"folder:{LARGE_PHOTOGRAPHS}", size=size, seed=seed)


def world_of(source: FrameSource, seed: int, of: Callable[[Sequence[Clip]], Latents]) -> World:
    batches = nic_stream(source, StreamOptions(visits=2, seed=seed))
    test = source.test_clips()
    return World(
        sessions=[(of([clip for clip, _ in batch.parts]), list(batch.labels)) for batch in batches],
        test=of(test),
        test_labels=[clip.label for clip in test],
    )


def costs(arguments: argparse.Namespace) -> Iterator[str]:
    titles = ["ms per frame, 1 thread: fastest, p50, p95", "2 threads: fastest, p50, p95"]
    yield from heading(
        [*titles, "RAM (MB)", "features (MB)", "bytes per frame", "bytes per latent"]
    )
    strategy = arguments.strategies[0]
    bundles = {size: bundle_of(size, strategy) for size in arguments.sizes}
    timed = [times(bundles, threads) for threads in (1, 2)]
    for size, bundle in bundles.items():
        quantiles = (np.percentile(found[size], (0, 50, 95)) for found in timed)
        cells = [", ".join(f"{value:.2f}" for value in of_size) for of_size in quantiles]
        cells += [f"{ram(bundle):.0f}", f"{bundle.features.path.stat().st_size / 1e6:.2f}"]
        latent = bundle.manifest.latent_bytes
        yield row(size, strategy, [*cells, f"{3 * size * size:,}", f"{latent:,}"])


def times(bundles: dict[int, Bundle], threads: int) -> dict[int, list[float]]:
    """Return the milliseconds of single frames, the bundles in turns."""
    rng = np.random.default_rng(0)
    found: dict[int, list[float]] = {size: [] for size in bundles}
    with ExitStack() as stack:
        learners = {
            size: stack.enter_context(Learner.open(bundle, threads=threads))
            for size, bundle in bundles.items()
        }
        for _ in range(ROUNDS + 1):
            for size, learner in learners.items():
                frame = rng.integers(0, 256, (size, size, 3), np.uint8)
                started = time.perf_counter()
                learner.extract(frame)
                found[size].append(1e3 * (time.perf_counter() - started))
    # The first frame allocates.
    return {size: values[1:] for size, values in found.items()}


def ram(bundle: Bundle) -> float:
    """Return the peak RAM of a learner with a full memory, in 10^6 bytes."""
    words = [sys.executable, "-m", "lrtflite.workbench.measuring", str(bundle.path), pick_runtime()]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1])["ram_mb"])


if __name__ == "__main__":
    main()
