"""Settled answers against answers for single frames, on clips of taught and of untaught things.

Twelve classes drawn at random are taught; clips of five seconds, ten frames a second, follow each
other without a pause. `right` and `wrong` are shares of frames, and count from the second `--after`
of a clip for the columns that say so. `until right` is the time from the beginning of a clip to its
first frame with the right answer. `changes` are those of the answer shown, per 100 frames; the
things themselves change twice. The second table has clips of twelve other classes among them, with
the threshold that `convert` writes; the packaged demo bundle is an earlier one that needs others.

    python benchmarks/consensus.py [--worlds demo drawn photographs] [--seeds 2000 2001 2002]
    python benchmarks/consensus.py --worlds demo --thresholds 0.02 0.05
    python benchmarks/consensus.py --validation --seeds 3000 3001 --frames 3 5 8 --shares 0.6 0.8

Photographs are seen through a crop that moves. With `--validation` they are training pictures,
which are then not taught.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from bundles import IMAGENET, ROOT, converted, say
from clips import FPS, FRAMES, Things, drawn, photographed
from numpy.typing import NDArray

from lrtflite import Consensus, Learner, LrtfliteError, Prediction
from lrtflite.answers import consensus as defaults
from lrtflite.answers.prediction import NO_SLOT
from lrtflite.runtime.model import describe_runtime
from lrtflite.system.machine import this_machine
from lrtflite_converters.request.defaults import UNKNOWN

RUNTIME = "litert"
WORLDS = ("demo", "drawn", "photographs")
NAMES = {
    "demo": "drawn, demo bundle",
    "drawn": "drawn, ImageNet weights",
    "photographs": "photographs, ImageNet weights",
}
# Orders in which the clips of a world follow each other.
ORDERS = 3
# What an answer shows for no settled one; a slot is 0 or more, and unknown is NO_SLOT.
UNSURE = -2
Guesses = list[Prediction]
Rule = Callable[[Guesses], int]


@dataclass(frozen=True)
class Asked:
    """The guesses for each frame of each clip, and the slots of its things, NO_SLOT if untaught."""

    clips: list[list[Guesses]]
    slots: NDArray[np.intp]


@dataclass(frozen=True)
class Way:
    """A way to answer: its name, and its rule, made for a threshold."""

    name: str
    make: Callable[[float | None], Rule]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=WORLDS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[2000, 2001, 2002])
    parser.add_argument("--frames", type=int, nargs="+", default=[defaults.FRAMES])
    parser.add_argument("--shares", type=float, nargs="+", default=[defaults.SHARE])
    parser.add_argument("--thresholds", type=float, nargs="+", default=[UNKNOWN])
    parser.add_argument("--lead", type=float, default=defaults.LEAD, help="in place of LEAD")
    parser.add_argument("--after", type=float, default=1.0, help="seconds of a clip left out")
    parser.add_argument("--validation", action="store_true")
    arguments = parser.parse_args()
    defaults.LEAD = arguments.lead
    try:
        run(arguments)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")


def run(arguments: argparse.Namespace) -> None:
    ways = list(ways_of(arguments.frames, arguments.shares))
    skipped = round(arguments.after * FPS)
    worlds = {
        (world, seed): asked_of(world, seed, validation=arguments.validation)
        for world in arguments.worlds
        for seed in arguments.seeds
    }
    after = f"after {arguments.after:g} s"
    head = ["world", "answers", "right", f"right {after}", f"wrong {after}"]
    _header([*head, "s until right: median, p90", "clips never right", "changes"])
    for world in arguments.worlds:
        for way in ways:
            found = [figures(worlds[world, seed], way, skipped) for seed in arguments.seeds]
            print(f"| {NAMES[world]} | {way.name} | {_cells(found)} |", flush=True)
    print()
    head = ["world", "threshold", "answers"]
    _header([*head, f"taught: unknown {after}", f"untaught: unknown {after}"])
    for world in arguments.worlds:
        for threshold in arguments.thresholds:
            for way in ways:
                rows = np.array(
                    [
                        unknown_figures(worlds[world, seed], way, threshold, skipped)
                        for seed in arguments.seeds
                    ]
                )
                cells = " | ".join(_spread(column, "{:.1%}") for column in rows.T)
                print(f"| {NAMES[world]} | {threshold:g} | {way.name} | {cells} |", flush=True)
    print(f"\nSeeds {arguments.seeds}; {describe_runtime(RUNTIME)}, on {this_machine()}")


def ways_of(frames: list[int], shares: list[float]) -> Iterator[Way]:
    yield Way("single frames", single)
    for count in frames:
        for share in shares:
            text = f"{share:g} of {count}"
            yield Way(f"votes, {text}", partial(voted, count, share))
            yield Way(f"averages, {text}", partial(averaged, count, share))
            yield Way(f"settled, {text}", partial(settled, count, share))


def single(threshold: float | None) -> Rule:
    return partial(own_answer, threshold=threshold)


def own_answer(guesses: Guesses, threshold: float | None) -> int:
    """Return the answer for one frame, below a threshold NO_SLOT."""
    familiarity = guesses[0].familiarity
    refused = threshold is not None and familiarity is not None and familiarity < threshold
    return NO_SLOT if refused else guesses[0].slot


def voted(frames: int, share: float, threshold: float | None) -> Rule:
    """Return the rule that only counts the answers of the last frames."""
    window: deque[int] = deque(maxlen=frames)
    shown = UNSURE

    def add(guesses: Guesses) -> int:
        nonlocal shown
        window.append(own_answer(guesses, threshold))
        [(answer, votes)] = Counter(window).most_common(1)
        if votes >= math.ceil(share * frames - 1e-9):
            shown = answer
        elif shown not in window:
            shown = UNSURE
        return shown

    return add


def averaged(frames: int, share: float, threshold: float | None) -> Rule:
    """Return the rule that only averages the probabilities, once enough frames are there."""
    window: deque[Guesses] = deque(maxlen=frames)
    needed = math.ceil(share * frames - 1e-9)

    def add(guesses: Guesses) -> int:
        window.append(guesses)
        if len(window) < needed:
            return UNSURE
        familiarity = [each[0].familiarity for each in window]
        known = [value for value in familiarity if value is not None]
        if threshold is not None and known and np.mean(known) < threshold:
            return NO_SLOT
        chances: defaultdict[int, float] = defaultdict(float)
        for each in window:
            for guess in each:
                chances[guess.slot] += guess.probability
        return max(chances, key=chances.__getitem__)

    return add


def settled(frames: int, share: float, threshold: float | None) -> Rule:
    consensus = Consensus(frames=frames, share=share, threshold=threshold)

    def add(guesses: Guesses) -> int:
        found = consensus.add(guesses)
        return {"answer": found.slot, "unsure": UNSURE, "unknown": NO_SLOT}[found.kind]

    return add


def asked_of(world: str, seed: int, *, validation: bool) -> Asked:
    """Teach the classes of a world and ask about every frame of its clips."""
    say(f"Extracting {NAMES[world]} {seed}")
    words = ["--weights", str(IMAGENET), "--alpha", "1.0", "--strategy", "lda"]
    path = (
        ROOT / "lrtflite" / "demo_bundle" if world == "demo" else converted("consensus-lda", words)
    )
    with Learner.open(path, runtime=RUNTIME) as learner:
        things: Things
        if world == "photographs":
            things = photographed(learner, seed, validation=validation)
        else:
            things = drawn(learner, seed)
        things.teach(learner)
        return Asked(
            [learner.predict_latents(latents) for _, latents in things.clips],
            np.array([label if label in things.taught else NO_SLOT for label, _ in things.clips]),
        )


def shown(asked: Asked, rule: Rule, order: NDArray[np.intp]) -> NDArray[np.intp]:
    """(clips, frames): the answers shown while the clips follow each other in an order."""
    return np.array([[rule(guesses) for guesses in asked.clips[clip]] for clip in order])


def figures(asked: Asked, way: Way, skipped: int) -> list[float]:
    """Return the figures of the first table, for taught things alone."""
    found = []
    taught = np.flatnonzero(asked.slots != NO_SLOT)
    for number in range(ORDERS):
        order = np.random.default_rng(number).permutation(taught)
        answers = shown(asked, way.make(None), order)
        right = answers == asked.slots[order][:, np.newaxis]
        wrong = ~right & (answers != UNSURE)
        first = np.where(right.any(axis=1), right.argmax(axis=1), FRAMES)
        flat = answers.reshape(-1)
        found.append(
            [
                float(right.mean()),
                float(right[:, skipped:].mean()),
                float(wrong[:, skipped:].mean()),
                float(np.median(first)) / FPS,
                float(np.quantile(first, 0.9)) / FPS,
                float(np.mean(first == FRAMES)),
                100 * float(np.mean(flat[1:] != flat[:-1])),
            ]
        )
    return np.mean(found, axis=0).tolist()


def unknown_figures(asked: Asked, way: Way, threshold: float, skipped: int) -> list[float]:
    """Return the shares of frames shown as unknown, of taught and of untaught things."""
    found = []
    for number in range(ORDERS):
        order = np.random.default_rng(number).permutation(len(asked.slots))
        refused = shown(asked, way.make(threshold), order)[:, skipped:] == NO_SLOT
        taught = asked.slots[order] != NO_SLOT
        found.append([float(refused[taught].mean()), float(refused[~taught].mean())])
    return np.mean(found, axis=0).tolist()


def _header(columns: list[str]) -> None:
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")


def _cells(found: list[list[float]]) -> str:
    right, after, wrong, median, late, never, changes = np.array(found).T
    cells = [_spread(right), _spread(after), _spread(wrong)]
    cells += [f"{_spread(median, '{:.2f}')}, {_spread(late, '{:.2f}')}"]
    return " | ".join([*cells, _spread(never, "{:.1%}"), _spread(changes, "{:.1f}")])


def _spread(values: NDArray[np.float64], form: str = "{:.3f}") -> str:
    """Return the mean over seeds, with the least and the largest."""
    mean, least, most = (form.format(each) for each in (values.mean(), values.min(), values.max()))
    return f"{mean} ({least} to {most})" if len(values) > 1 else mean


if __name__ == "__main__":
    main()
