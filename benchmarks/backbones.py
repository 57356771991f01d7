"""Three networks at four sizes of frames, as float and as int8, with `lda` at the last layer.

- photographs: fifty classes of Caltech photographs (three seeds);
- halves: half of the photographs of each class taught, the other half asked (three draws);
- few: twelve classes of three, six and twenty frames (six draws);
- unknown: twelve classes taught, the other 38 unknown: area under the ROC curve of familiarity;
- drawn: fifty drawn classes (one seed).

The sums of `lda` do not depend on the order, so a stream is taught in one session, which takes a
hundredth of the time. Accuracy is that of the held-out frames. Int8 features are calibrated on 200
training photographs. The photographs are 224 pixels wide; smaller frames are their averages.

    python benchmarks/backbones.py [--networks ...] [--sizes 128 224] [--modes int8] [--drawn]
    python benchmarks/backbones.py --times     # milliseconds a frame, the bundles in turns
    python benchmarks/backbones.py --deep      # EfficientNet-Lite0 above its blocks, 20 classes
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bundles import BUILD, SHARED, WEIGHTS, lrtflite, say
from numpy.typing import NDArray
from unknown import area
from worlds import World

from lrtflite import Bundle, Learner, LrtfliteError
from lrtflite.bundle.bundle import MANIFEST_FILE
from lrtflite.data import StreamOptions, nic_stream, open_source
from lrtflite.runtime.model import describe_runtime, pick_runtime
from lrtflite.system.machine import this_machine
from lrtflite.workbench.metrics import accuracy

NETWORKS = ("mobilenet_v1", "mobilenet_v2", "efficientnet_lite0")
SIZES, MODES = (128, 160, 192, 224), ("float", "int8")
PHOTOGRAPHS = f"folder:{SHARED}/data/caltech50_224"
SEEDS, DRAWN_SEED = (0, 1, 2), 2000
DRAWS, CLASSES, PICTURES = 6, 12, (3, 6, 20)
# Rounds of the bundles in turns, and frames of each round.
ROUNDS, FRAMES = 15, 10
# Layers and strategies that are compared above the blocks of EfficientNet-Lite0; their frames,
# replay memory and classes.
DEEP = (
    ("pool", "lda"),
    ("pool", "cwr"),
    ("block_15", "lda"),
    ("block_14", "lda"),
    ("block_10", "lda"),
)
DEEP_SIZE, DEEP_MEMORY, DEEP_CLASSES = 160, 300, 20


@dataclass(frozen=True)
class Backbone:
    network: str
    size: int
    mode: str

    def bundle(self) -> Bundle:
        """Return the bundle; convert it unless that was done before."""
        out = BUILD / f"backbones/{_file(self)}"
        if not (out / MANIFEST_FILE).exists():
            say(f"Converting {out.name}")
            words = ["--network", self.network, "--input-size", str(self.size)]
            words += ["--weights", str(WEIGHTS.get(self.network, "imagenet"))]
            words += ["--quantize", "int8", "--calibrate", PHOTOGRAPHS] * (self.mode == "int8")
            lrtflite(
                ["convert", *words, "--strategy", "lda", "--classes", "100", "--out", str(out)]
            )
        return Bundle.open(out)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--drawn", action="store_true", help="drawn videos only")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--runtime", default="auto")
    arguments = parser.parse_args()
    backbones = [
        Backbone(network, size, mode)
        for size in arguments.sizes
        for network in arguments.networks
        for mode in arguments.modes
    ]
    chosen = {times: arguments.times, drawn: arguments.drawn, deep: arguments.deep}
    table = next((each for each, wanted in chosen.items() if wanted), photographs)
    try:
        for line in table(backbones, arguments.runtime):
            print(line, flush=True)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    print(f"{describe_runtime(pick_runtime(arguments.runtime))}, 1 thread, on {this_machine()}")


def photographs(backbones: Sequence[Backbone], runtime: str) -> Iterator[str]:
    few = " | ".join(f"{count} frames" for count in PICTURES)
    yield f"| network, size | by seed | mean | halves | {few} | unknown | features, MB | RAM, MB |"
    yield f"| --- |{' --- |' * (len(PICTURES) + 6)}"
    for backbone in backbones:
        bundle, known = backbone.bundle(), Extracted.at(BUILD / f"backbones/{_file(backbone)}.npz")
        found = []
        for seed in SEEDS:
            world = known.world(bundle, PHOTOGRAPHS, seed, visits=2, runtime=runtime)
            found.append(learn(bundle, world, runtime))
        world = known.world(bundle, PHOTOGRAPHS, 0, visits=1, runtime=runtime)
        known.save()
        parted = [learn(bundle, halves(world, seed), runtime) for seed in SEEDS]
        draws = [taught(bundle, world, count, runtime) for count in PICTURES]
        cells = [" ".join(f"{value:.3f}" for value in found), f"{np.mean(found):.3f}"]
        cells += [f"{np.mean(parted):.3f}"]
        cells += [f"{right:.3f}" for right, _ in draws] + [f"{draws[-1][1]:.3f}"]
        costs, features = bundle.manifest.measured, bundle.manifest.files["features.tflite"]
        cells += [f"{features.bytes / 1e6:.1f}", "" if costs is None else f"{costs.ram_mb:.0f}"]
        yield f"| {_name(backbone)} | {' | '.join(cells)} |"


def drawn(backbones: Sequence[Backbone], runtime: str) -> Iterator[str]:
    yield "| network, size | drawn |\n| --- | --- |"
    for backbone in backbones:
        bundle = backbone.bundle()
        world = Extracted({}, None).world(
            bundle, "synthetic", DRAWN_SEED, visits=2, runtime=runtime
        )
        yield f"| {_name(backbone)} | {learn(bundle, world, runtime):.3f} |"


def deep(backbones: Sequence[Backbone], runtime: str) -> Iterator[str]:
    """Compare layers of EfficientNet-Lite0 on 20 classes: ten first, then one a session."""
    yield "| layer, strategy | by seed | mean | session, s: median | latent, bytes |"
    yield "| --- | --- | --- | --- | --- |"
    classes = sorted(path.name for path in Path(PHOTOGRAPHS.partition(":")[2]).iterdir())
    dataset = f"{PHOTOGRAPHS}?classes={','.join(classes[:DEEP_CLASSES])}"
    for layer, strategy in DEEP:
        out = BUILD / f"backbones/deep-{layer}-{strategy}"
        if not (out / MANIFEST_FILE).exists():
            words = ["--network", "efficientnet_lite0", "--input-size", str(DEEP_SIZE)]
            words += ["--replay-layer", layer, "--strategy", strategy]
            words += ["--replay-size", str(DEEP_MEMORY), "--out", str(out)]
            lrtflite(["convert", *words])
        bundle, found, took, known = Bundle.open(out), [], [], Extracted({}, None)
        for seed in SEEDS:
            world = known.world(bundle, dataset, seed, visits=1, runtime=runtime)
            with Learner.open(bundle, runtime=runtime, threads=1, seed=seed) as learner:
                for latents, labels in world.sessions:
                    report = learner.learn_latents(latents, slot=labels)
                    took.append(report.ready_to_committed_ms / 1000)
                answers = learner.probabilities(world.test).argmax(axis=1)
            found.append(accuracy(answers, world.test_labels))
        cells = [" ".join(f"{right:.3f}" for right in found), f"{np.mean(found):.3f}"]
        cells += [f"{np.median(took):.1f}", f"{bundle.manifest.latent_bytes:,}"]
        yield f"| `{layer}`, `{strategy}` | {' | '.join(cells)} |"


def times(backbones: Sequence[Backbone], runtime: str) -> Iterator[str]:
    """Compare milliseconds a frame; the bundles take turns, so that they share the noise."""
    learners = [
        Learner.open(backbone.bundle(), runtime=runtime, threads=1) for backbone in backbones
    ]
    rng, took = np.random.default_rng(0), np.empty((ROUNDS, len(learners)))
    for turn in range(-1, ROUNDS):  # the first one warms up
        for place, learner in enumerate(learners):
            size = learner.bundle.manifest.input_size
            frames = rng.integers(0, 256, (FRAMES, size, size, 3)).astype(np.uint8)
            start = time.perf_counter()
            learner.extract(frames)
            took[max(turn, 0), place] = 1000 * (time.perf_counter() - start) / FRAMES
    yield "| network, size | ms a frame: median, p95 | relative to the first, median of pairs |"
    yield "| --- | --- | --- |"
    for backbone, mine in zip(backbones, took.T):
        middle, high = np.median(mine), np.percentile(mine, 95)
        ratio = np.median(mine / took[:, 0])
        yield f"| {_name(backbone)} | {middle:.1f}, {high:.1f} | {ratio:.2f} |"


@dataclass(frozen=True)
class Extracted:
    """Latents by the SHA-256 of their frames: streams of several seeds have the same frames."""

    latents: dict[bytes, NDArray[np.generic]]
    path: Path | None

    @classmethod
    def at(cls, path: Path) -> Extracted:
        """Return the latents that an earlier run saved, if any."""
        if not path.exists():
            return cls({}, path)
        with np.load(path, allow_pickle=False) as found:
            return cls(dict(zip(map(bytes, found["keys"]), found["latents"])), path)

    def save(self) -> None:
        assert self.path is not None
        keys = np.array([np.frombuffer(key, np.uint8) for key in self.latents])
        np.savez(self.path, keys=keys, latents=np.stack(list(self.latents.values())))

    def world(self, bundle: Bundle, dataset: str, seed: int, *, visits: int, runtime: str) -> World:
        source = open_source(dataset, size=bundle.manifest.input_size, seed=seed)
        stream = nic_stream(source, StreamOptions(visits=visits, seed=seed))
        with Learner.open(bundle, runtime=runtime, threads=1) as learner:

            def extract(frames: Iterator[NDArray[np.uint8]]) -> NDArray[np.generic]:
                rows = []
                for frame in frames:
                    key = hashlib.sha256(frame.tobytes()).digest()
                    if key not in self.latents:
                        self.latents[key] = learner.extract(frame[np.newaxis])[0]
                    rows.append(self.latents[key])
                return np.stack(rows)

            test = source.test_clips()
            return World(
                sessions=[(extract(iter(batch.frames())), list(batch.labels)) for batch in stream],
                test=np.concatenate([extract(iter(clip.read())) for clip in test]),
                test_labels=[clip.label for clip in test for _ in range(clip.length)],
            )


def halves(world: World, seed: int) -> World:
    """Return another split of all frames: half of each class is taught, the other half asked."""
    latents = np.concatenate([*(latents for latents, _ in world.sessions), world.test])
    taught = [slot for _, slots in world.sessions for slot in slots]
    slots = np.array([*taught, *world.test_labels])
    rng, chosen = np.random.default_rng(seed), np.zeros(len(slots), bool)
    for slot in np.unique(slots):
        rows = rng.permutation(np.flatnonzero(slots == slot))
        chosen[rows[: (len(rows) + 1) // 2]] = True
    session = latents[chosen], slots[chosen].tolist()
    return World([session], latents[~chosen], slots[~chosen].tolist())


def learn(bundle: Bundle, world: World, runtime: str) -> float:
    """Return the accuracy after the last session."""
    with Learner.open(bundle, runtime=runtime, threads=1) as learner:
        latents = np.concatenate([latents for latents, _ in world.sessions])
        learner.learn_latents(latents, slot=[slot for _, slots in world.sessions for slot in slots])
        answers = learner.probabilities(world.test).argmax(axis=1)
    return accuracy(answers, world.test_labels)


def taught(bundle: Bundle, world: World, pictures: int, runtime: str) -> tuple[float, float]:
    """Return the accuracy of draws of classes, and the area under the ROC curve of familiarity."""
    train = np.concatenate([latents for latents, _ in world.sessions])
    slots = np.concatenate([labels for _, labels in world.sessions])
    truth, found = np.array(world.test_labels), []
    for draw in range(DRAWS):
        chosen = np.random.default_rng(draw).permutation(len(np.unique(truth)))[:CLASSES]
        with Learner.open(bundle, runtime=runtime, threads=1) as learner:
            rows = np.concatenate([np.flatnonzero(slots == slot)[:pictures] for slot in chosen])
            learner.learn_latents(train[rows], slot=slots[rows].tolist())
            answers = learner.answers(world.test)
        known = np.isin(truth, chosen)
        hits = (answers.probabilities.argmax(axis=1) == truth)[known]
        assert answers.familiarity is not None
        found.append((hits.mean(), area(answers.familiarity[known], answers.familiarity[~known])))
    right, apart = np.mean(found, axis=0)
    return float(right), float(apart)


def _file(backbone: Backbone) -> str:
    return f"{backbone.network}-{backbone.size}-{backbone.mode}"


def _name(backbone: Backbone) -> str:
    return f"`{backbone.network}`, {backbone.size}, {backbone.mode}"


if __name__ == "__main__":
    main()
