"""Recognition of classes that were taught after a bundle shipped, where they are hard to tell.

Each draw ships ten classes of photographs, drawn at random and taught in one session of all their
training photographs, as `lrtflite teach` does. Five more are then taught one by one, from 20
photographs each: those that `ncm` confuses most. They are chosen one after the other. A candidate's
confusion is the share of its training photographs that `ncm` at `pool6`, which knows the classes
taken so far and the candidate, answers wrongly; a photograph is left out of its own class mean. Of
equals, the one with the smallest mean margin is taken. Test photographs have no part in the choice.

Draws 0 to 4 are reported; draws 5 to 9 (`--validation`) are for choosing rates and feeding. Latents
are extracted once and kept in the folder for temporary files, so a draw takes seconds.

    python benchmarks/later_classes.py [--strategies cwr lda] [--layer conv5_6/dw] [--validation]
    python benchmarks/later_classes.py --validation --rate extra_steps=0
    python benchmarks/later_classes.py --size 224 [--choosing-size 128]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bundles import IMAGENET, LARGE_PHOTOGRAPHS, PHOTOGRAPHS, converted, say
from numpy.typing import NDArray

from lrtflite import Bundle, Learner, LrtfliteError
from lrtflite.data import Clip, open_source
from lrtflite.runtime.model import describe_runtime, pick_runtime
from lrtflite.system.machine import this_machine
from lrtflite_cli.options.rates import chosen_rates

SHIPPED, LATER, PICTURES = 10, 5, 20
REPORTED, VALIDATION = range(0, 5), range(5, 10)
# Layer at which `ncm` chooses the classes, whichever layer is replayed.
CHOOSING = "pool6"
# Side of the frames; larger ones are resized from the photographs at 224.
SIZE = 128
TITLES = (
    "draw, the ten shipped, the ten after five more, the five, worst of the five, steps, "
    "session (ms)"
)
Latents = NDArray[Any]


@dataclass(frozen=True)
class Photographs:
    """The latents of every training and test photograph, and their classes."""

    train: Latents
    train_labels: NDArray[np.int64]
    test: Latents
    test_labels: NDArray[np.int64]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--strategies", nargs="+", default=["cwr", "lda"])
    parser.add_argument("--layer", default=CHOOSING)
    parser.add_argument("--pooled", action="store_true", help="average the layer over all pixels")
    parser.add_argument("--size", type=int, default=SIZE, help="side of the frames")
    parser.add_argument("--choosing-size", type=int, help="size at which `ncm` chooses [--size]")
    parser.add_argument("--draws", type=int, nargs="+", help=f"[{REPORTED[0]} to {REPORTED[-1]}]")
    parser.add_argument("--validation", action="store_true", help="draws for choosing")
    parser.add_argument("--rate", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()
    draws = arguments.draws or (VALIDATION if arguments.validation else REPORTED)
    try:
        rates = chosen_rates({"epochs": None, "lr": None, "rate": arguments.rate})
        choosing = photographs(
            bundle_of(CHOOSING, "cwr", arguments.choosing_size or arguments.size)
        )
        for strategy in arguments.strategies:
            bundle = bundle_of(arguments.layer, strategy, arguments.size, pooled=arguments.pooled)
            pooled = ", pooled" if arguments.pooled else ""
            print(f"\n{strategy} above {arguments.layer}{pooled}, {arguments.size} px\n")
            print(f"| {TITLES.replace(',', ' |')} |")
            print(f"|{' --- |' * len(TITLES.split(','))}")
            rows = []
            for draw in draws:
                rows.append(run(bundle, draw, chosen(choosing, draw), rates))
                print(f"| {draw} | {cells(rows[-1])} |", flush=True)
            print(f"| mean | {cells(np.mean(rows, axis=0).tolist())} |")
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    print(f"\n{describe_runtime(pick_runtime('auto'))}, {this_machine()}")


def cells(row: Sequence[float]) -> str:
    *shares, steps, milliseconds = row
    return " | ".join(
        [*(f"{share:.3f}" for share in shares), f"{steps:.0f}", f"{milliseconds:.0f}"]
    )


def bundle_of(layer: str, strategy: str, size: int, *, pooled: bool = False) -> Bundle:
    words = ["--replay-layer", layer, "--strategy", strategy, "--weights", str(IMAGENET)]
    words += ["--input-size", str(size), *(["--pooled"] if pooled else [])]
    name = f"later/{layer.replace('/', '-')}{'-pooled' if pooled else ''}-{strategy}-{size}"
    return Bundle.open(converted(name, words))


def photographs(bundle: Bundle) -> Photographs:
    """Return the latents of all photographs; they are kept for the next run."""
    digest = bundle.manifest.files["features.tflite"].sha256[:16]
    kept = Path(tempfile.gettempdir()) / f"lrtflite-photographs-{digest}.npz"
    if not kept.exists():
        say(f"Extracting latents into {kept}, which may take minutes")
        size = bundle.manifest.input_size
        folder = PHOTOGRAPHS if size == SIZE else LARGE_PHOTOGRAPHS
        source = open_source(f"folder:{folder}", size=size)
        with Learner.open(bundle) as learner:
            train = extracted(learner, source.train_clips())
            test = extracted(learner, source.test_clips())
        part = kept.with_suffix(".part.npz")
        np.savez(part, train=train[0], train_labels=train[1], test=test[0], test_labels=test[1])
        part.replace(kept)
    with np.load(kept, allow_pickle=False) as arrays:
        return Photographs(**{name: arrays[name] for name in arrays.files})


def extracted(learner: Learner, clips: Sequence[Clip]) -> tuple[Latents, NDArray[np.int64]]:
    latents = [learner.extract(np.stack(list(clip.read()))) for clip in clips]
    labels = [clip.label for clip in clips for _ in range(clip.length)]
    return np.concatenate(latents), np.array(labels, np.int64)


def chosen(found: Photographs, draw: int) -> tuple[list[int], list[int]]:
    """Return the classes that ship, and the later ones that `ncm` confuses most."""
    units = directions(np.sqrt(found.train))
    labels = found.train_labels
    count = int(labels.max()) + 1
    sums = np.stack([units[labels == label].sum(axis=0) for label in range(count)])
    others = units @ directions(sums).T
    # A photograph is left out of the mean of its own class.
    own = (units * directions(sums[labels] - units)).sum(axis=1)
    shipped = np.random.default_rng(draw).permutation(count)[:SHIPPED].tolist()
    later: list[int] = []
    while len(later) < LATER:
        taken = [*shipped, *later]

        def ease(label: int, taken: list[int] = taken) -> tuple[float, float]:
            mine = labels == label
            margins = own[mine] - others[mine][:, taken].max(axis=1)
            return float((margins > 0).mean()), float(margins.mean())

        later.append(min(set(range(count)) - set(taken), key=ease))
    return shipped, later


def directions(vectors: Latents) -> Latents:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def run(
    bundle: Bundle, draw: int, classes: tuple[list[int], list[int]], rates: dict[str, float]
) -> list[float]:
    """Return the figures of a row, in the order of TITLES."""
    found, (shipped, later) = photographs(bundle), classes
    with Learner.open(bundle, seed=draw) as learner:
        training = learner.training.with_options(**rates)
        old = np.isin(found.train_labels, shipped)
        learner.learn_latents(
            found.train[old], slot=found.train_labels[old].tolist(), training=training
        )
        before = np.mean(right(learner, found, shipped))
        reports = [
            learner.learn_latents(
                found.train[found.train_labels == label][:PICTURES], slot=label, training=training
            )
            for label in later
        ]
        by_class = [np.mean(right(learner, found, [label])) for label in later]
        after = (np.mean(right(learner, found, group)) for group in (shipped, later))
        steps = np.mean([report.steps for report in reports])
        took = np.median([report.ready_to_committed_ms for report in reports])
        return [float(x) for x in (before, *after, min(by_class), steps, took)]


def right(learner: Learner, found: Photographs, classes: list[int]) -> NDArray[np.bool_]:
    """Return whether each test photograph of some classes is recognised."""
    rows = np.isin(found.test_labels, classes)
    answers = learner.probabilities(found.test[rows]).argmax(axis=1)
    return np.asarray(answers == found.test_labels[rows])


if __name__ == "__main__":
    main()
