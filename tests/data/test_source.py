"""Reading all or some frames of a clip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from lrtflite.data import Clip
from lrtflite.errors import InputError


def read(indices: Sequence[int]) -> Iterator[np.ndarray]:
    return (np.full((1, 1, 3), i, np.uint8) for i in indices)


def test_a_clip_reads_all_or_some_of_its_frames() -> None:
    clip = Clip(0, "mug/a.mp4", 4, read)
    assert [int(f[0, 0, 0]) for f in clip.read()] == [0, 1, 2, 3]
    assert [int(f[0, 0, 0]) for f in clip.read([1, 3])] == [1, 3]
    assert list(clip.read([])) == []


@pytest.mark.parametrize("indices", [[2, 1], [1, 1], [-1, 2], [0, 4]])
def test_a_clip_refuses_indices_that_it_lacks(indices: list[int]) -> None:
    with pytest.raises(InputError, match="ascending frame indices below 4 for mug"):
        Clip(0, "mug/a.mp4", 4, read).read(indices)
