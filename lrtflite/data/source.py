"""Frame sources: the protocol that every data set follows, its clips and frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lrtflite.data.choice import ClassChoice
from lrtflite.errors import InputError
from lrtflite.progress import OnProgress

Frame = NDArray[np.uint8]
"""One frame, (size, size, 3) uint8 RGB."""


@dataclass(frozen=True)
class Clip:
    """A run of frames of one class that belong together: a video, or a single image.

    `label` indexes the source's `classes`. `reader` takes ascending indices below `length` and
    yields the frame of each index. Frames are read only during iteration. `files` is True if each
    frame is a file of its own, so that any frame can be read again at once. `path` is the file that
    the clip comes from, if it can be larger than a frame.
    """

    label: int
    name: str
    length: int
    reader: Callable[[Sequence[int]], Iterator[Frame]] = field(repr=False, compare=False)
    files: bool = False
    path: Path | None = field(default=None, repr=False, compare=False)

    def read(self, indices: Sequence[int] | None = None) -> Iterator[Frame]:
        """Yield the frames at `indices` (ascending, no repeats), or all frames if None."""
        if indices is None:
            return self.reader(range(self.length))
        ascending = all(a < b for a, b in zip(indices, indices[1:]))
        if len(indices) and not (ascending and indices[0] >= 0 and indices[-1] < self.length):
            raise InputError(
                f"Expected ascending frame indices below {self.length} for {self.name}, "
                f"got {list(indices[:5])}{'...' if len(indices) > 5 else ''}",
                "sort them and remove repeats",
            )
        return self.reader(indices)


Part = tuple[Clip, tuple[int, ...]]
"""Some frames of a clip, by ascending index."""


class FrameSource(Protocol):
    """A data set: class names and clips of frames, (size, size, 3) uint8 RGB each.

    INVARIANT: the same spec, size and seed give the same clips in the same order, and no frame is
    in both a training clip and a test clip.
    """

    @property
    def name(self) -> str: ...

    @property
    def classes(self) -> tuple[str, ...]: ...

    @property
    def size(self) -> int: ...

    def train_clips(self) -> Sequence[Clip]: ...

    def test_clips(self) -> Sequence[Clip]: ...


@runtime_checkable
class ListedSource(FrameSource, Protocol):
    """A source whose authors published the frames of every batch, as in NICv2."""

    @property
    def protocol(self) -> str: ...

    def listed_batches(self) -> Sequence[tuple[Part, ...]]: ...


@dataclass(frozen=True)
class SourceRequest:
    """A user's request for a data set, as an opener in `SOURCES` gets it.

    `name` and `argument` are the text before and after the colon of `folder:things`; the argument
    is empty for a source that takes none. `settings` are the pairs after the `?`, except
    `classes`, which is `choice`. `skip_unreadable` leaves out files that cannot be read, and
    `on_progress` is called for each file checked.
    """

    name: str
    argument: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    size: int = 128
    seed: int = 0
    choice: ClassChoice | None = None
    skip_unreadable: bool = False
    on_progress: OnProgress | None = None
