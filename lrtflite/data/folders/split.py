"""Draw the files of a class that are held out for testing."""

from __future__ import annotations

import zlib
from collections.abc import Container, Sequence
from pathlib import Path

import numpy as np

from lrtflite.data.folders.classes import by_name
from lrtflite.data.folders.only_video import held_out
from lrtflite.data.source import SourceRequest
from lrtflite.errors import DataError

# Share of each class that is held out by default.
TEST_FRACTION = 1 / 3


def class_generator(seed: int, name: str) -> np.random.Generator:
    """Return the generator that draws for a class, whatever other classes there are."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def draw_sides(
    files: Sequence[Path], readable: Container[Path], fraction: float, rng: np.random.Generator
) -> tuple[list[Path], list[Path]]:
    """Return the readable files to train on and the held-out ones, in the order of their names.

    Unreadable files take part in the draw, so the other files stay on their side, unless that would
    leave one side empty. Without two readable files, none is held out.
    """
    drawn = [files[i] for i in rng.permutation(len(files))]
    cut = held_out(len(files), fraction) if len(files) > 1 else 0
    test = [file for file in drawn[:cut] if file in readable]
    train = [file for file in drawn[cut:] if file in readable]
    if len(test) + len(train) < 2:
        return [*test, *train], []
    if not test:
        test.append(train.pop(0))
    if not train:
        train.append(test.pop())
    return sorted(train, key=by_name), sorted(test, key=by_name)


def asked_fraction(request: SourceRequest, *, usage: str) -> float:
    """Return the setting `test` of a source, such as `folder:PATH`; raise DataError for a text."""
    try:
        return float(request.settings.get("test", TEST_FRACTION))
    except ValueError:
        raise DataError(
            f"Expected a number after {usage}?test=, got {request.settings['test']!r}",
            "write for example ?test=0.25",
        ) from None


def check_fraction(fraction: float, *, usage: str) -> None:
    """Raise DataError for a share that leaves nothing to train on or nothing to test with."""
    if not 0 < fraction < 1:
        raise DataError(
            f"Expected a held-out fraction between 0 and 1, got {fraction}",
            f"write for example {usage}?test=0.33",
        )
