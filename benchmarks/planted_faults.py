"""Faults planted among the pictures of ten classes, and what a diagnosis says of them.

Ten classes drawn at random are taught 20 pictures each, and diagnosed clean. Then faults are
planted, the classes are taught again, and the share of faults that are found is counted: three
pictures are swapped between the first two classes, and between the next two; two of the fifth come
again; two of the sixth are blurred and one is dark; the seventh has two; the eighth has one picture
thirty times.

    python benchmarks/planted_faults.py BUNDLE synthetic [--seeds 2000 2001 2002]
    python benchmarks/planted_faults.py photos folder:PATH --seeds 100 101 102

Constants were chosen on every second class of the photographs, so classes are drawn from the rest.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
from lesson_hints import gaussian
from numpy.typing import NDArray

from lrtflite import Learner, LrtfliteError
from lrtflite.advice import Findings, Shown, diagnose
from lrtflite.data import FrameSource, open_source
from lrtflite.frames.hints import BLURRED, DARK

Frame = NDArray[np.uint8]
Pictures = dict[str, list[Frame]]
CLASSES, PICTURES = 10, 20
FAULTS = ("swapped", "repeated", "blurred", "dark", "few", "alike")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bundle")
    parser.add_argument("dataset", help="synthetic or folder:PATH")
    parser.add_argument("--seeds", type=int, nargs="+", default=[2000, 2001, 2002])
    arguments = parser.parse_args()
    try:
        run(arguments)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")


def run(arguments: argparse.Namespace) -> None:
    print(f"| seed | actions on clean pictures | {' | '.join(FAULTS)} | others named |")
    print(f"|{' --- |' * (3 + len(FAULTS))}")
    for seed in arguments.seeds:
        with Learner.open(arguments.bundle) as learner:
            size = learner.bundle.manifest.input_size
        is_drawn = arguments.dataset == "synthetic"
        source = open_source(arguments.dataset, size=size, seed=seed if is_drawn else 0)
        clean = chosen(source, np.random.default_rng(seed))
        before = diagnosed(arguments.bundle, clean)
        faulty, planted = with_faults(clean)
        found = named(diagnosed(arguments.bundle, faulty))
        shares = [
            f"{len(found[fault] & planted[fault])} of {len(planted[fault])}" for fault in FAULTS
        ]
        clean_ones = named(before)
        others = sum(len(found[fault] - planted[fault] - clean_ones[fault]) for fault in FAULTS)
        actions = Counter(action.kind for action in before.actions)
        said = ", ".join(f"{count} {kind}" for kind, count in actions.items()) or "none"
        print(f"| {seed} | {said} | {' | '.join(shares)} | {others} |")


def chosen(source: FrameSource, rng: np.random.Generator) -> Pictures:
    """Return PICTURES stills of each of CLASSES classes; of videos, two frames of each."""
    found: Pictures = {}
    for label in rng.permutation(np.arange(1, len(source.classes), 2))[:CLASSES]:
        clips = [c for c in (*source.train_clips(), *source.test_clips()) if c.label == label]
        order = [clips[place] for place in rng.permutation(len(clips))]
        frames: list[Frame] = []
        for clip in order:
            places = [0] if clip.length == 1 else [clip.length // 4, 3 * clip.length // 4]
            frames += clip.read(places)
        found[source.classes[label]] = frames[:PICTURES]
    return found


def with_faults(clean: Mapping[str, list[Frame]]) -> tuple[Pictures, dict[str, set[str]]]:
    """Return pictures with faults, and the names of the pictures or classes at fault."""
    faulty: Pictures = {label: list(frames) for label, frames in clean.items()}
    names = list(faulty)
    planted: dict[str, set[str]] = {fault: set() for fault in FAULTS}
    for one, other in ((0, 1), (2, 3)):
        first, second = faulty[names[one]], faulty[names[other]]
        first[1:4], second[1:4] = second[1:4], first[1:4]
        planted["swapped"] |= {f"{names[k]}/{n}" for k in (one, other) for n in (1, 2, 3)}
    count = len(faulty[names[4]])
    faulty[names[4]] += [faulty[names[4]][0].copy(), faulty[names[4]][4].copy()]
    planted["repeated"] = {f"{names[4]}/{count}", f"{names[4]}/{count + 1}"}
    rng = np.random.default_rng(0)
    for number in (2, 5):
        soft = gaussian(2)(faulty[names[5]][number], rng)
        faulty[names[5]][number] = np.asarray(soft.clip(0, 255), np.uint8)
    planted["blurred"] = {f"{names[5]}/2", f"{names[5]}/5"}
    faulty[names[5]][7] = np.asarray(faulty[names[5]][7] // 6, np.uint8)
    planted["dark"] = {f"{names[5]}/7"}
    del faulty[names[6]][2:]
    planted["few"] = {names[6]}
    faulty[names[7]] = [faulty[names[7]][0]] * 30
    planted["alike"] = {names[7]}
    return faulty, planted


def diagnosed(bundle: str, pictures: Mapping[str, list[Frame]]) -> Findings:
    with Learner.open(bundle) as learner:
        for label, frames in pictures.items():
            learner.learn(np.stack(frames), label)
        return diagnose(learner, list(shown(pictures)))


def shown(pictures: Mapping[str, list[Frame]]) -> Iterator[Shown]:
    def still(label: str, number: int, frame: Frame) -> Shown:
        return Shown(label, (f"{label}/{number}",), lambda _: iter([frame]))

    for label, frames in pictures.items():
        for number, frame in enumerate(frames):
            yield still(label, number, frame)


def named(found: Findings) -> dict[str, set[str]]:
    """Return the pictures or classes that a diagnosis names, by fault."""
    by_flaw: dict[str, set[str]] = {BLURRED: set(), DARK: set()}
    for each in found.flawed:
        by_flaw[each.flaw] |= set(each.pictures)
    return {
        "swapped": {name for each in found.mislabelled for name in each.pictures},
        "repeated": {each.picture for each in found.repeats},
        **by_flaw,
        "few": {each.label for each in found.thin if each.pictures == each.different},
        "alike": {each.label for each in found.thin if each.pictures > each.different},
    }


if __name__ == "__main__":
    main()
