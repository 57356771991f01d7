"""The drawn data sets: objects in scenes, as clips of frames that are drawn when they are read.

`synthetic` has fifty objects in ten categories. Each is held in front of the camera in eleven
scenes, which differ in background, light and motion. Scenes 3, 7 and 10 are the test set, as in
CORe50. `synthetic-backbone` is for pretraining a backbone: other categories, more objects, more
scenes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from lrtflite.data.choice import ClassChoice, pick_classes
from lrtflite.data.source import Clip, Frame, SourceRequest
from lrtflite.data.spec import check_settings, whole_setting
from lrtflite.data.synthetic.motion import draw_motion
from lrtflite.data.synthetic.objects import Object, draw_object
from lrtflite.data.synthetic.painter import draw_hand, paint_frame
from lrtflite.data.synthetic.scenes import BACKGROUNDS, Scene, draw_scene
from lrtflite.data.synthetic.shapes import F32
from lrtflite.data.synthetic.textures import TEXTURES
from lrtflite.data.synthetic.universes import OBJECTS, UNIVERSES, Universe
from lrtflite.errors import DataError, InputError

# Pixels by which the sensor noise can be shifted from frame to frame.
_TILE = 160


def open_synthetic(request: SourceRequest) -> SyntheticSource:
    """Open `synthetic` or `synthetic-backbone`, with `?frames=25&test_frames=10` per video."""
    check_settings(request.name, request.settings, ["frames", "test_frames"])
    return draw_world(
        request.name,
        size=request.size,
        seed=request.seed,
        frames=whole_setting(request.settings, "frames", None, least=1),
        test_frames=whole_setting(request.settings, "test_frames", None, least=1),
        choice=request.choice,
    )


def draw_world(
    name: str,
    *,
    size: int = 128,
    seed: int = 0,
    frames: int | None = None,
    test_frames: int | None = None,
    choice: ClassChoice | None = None,
) -> SyntheticSource:
    """Return the world of a seed; `frames` and `test_frames` are per video.

    Choosing classes does not change the objects: each looks as it does in the full set.
    """
    if name not in UNIVERSES:
        raise DataError(
            f"Expected the name of a drawn data set, got {name!r}", f"use {' or '.join(UNIVERSES)}"
        )
    for count in (frames, test_frames):
        if count is not None and count < 1:
            raise InputError(
                f"Expected at least 1 frame per video, got {count}", "leave it out for the default"
            )
    return SyntheticSource(
        UNIVERSES[name],
        size=size,
        seed=seed,
        frames=frames,
        test_frames=test_frames,
        choice=choice,
    )


class SyntheticSource:
    """A world of drawn objects, which depends on the universe and the seed alone.

    `size` changes only the resolution, `frames` only the length of the videos. Classes are the
    objects, category by category, named `cup-1` to `cup-5`.
    """

    def __init__(
        self,
        universe: Universe,
        *,
        size: int,
        seed: int,
        frames: int | None = None,
        test_frames: int | None = None,
        choice: ClassChoice | None = None,
    ) -> None:
        self.name = universe.name
        self.size = size
        names = [
            f"{category}-{number}"
            for category in universe.families
            for number in range(1, OBJECTS + 1)
        ]
        self._choice = choice
        # The object number of each class, among all objects of the universe.
        self._numbers = pick_classes(choice, names, of=universe.name)
        self.classes = tuple(names[number] for number in self._numbers)
        self._universe = universe
        self._seed = seed
        self._frames = frames or universe.train_frames
        self._test_frames = test_frames or universe.test_frames
        self._objects: dict[int, Object] = {}
        self._scenes: dict[int, Scene] = {}

    def __reduce__(self) -> tuple[partial[SyntheticSource], tuple[str]]:
        # Another process draws the objects and scenes again, so they need not be pickled.
        again = partial(
            draw_world,
            size=self.size,
            seed=self._seed,
            frames=self._frames,
            test_frames=self._test_frames,
            choice=self._choice,
        )
        return again, (self.name,)

    def train_clips(self) -> Sequence[Clip]:
        """Return one video per training scene and object, `s1/o1` first."""
        universe = self._universe
        every_scene = range(1, universe.scenes + 1)
        scenes = [scene for scene in every_scene if scene not in universe.test_scenes]
        return self._clips(scenes, self._frames, universe.train_fps)

    def test_clips(self) -> Sequence[Clip]:
        """Return one video per test scene and object, with fewer frames over the same time."""
        universe = self._universe
        return self._clips(universe.test_scenes, self._test_frames, universe.test_fps)

    def _clips(self, scenes: Sequence[int], length: int, fps: float) -> list[Clip]:
        return [
            Clip(label, f"s{scene}/o{number + 1}", length, _Video(self, number, scene, fps))
            for scene in scenes
            for label, number in enumerate(self._numbers)
        ]

    def object(self, index: int) -> Object:
        """Return object `index` (from 0) of the universe, drawn on the first call."""
        if index not in self._objects:
            category, number = divmod(index, OBJECTS)
            # The objects of a category differ: hues spread around the circle, no texture twice.
            siblings = self.rng("category", category)
            first_hue = siblings.random()
            kind = TEXTURES[siblings.permutation(len(TEXTURES))[number]]
            rng = self.rng("object", category, number)
            hue = first_hue + (number + rng.uniform(-0.3, 0.3)) / OBJECTS
            family = tuple(self._universe.families.values())[category]
            self._objects[index] = draw_object(rng, family, hue=hue, kind=kind)
        return self._objects[index]

    def scene(self, number: int) -> Scene:
        """Return scene `number` (from 1), drawn on the first call."""
        if number not in self._scenes:
            kinds = self.rng("places").permutation(len(BACKGROUNDS))
            kind = BACKGROUNDS[kinds[number % len(BACKGROUNDS)]]
            self._scenes[number] = draw_scene(self.rng("session", number), kind)
        return self._scenes[number]

    def rng(self, purpose: str, *numbers: int) -> np.random.Generator:
        """Return a generator for one purpose, independent of all other draws.

        The text of `purpose` is part of the seed, so changing it changes the world.
        """
        words = (zlib.crc32(word.encode()) for word in (self.name, purpose))
        return np.random.default_rng([*words, self._seed, *numbers])


@dataclass(frozen=True)
class _Video:
    """Draw frames of one object in one scene; any frame, in any order, costs the same."""

    source: SyntheticSource
    index: int
    scene: int
    fps: float

    def __call__(self, indices: Sequence[int]) -> Iterator[Frame]:
        source = self.source
        thing, scene = source.object(self.index), source.scene(self.scene)
        rng = source.rng("video", self.index, self.scene)
        motion = draw_motion(rng, shake=scene.shake)
        lean = float(rng.normal(0, 0.5))
        corner = rng.integers(0, _TILE, 2)
        for index in indices:
            # All frames share one array of sensor noise, shifted from frame to frame.
            y, x = (corner + index * np.array([71, 89])) % _TILE
            yield paint_frame(
                thing=thing,
                scene=scene,
                pose=motion.at(index / self.fps),
                hand=_hand(),
                lean=lean,
                grain=_grain(source.size)[:, y : y + source.size, x : x + source.size],
                size=source.size,
            )


@lru_cache(maxsize=1)
def _grain(size: int) -> F32:
    """Return normal noise, (3, size + _TILE, size + _TILE) float32."""
    side = size + _TILE
    return np.random.default_rng(0).standard_normal((3, side, side), np.float32)


_hand = lru_cache(maxsize=1)(draw_hand)
