"""Clips of taught and untaught things: drawn ones, and photographs under a moving crop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from bundles import LARGE_PHOTOGRAPHS
from numpy.typing import NDArray

from lrtflite import Learner, fit_frame
from lrtflite.data import Clip, open_source

# Answers per second, as in examples/camera_loop.py, and frames of a clip.
FPS, FRAMES = 10, 50
# Classes that are taught, and as many others that are not.
CLASSES = 12
# Drawn videos of a class that are taught, 25 frames each.
VIDEOS = 2
# Most photographs of a class that become clips, and frames of each one for teaching.
PICTURES, TAUGHT_FRAMES = 6, 5
Frames = NDArray[np.uint8]
Latents = NDArray[np.floating]


@dataclass(frozen=True)
class Things:
    """Latents (n, F) to teach, by class, and the clips to ask about, as (class, latents)."""

    taught: dict[int, Latents]
    clips: list[tuple[int, Latents]]

    def teach(self, learner: Learner) -> None:
        """Teach each class in a session of its own."""
        for label, latents in self.taught.items():
            learner.learn_latents(latents, slot=label)


def drawn(learner: Learner, seed: int) -> Things:
    """Extract the drawn videos of one world; two of each class are taught."""
    size = learner.bundle.manifest.input_size
    source = open_source(f"synthetic?test_frames={FRAMES}", size=size, seed=seed)
    taught, others = _drawn_classes(len(source.classes), seed)
    lessons: dict[int, list[Latents]] = {label: [] for label in taught}
    for clip in source.train_clips():
        if clip.label in lessons and len(lessons[clip.label]) < VIDEOS:
            lessons[clip.label].append(_extracted(learner, clip.read()))
    return Things(
        {label: np.concatenate(latents) for label, latents in lessons.items()},
        [
            (clip.label, _extracted(learner, clip.read()))
            for clip in source.test_clips()
            if clip.label in (*taught, *others)
        ],
    )


def photographed(learner: Learner, seed: int, *, validation: bool) -> Things:
    """Extract photographs under a crop that moves; for validation, ask about training pictures.

    Those are then not taught.
    """
    manifest = learner.bundle.manifest
    source = open_source(f"folder:{LARGE_PHOTOGRAPHS}", size=224, seed=0)
    taught, others = _drawn_classes(len(source.classes), seed)
    rng = np.random.default_rng(seed)

    def moving(clip: Clip, frames: int) -> Latents:
        [picture] = clip.read()
        return _extracted(learner, _moving(picture, frames, manifest.input_size, rng))

    lessons: dict[int, Latents] = {}
    clips: list[tuple[int, Latents]] = []
    for label in (*taught, *others):
        train = [clip for clip in source.train_clips() if clip.label == label]
        asked = [clip for clip in source.test_clips() if clip.label == label]
        if validation:
            train, asked = train[::2], train[1::2]
        if label in taught:
            lessons[label] = np.concatenate([moving(clip, TAUGHT_FRAMES) for clip in train])
        clips += [(label, moving(clip, FRAMES)) for clip in asked[:PICTURES]]
    return Things(lessons, clips)


def _drawn_classes(count: int, seed: int) -> tuple[list[int], list[int]]:
    shuffled = np.random.default_rng(seed).permutation(count).tolist()
    return shuffled[:CLASSES], shuffled[CLASSES : 2 * CLASSES]


def _moving(picture: Frames, frames: int, size: int, rng: np.random.Generator) -> Iterator[Frames]:
    """Yield frames of a picture seen by a hand-held camera.

    The crop has 60 to 95 % of the side; it wanders and breathes along slow sines, with a shake of
    about two pixels. Light varies slowly by a fifth, and each pixel has noise of 5 levels.
    """
    height, width = picture.shape[:2]
    side = min(height, width)
    phases, speeds = rng.uniform(0, 2 * np.pi, 4), rng.uniform(0.2, 0.8, 4)
    for number in range(frames):
        at = np.sin(phases + 2 * np.pi * speeds * number / FPS)
        crop = int(side * (0.775 + 0.175 * at[2]))
        room = np.array([height - crop, width - crop])
        top, left = np.clip(room * (1 + at[:2]) / 2 + rng.normal(0, 2, 2), 0, room).astype(int)
        seen = fit_frame(picture[top : top + crop, left : left + crop], size).astype(np.float32)
        noisy = seen * (1 + 0.2 * at[3]) + rng.normal(0, 5, seen.shape)
        yield np.clip(noisy, 0, 255).astype(np.uint8)


def _extracted(learner: Learner, frames: Iterator[Frames]) -> Latents:
    return np.concatenate([learner.extract(frame) for frame in frames])
