"""Detection of unknown classes by familiarity, by the cosine and by probability.

Twelve classes drawn at random are taught one by one, all their training frames each; their test
frames are known, those of all other classes unknown. For each judge the table has the area under
the ROC curve, and the share of unknowns let in where 95 % of the knowns pass. "below 0.46", the
default threshold, has the share of the known and of the unknown frames, and with `--taught` that of
the taught ones, a tenth of them left out at a time, which takes ten times as long.

    python benchmarks/unknown.py [--draws 6] [--drawn 2000] [--photographs 0] [--demo 2000]
    python benchmarks/unknown.py --heads lda --drawn 2000 2001 2002 --photographs 0 1 2 --demo
    python benchmarks/unknown.py --validation --drawn 1000 1001 --photographs 0 --demo 1000 1001

`--validation` judges photographs by a part of the training ones, on which constants are chosen.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from bundles import IMAGENET, PHOTOGRAPHS, converted, say
from numpy.typing import NDArray
from worlds import World, extract

from lrtflite import Bundle, Learner, LrtfliteError
from lrtflite.answers.prediction import Answers
from lrtflite.runtime.model import describe_runtime
from lrtflite.system.machine import this_machine
from lrtflite_converters.request.defaults import UNKNOWN

HEADS = ("lda", "cwr", "ncm")
JUDGES = ("familiarity", "cosine", "probability")
KNOWN_CLASSES = 12
PASSING = 0.95
# Parts of the taught frames that are left out in turn.
FOLDS = 10
RUNTIME = "litert"
Values = NDArray[np.floating]


@dataclass(frozen=True)
class Patterns:
    latents: NDArray[np.float32]
    labels: NDArray[np.intp]

    def where(self, chosen: NDArray[np.bool_]) -> Patterns:
        return Patterns(self.latents[chosen], self.labels[chosen])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--heads", nargs="+", choices=HEADS, default=HEADS[:2])
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--drawn", type=int, nargs="*", default=[2000], help="seeds of worlds")
    parser.add_argument("--photographs", type=int, nargs="*", default=[0], help="seeds")
    parser.add_argument("--demo", type=int, nargs="*", default=[2000], help="seeds, demo weights")
    parser.add_argument("--validation", action="store_true")
    parser.add_argument("--taught", action="store_true", help="judge taught frames, left out, too")
    arguments = parser.parse_args()
    try:
        run(arguments)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")


def run(arguments: argparse.Namespace) -> None:
    judged = [f"{judge}: area, let in" for judge in JUDGES]
    below = [f"{who} below {UNKNOWN}" for who in whose(arguments)]
    columns = ["world", "head", "accuracy of known", *judged, *below]
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    imagenet = ["--weights", str(IMAGENET), "--alpha", "1.0"]
    kinds = {
        "drawn": (imagenet, "synthetic", arguments.drawn),
        "photographs": (imagenet, f"folder:{PHOTOGRAPHS}", arguments.photographs),
        "drawn, demo weights": ([], "synthetic", arguments.demo),
    }
    for kind, (words, dataset, seeds) in kinds.items():
        name = "imagenet" if words else "demo"
        bundles = {
            head: Bundle.open(converted(f"unknown-{name}-{head}", [*words, "--strategy", head]))
            for head in arguments.heads
            if seeds
        }
        for seed in seeds:
            say(f"Extracting {kind} {seed}")
            first = next(iter(bundles.values()))
            world = extract(first, dataset, seed=seed, visits=2, runtime=RUNTIME)
            if arguments.validation and kind == "photographs":
                world = world.validation()
            for head, bundle in bundles.items():
                draws = judge_draws(bundle, world, arguments.draws, taught=arguments.taught)
                found = np.mean(list(draws), axis=0)
                print(f"| {kind} {seed} | {head} | {_cells(found)} |", flush=True)
    print(
        f"\n{arguments.draws} draws of {KNOWN_CLASSES} classes; {describe_runtime(RUNTIME)}, "
        f"on {this_machine()}"
    )


def whose(arguments: argparse.Namespace) -> list[str]:
    return [*(["taught"] if arguments.taught else []), "known", "unknown"]


def judge_draws(bundle: Bundle, world: World, draws: int, *, taught: bool) -> Iterator[list[float]]:
    """Yield the figures of each draw, in the order of the table."""
    training = Patterns(
        np.concatenate([latents for latents, _ in world.sessions]),
        np.concatenate([np.array(labels) for _, labels in world.sessions]),
    )
    test = Patterns(world.test, np.array(world.test_labels))
    for draw in range(draws):
        shuffled = np.random.default_rng(draw).permutation(bundle.manifest.slots)
        chosen = shuffled[:KNOWN_CLASSES]
        lessons = training.where(np.isin(training.labels, chosen))
        known = np.isin(test.labels, chosen)
        answers = answers_of(bundle, lessons, test)
        slots = answers.probabilities.argmax(axis=1)
        figures = [float(np.mean(slots[known] == test.labels[known]))]
        familiarity = _familiarity(answers)
        judges = (familiarity, cosines(lessons, test, slots), answers.probabilities.max(axis=1))
        for values in judges:
            figures += [area(values[known], values[~known]), let_in(values[known], values[~known])]
        shares = [left_out(bundle, lessons)] if taught else []
        shares += [familiarity[known], familiarity[~known]]
        yield figures + [float(np.mean(values < UNKNOWN)) for values in shares]


def answers_of(bundle: Bundle, lessons: Patterns, asked: Patterns) -> Answers:
    """Teach each class in a session of its own, then answer."""
    with Learner.open(bundle, runtime=RUNTIME) as learner:
        for label in np.unique(lessons.labels):
            learner.learn_latents(lessons.latents[lessons.labels == label], slot=int(label))
        return learner.answers(asked.latents)


def left_out(bundle: Bundle, lessons: Patterns) -> Values:
    """(n,): the familiarity of each taught pattern to a learner that was taught the others."""
    found = np.empty(len(lessons.labels))
    for fold in range(FOLDS):
        out = np.arange(len(found)) % FOLDS == fold
        answers = answers_of(bundle, lessons.where(~out), lessons.where(out))
        found[out] = _familiarity(answers)
    return found


def cosines(lessons: Patterns, asked: Patterns, slots: NDArray[np.intp]) -> Values:
    """(n,): the cosine of each pattern with the mean of the class that it was answered as."""
    taught, z = unit_roots(lessons.latents), unit_roots(asked.latents)
    found = np.empty(len(z))
    for slot in np.unique(slots):
        total = taught[lessons.labels == slot].sum(axis=0)
        found[slots == slot] = z[slots == slot] @ total / np.linalg.norm(total)
    return found


def unit_roots(latents: NDArray[np.float32]) -> Values:
    roots = np.sqrt(np.maximum(latents, 0)).astype(np.float64)
    return np.asarray(roots / np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), 1e-12))


def area(known: Values, unknown: Values) -> float:
    """Return the chance that a known value is above an unknown one; ties count half."""
    ordered = np.sort(unknown)
    below = np.searchsorted(ordered, known, "left") + np.searchsorted(ordered, known, "right")
    return float(below.mean() / 2 / len(unknown))


def let_in(known: Values, unknown: Values) -> float:
    """Return the share of unknowns that pass where PASSING of the knowns do."""
    return float(np.mean(unknown >= np.quantile(known, 1 - PASSING)))


def _familiarity(answers: Answers) -> Values:
    if answers.familiarity is None:
        raise LrtfliteError("Expected a head that tells what is familiar, got one that does not")
    return answers.familiarity


def _cells(figures: NDArray[np.float64]) -> str:
    accuracy, *judged = figures[: 1 + 2 * len(JUDGES)]
    pairs = [f"{a:.3f}, {b:.0%}" for a, b in zip(judged[::2], judged[1::2])]
    shares = [f"{share:.1%}" for share in figures[1 + 2 * len(JUDGES) :]]
    return " | ".join([f"{accuracy:.3f}", *pairs, *shares])


if __name__ == "__main__":
    main()
