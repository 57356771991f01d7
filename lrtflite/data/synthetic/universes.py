"""The two universes: the categories, scenes and video lengths of a drawn data set."""

from __future__ import annotations

from dataclasses import dataclass, field

from lrtflite.data.synthetic.backbone_families import BACKBONE
from lrtflite.data.synthetic.shapes import Family
from lrtflite.data.synthetic.stream_families import STREAM

OBJECTS = 5  # per category


@dataclass(frozen=True)
class Universe:
    """All settings of a world except its seed; `train_fps` and `test_fps` are for its videos."""

    name: str
    families: dict[str, Family] = field(repr=False)
    scenes: int
    test_scenes: tuple[int, ...]
    train_frames: int
    train_fps: float
    test_frames: int
    test_fps: float


UNIVERSES = {
    universe.name: universe
    for universe in (
        Universe(
            name="synthetic",
            families=STREAM,
            scenes=11,
            test_scenes=(3, 7, 10),
            train_frames=25,
            train_fps=5.0,
            test_frames=10,
            test_fps=2.0,
        ),
        # A backbone learns more from a new place than from one more frame of a video, hence many
        # scenes with one frame of each object.
        Universe(
            name="synthetic-backbone",
            families=BACKBONE,
            scenes=84,
            test_scenes=(81, 82, 83, 84),
            train_frames=1,
            train_fps=5.0,
            test_frames=1,
            test_fps=5.0,
        ),
    )
}
