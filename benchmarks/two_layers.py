"""Two layers and crops of `lda`: accuracy with intervals, one by one, and their time.

Each network is extracted twice, with `--and` and with `--and --crops`. The latents of both layers
contain those of the last one, so they serve the rows with one layer too. Latents are kept in
`build/latents`. "teach crops" learns means of whole frames and their centres, and answers from
whole frames. Differences are those to the first row, with the 95 % interval of paired seeds; one by
one is the mean of six draws of twelve classes, from a world of its own (see closed_form.py).

    python benchmarks/two_layers.py photographs [--seeds 0 1 2] [--network mobilenet_v2]
    python benchmarks/two_layers.py shifted [--best --input-size 192]
    python benchmarks/two_layers.py times
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bundles import BUILD, WEIGHTS, converted
from closed_form import ONE_BY_ONE, PICTURES, POOLED, bundle_of, draws, learn
from intervals import shown
from numpy.typing import NDArray
from replay_layers import CASES, Case
from worlds import World, extract

from lrtflite import Bundle, Learner, LrtfliteError
from lrtflite.networks.architecture import NETWORKS
from lrtflite.runtime.model import describe_runtime, pick_runtime
from lrtflite.system.machine import this_machine
from lrtflite_converters.request.presets import BEST_SIZE

# Sessions that fill a state, rounds that are timed, and frames of a session.
FILLING, ROUNDS, FRAMES = 20, 30, 25
# Answers in a row. The fastest of all rounds counts, because other programs slow down the rest, and
# the first answer after a session waits for the memory that other learners have used.
ANSWERS = 4


@dataclass(frozen=True)
class Row:
    """One kind of bundle; `teaches_crops` differs between teaching and answering."""

    name: str
    second: bool
    crops: bool
    teaches_crops: bool = False


ROWS = (
    Row("one layer", second=False, crops=False),
    Row("two layers", second=True, crops=False),
    Row("one layer, crops", second=False, crops=True),
    Row("two layers, crops", second=True, crops=True),
    Row("one layer, teach crops", second=False, crops=False, teaches_crops=True),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=[*CASES, "times"])
    parser.add_argument("--network", choices=WEIGHTS, default="mobilenet_v1")
    parser.add_argument("--input-size", type=int, default=128)
    parser.add_argument("--best", action="store_true", help="the row of --preset best alone")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--validation", action="store_true", help="judge a quarter of the training")
    parser.add_argument("--runtime", default="auto")
    arguments = parser.parse_args()
    try:
        for line in (times if arguments.case == "times" else rows)(arguments):
            print(line, flush=True)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    print(f"{describe_runtime(pick_runtime(arguments.runtime))}, 1 thread, on {this_machine()}")


def bundle_with(case: Case, *, second: bool, crops: bool) -> Bundle:
    """Return a bundle at the last layer, with `--and`, `--crops`, both or neither."""
    last = NETWORKS[case.network].pooled
    if not second and not crops:
        return bundle_of(case, last, "lda")
    words = [*case.words(last), "--strategy", "lda"]
    words += ["--and", POOLED[case.network]] if second else []
    words += ["--crops"] if crops else []
    name = f"two-layers/{case.name(last)}{'-two' if second else ''}{'-crops' if crops else ''}"
    return Bundle.open(converted(name, words))


def latents(case: Case, *, crops: bool, seed: int, visits: int, runtime: str) -> World:
    """Return a world of latents of both layers, which is extracted only once."""
    bundle = bundle_with(case, second=True, crops=crops)
    kind = "photographs" if case.dataset.startswith("folder:") else case.dataset
    backbone = case.name("two") + ("-crops" if crops else "")
    file = BUILD / "latents" / f"{backbone}-{kind}-{seed}-{visits}.npz"
    if not file.exists():
        world = extract(bundle, case.dataset, seed=seed, visits=visits, runtime=runtime)
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(
            file,
            train=np.concatenate([found for found, _ in world.sessions]),
            labels=np.concatenate([np.array(labels) for _, labels in world.sessions]),
            sizes=np.array([len(labels) for _, labels in world.sessions]),
            test=world.test,
            test_labels=np.array(world.test_labels),
        )
    with np.load(file, allow_pickle=False) as kept:
        ends = np.cumsum(kept["sizes"])[:-1]
        train, labels = np.split(kept["train"], ends), np.split(kept["labels"], ends)
        sessions = [(found, slots.tolist()) for found, slots in zip(train, labels)]
        return World(sessions, kept["test"], kept["test_labels"].tolist())


def world_of(
    row: Row, case: Case, *, seed: int, visits: int, arguments: argparse.Namespace
) -> World:
    """Return what a row learns from, and is judged on."""
    features = None if row.second else bundle_of_one(case).manifest.latent_shape[0]

    def part(crops: bool) -> World:
        whole = latents(case, crops=crops, seed=seed, visits=visits, runtime=arguments.runtime)
        return whole.validation() if arguments.validation else whole

    taught, judged = part(row.crops or row.teaches_crops), part(row.crops)
    return World(
        [(found[:, :features], labels) for found, labels in taught.sessions],
        judged.test[:, :features],
        judged.test_labels,
    )


def bundle_of_one(case: Case) -> Bundle:
    return bundle_with(case, second=False, crops=False)


def rows(arguments: argparse.Namespace) -> Iterator[str]:
    case = CASES[arguments.case].of_network(arguments.network).of_size(arguments.input_size)
    seeds = arguments.seeds or case.seeds
    yield "| latents | accuracy by seed | mean | difference | confidence | one by one |"
    yield "| --- | --- | --- | --- | --- | --- |"
    first: list[float] = []
    for row in ROWS[3:4] if arguments.best else ROWS:
        bundle = bundle_with(case, second=row.second, crops=False)
        found, sure = [], []
        for seed in seeds:
            world = world_of(row, case, seed=seed, visits=2, arguments=arguments)
            right, confidence = learn(bundle, world, case.memory, seed, arguments)
            found.append(right)
            sure.append(confidence)
        first = first or found
        alone = ONE_BY_ONE[arguments.case]
        world = world_of(row, case, seed=alone, visits=1, arguments=arguments)
        single = np.mean(draws(bundle, world, PICTURES, arguments))
        values = " ".join(f"{value:.4f}" for value in found)
        difference = shown(found, first) if found is not first and len(found) > 1 else ""
        yield (
            f"| {row.name} | {values} | {np.mean(found):.4f} | {difference} | "
            f"{np.mean(sure):.3f} | {single:.4f} |"
        )


def times(arguments: argparse.Namespace) -> Iterator[str]:
    """Compare sessions of 25 frames and single frames, in turns, with one thread."""
    case = CASES["photographs"].of_network(arguments.network)
    bundles = {row.name: bundle_with(case, second=row.second, crops=row.crops) for row in ROWS[:4]}
    large = case.of_size(BEST_SIZE)
    bundles[f"two layers, crops, {BEST_SIZE} px"] = bundle_with(large, second=True, crops=True)
    rng = np.random.default_rng(0)
    sessions: dict[str, list[float]] = {name: [] for name in bundles}
    frames: dict[str, list[float]] = {name: [] for name in bundles}
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        learners = {
            name: Learner.open(
                bundle, Path(folder) / str(number), runtime=arguments.runtime, threads=1
            )
            for number, (name, bundle) in enumerate(bundles.items())
        }
        for number in range(FILLING + ROUNDS):
            centre = np.random.default_rng(number % FILLING).gamma(1.0, 0.8, 4096)
            for name, learner in learners.items():
                (length,) = learner.bundle.manifest.latent_shape
                noise = rng.gamma(2.0, 0.5, (FRAMES, length))
                given = np.clip(centre[:length] * noise, 0, 6).astype(np.float32)
                report = learner.learn_latents(given, slot=number % FILLING)
                sessions[name].append(report.ready_to_committed_ms)
                side = learner.bundle.manifest.input_size
                frame = rng.integers(0, 256, (1, side, side, 3)).astype(np.uint8)
                frames[name].append(min(_timed(learner, frame) for _ in range(ANSWERS)))
        for learner in learners.values():
            learner.close()
    yield "| latents | fastest frame, ms | relative | session, ms | relative |"
    yield "| --- | --- | --- | --- | --- |"
    for name in bundles:
        mine, base = (np.array(sessions[key][FILLING:]) for key in (name, ROWS[0].name))
        session = f"{np.median(mine):.1f} | {np.median(mine / base):.2f}"
        fastest = min(frames[name])
        yield f"| {name} | {fastest:.1f} | {fastest / min(frames[ROWS[0].name]):.2f} | {session} |"


def _timed(learner: Learner, frame: NDArray[np.uint8]) -> float:
    started = time.perf_counter()
    learner.predict(frame)
    return 1e3 * (time.perf_counter() - started)


if __name__ == "__main__":
    main()
