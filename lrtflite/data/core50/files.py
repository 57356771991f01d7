"""The image files of CORe50 on disk."""

from __future__ import annotations

import re
from pathlib import Path

from lrtflite.data.core50.lists import CLASSES, Numbers, Recording
from lrtflite.data.unreadable import entries_of
from lrtflite.errors import DataError

TEST_SCENES = (3, 7, 10)

_IMAGE = re.compile(r"C_(\d\d)_(\d\d)_(\d\d\d)\.png")


def image_folder(path: Path) -> Path:
    """Return the folder with the scenes `s1`, `s2` and so on, in `path` or `path` itself."""
    for folder in (path / "core50_128x128", path):
        if (folder / "s1").is_dir():
            return folder
    raise DataError(
        f"Expected {path}/core50_128x128/s1/o1/C_01_01_000.png and so on, got no folder s1",
        "unpack core50_128x128.zip there",
    )


def image_file(images: Path, key: Recording, number: int) -> Path:
    """Return the path of a frame."""
    scene, thing = key
    return images / f"s{scene}/o{thing}/C_{scene:02d}_{thing:02d}_{number:03d}.png"


def image_files(images: Path, listed: Numbers) -> list[Path]:
    """Return the path of each frame; raise DataError if the folder of a recording is missing."""
    for scene, thing in listed:
        folder = images / f"s{scene}" / f"o{thing}"
        if not folder.is_dir():
            raise DataError(
                f"Expected CORe50's images in {folder}, got no such folder",
                "unpack core50_128x128.zip again",
            )
    return [image_file(images, key, number) for key in sorted(listed) for number in listed[key]]


def scan(images: Path) -> tuple[Numbers, Numbers]:
    """Return the frame numbers of every recording on disk, for training and for testing."""
    train: dict[Recording, list[int]] = {}
    test: dict[Recording, list[int]] = {}
    for folder in sorted(images.glob("s*/o*")):
        for file in sorted(entries_of(folder)):
            if match := _IMAGE.fullmatch(file.name):
                scene, thing, number = map(int, match.groups())
                if 1 <= thing <= len(CLASSES):
                    side = test if scene in TEST_SCENES else train
                    side.setdefault((scene, thing), []).append(number)
    return train, test
