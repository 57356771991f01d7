"""Gain from teaching a fixed camera what its place looks like without a thing.

A camera sees one scene of the drawn videos. The first half of each video of twelve classes drawn at
random is taught, a session each; the second half is known, the videos of twelve other classes are
unknown, and the place without a thing is empty. Then frames of the empty place, with other light
and another view, are taught as the background. Each row has the share that is answered as unknown.

    python benchmarks/background.py BUNDLE [--seeds 2000 2001 2002]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lrtflite import Bundle, Learner, LrtfliteError
from lrtflite.answers.prediction import UNKNOWN
from lrtflite.data import open_source
from lrtflite.data.synthetic.motion import draw_motion
from lrtflite.data.synthetic.painter import draw_hand, paint_frame
from lrtflite.data.synthetic.source import SyntheticSource

SCENE, CLASSES, FRAMES, EMPTY = 1, 12, 16, 20
# Place of a thing, in widths of a frame, at which neither it nor the hand is seen.
AWAY = 9.0
Latents = NDArray[np.float32]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bundle")
    parser.add_argument("--seeds", type=int, nargs="+", default=[2000, 2001, 2002])
    arguments = parser.parse_args()
    try:
        bundle = Bundle.open(arguments.bundle)
        threshold = bundle.manifest.unknown
        print("| seed | taught | known refused | wrong | other things caught | empty caught |")
        print("| --- | --- | --- | --- | --- | --- |")
        for seed in arguments.seeds:
            for row in rows(bundle, seed, threshold):
                print(f"| {seed} | {row} |", flush=True)
    except LrtfliteError as error:
        sys.exit(f"Error: {error}")
    print(f"threshold {threshold}, scene {SCENE}")


def rows(bundle: Bundle, seed: int, threshold: float | None) -> Iterator[str]:
    source = open_source("synthetic", size=bundle.manifest.input_size, seed=seed)
    assert isinstance(source, SyntheticSource)
    clips = {
        clip.label: clip for clip in source.train_clips() if clip.name.startswith(f"s{SCENE}/")
    }
    order = np.random.default_rng(seed).permutation(sorted(clips))
    with Learner.open(bundle, unknown=threshold) as learner:
        known: list[tuple[str, Latents]] = []
        for label in order[:CLASSES]:
            frames = np.stack(list(clips[label].read()))[:FRAMES]
            latents, half = learner.extract(frames), len(frames) // 2
            learner.learn_latents(latents[:half], source.classes[label])
            known.append((source.classes[label], latents[half:]))
        others = [np.stack(list(clips[label].read()))[:4] for label in order[CLASSES:][:CLASSES]]
        strange = learner.extract(np.concatenate(others))
        place = learner.extract(np.stack(list(empty_frames(source, 2 * EMPTY))))
        asked = known, strange, place[EMPTY:]
        yield f"things | {figures(learner, *asked)}"
        learner.learn_latents(place[:EMPTY], background=True)
        yield f"things and the background | {figures(learner, *asked)}"
        learner.unknown = None
        yield f"the same, without a threshold | {figures(learner, *asked)}"


def figures(
    learner: Learner, known: list[tuple[str, Latents]], strange: Latents, empty: Latents
) -> str:
    said = [(name, answer) for name, rows in known for answer in answers(learner, rows)]
    refused = np.mean([answer == UNKNOWN for _, answer in said])
    wrong = np.mean([answer not in (name, UNKNOWN) for name, answer in said])
    caught = [np.mean([each == UNKNOWN for each in answers(learner, x)]) for x in (strange, empty)]
    return " | ".join(f"{share:.1%}" for share in (refused, wrong, *caught))


def answers(learner: Learner, latents: Latents) -> list[str]:
    return [top[0].label for top in learner.predict_latents(latents, top=1)]


def empty_frames(source: SyntheticSource, count: int) -> Iterator[NDArray[np.uint8]]:
    """Yield the place without a thing: half of the frames in one visit, half in another."""
    scene, size = source.scene(SCENE), source.size
    for visit in range(2):
        rng = source.rng("empty", visit)
        motion = draw_motion(rng, shake=scene.shake)
        for number in range(count // 2):
            pose = motion.at(number / 5)._replace(x=AWAY, y=AWAY)
            yield paint_frame(
                thing=source.object(0),
                scene=scene,
                pose=pose,
                hand=draw_hand(),
                lean=0.0,
                grain=rng.standard_normal((3, size, size), np.float32),
                size=size,
            )


if __name__ == "__main__":
    main()
