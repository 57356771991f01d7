"""CORe50-like videos that numpy draws: the `synthetic` and `synthetic-backbone` frame sources.

Fifty objects in ten categories, each held before the camera in eleven sessions with their own
background, light and motion; sessions 3, 7 and 10 are the test set, as in CORe50.
`synthetic-backbone` is for pretraining a backbone: other categories, more objects, more sessions.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np

from lrtflite.data.choice import ClassChoice, pick_classes
from lrtflite.data.source import Clip, Frame
from lrtflite.data.synthetic_families import BACKBONE, STREAM
from lrtflite.data.synthetic_motion import draw_motion
from lrtflite.data.synthetic_objects import PATTERNS, Object, draw_object
from lrtflite.data.synthetic_painter import draw_hand, paint_frame
from lrtflite.data.synthetic_sessions import BACKGROUNDS, Session, draw_session
from lrtflite.data.synthetic_shapes import F32, Family
from lrtflite.errors import DataError, InputError

OBJECTS = 5  # per category


@dataclass(frozen=True)
class Universe:
    """Everything about a world but its seed. Rates are frames per second of video."""

    name: str
    families: dict[str, Family] = field(repr=False)
    sessions: int
    test_sessions: tuple[int, ...]
    train_frames: int
    train_rate: float
    test_frames: int
    test_rate: float


UNIVERSES = {
    universe.name: universe
    for universe in (
        Universe(
            name="synthetic",
            families=STREAM,
            sessions=11,
            test_sessions=(3, 7, 10),
            train_frames=25,
            train_rate=5.0,
            test_frames=10,
            test_rate=2.0,
        ),
        # Many sessions and one frame of each object: a backbone learns more from a new place than
        # from one more frame of a video.
        Universe(
            name="synthetic-backbone",
            families=BACKBONE,
            sessions=84,
            test_sessions=(81, 82, 83, 84),
            train_frames=1,
            train_rate=5.0,
            test_frames=1,
            test_rate=5.0,
        ),
    )
}


def open_synthetic(
    name: str,
    *,
    size: int = 128,
    seed: int = 0,
    frames: int | None = None,
    test_frames: int | None = None,
    choice: ClassChoice | None = None,
) -> SyntheticSource:
    """Open `synthetic` or `synthetic-backbone`; `frames` and `test_frames` are per video.

    A `choice` of classes shows them as they are among all others.
    """
    if name not in UNIVERSES:
        raise DataError(f"Expected one of {', '.join(UNIVERSES)} as data set, got {name!r}")
    for count in (frames, test_frames):
        if count is not None and count < 1:
            raise InputError(f"Expected at least 1 frame per video, got {count}")
    return SyntheticSource(
        UNIVERSES[name],
        size=size,
        seed=seed,
        frames=frames,
        test_frames=test_frames,
        choice=choice,
    )


class SyntheticSource:
    """A world: a function of the universe and the seed alone.

    `size` only changes how finely it is drawn, `frames` how long its videos are. Classes are the
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
        # The number of each class's object among all objects of the universe.
        self._numbers = pick_classes(choice, names, of=universe.name)
        self.classes = tuple(names[number] for number in self._numbers)
        self._universe = universe
        self._seed = seed
        self._frames = frames or universe.train_frames
        self._test_frames = test_frames or universe.test_frames
        self._objects: dict[int, Object] = {}
        self._sessions: dict[int, Session] = {}

    def __reduce__(self) -> tuple[partial[SyntheticSource], tuple[str]]:
        # What is drawn already need not travel to another process: it can be drawn again.
        again = partial(
            open_synthetic,
            size=self.size,
            seed=self._seed,
            frames=self._frames,
            test_frames=self._test_frames,
            choice=self._choice,
        )
        return again, (self.name,)

    def train_clips(self) -> Sequence[Clip]:
        """One video per training session and object, `s1/o1` first."""
        everything = range(1, self._universe.sessions + 1)
        sessions = [s for s in everything if s not in self._universe.test_sessions]
        return self._clips(sessions, self._frames, self._universe.train_rate)

    def test_clips(self) -> Sequence[Clip]:
        """One video per test session and object; fewer frames, over the same time."""
        universe = self._universe
        return self._clips(universe.test_sessions, self._test_frames, universe.test_rate)

    def _clips(self, sessions: Sequence[int], length: int, rate: float) -> list[Clip]:
        return [
            Clip(label, f"s{session}/o{number + 1}", length, _Video(self, number, session, rate))
            for session in sessions
            for label, number in enumerate(self._numbers)
        ]

    def object(self, index: int) -> Object:
        """Return the look of object `index` (from 0) of the universe."""
        if index not in self._objects:
            category, number = divmod(index, OBJECTS)
            # Five looks of one category: hues spread around the circle, no pattern twice.
            siblings = self.rng("category", category)
            first_hue = siblings.random()
            kind = PATTERNS[siblings.permutation(len(PATTERNS))[number]]
            rng = self.rng("object", category, number)
            hue = first_hue + (number + rng.uniform(-0.3, 0.3)) / OBJECTS
            family = tuple(self._universe.families.values())[category]
            self._objects[index] = draw_object(rng, family, hue=hue, kind=kind)
        return self._objects[index]

    def session(self, number: int) -> Session:
        """Where and when session `number` (from 1) takes place."""
        if number not in self._sessions:
            kinds = self.rng("places").permutation(len(BACKGROUNDS))
            kind = BACKGROUNDS[kinds[number % len(BACKGROUNDS)]]
            self._sessions[number] = draw_session(self.rng("session", number), kind)
        return self._sessions[number]

    def rng(self, purpose: str, *numbers: int) -> np.random.Generator:
        """A generator for one purpose, which no other draw can disturb."""
        words = (zlib.crc32(word.encode()) for word in (self.name, purpose))
        return np.random.default_rng([*words, self._seed, *numbers])


@dataclass(frozen=True)
class _Video:
    """Reads one object in one session; any frame, in any order, costs the same."""

    source: SyntheticSource
    index: int
    session: int
    rate: float

    def __call__(self, indices: Sequence[int]) -> Iterator[Frame]:
        source = self.source
        thing, session = source.object(self.index), source.session(self.session)
        rng = source.rng("video", self.index, self.session)
        motion = draw_motion(rng, shake=session.shake)
        lean = float(rng.normal(0, 0.5))
        corner = rng.integers(0, _TILE, 2)
        for index in indices:
            # The sensor's noise is one tile, elsewhere for each frame.
            y, x = (corner + index * np.array([71, 89])) % _TILE
            yield paint_frame(
                thing=thing,
                session=session,
                pose=motion.at(index / self.rate),
                hand=_hand(),
                lean=lean,
                grain=_grain(source.size)[:, y : y + source.size, x : x + source.size],
                size=source.size,
            )


_TILE = 160


@lru_cache(maxsize=1)
def _grain(size: int) -> F32:
    """(3, size + _TILE, size + _TILE) float32, normal."""
    side = size + _TILE
    return np.random.default_rng(0).standard_normal((3, side, side), np.float32)


_hand = lru_cache(maxsize=1)(draw_hand)
