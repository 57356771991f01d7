"""What a frame source is, and how to open one by its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lrtflite.data.choice import ClassChoice
from lrtflite.data.spec import check_settings, split_spec, unknown_source, whole_setting
from lrtflite.errors import InputError

Frame = NDArray[np.uint8]
"""One frame, (size, size, 3) uint8 RGB."""


@dataclass(frozen=True)
class Clip:
    """A run of frames of one class that belong together: a video, or a single image.

    `label` indexes the source's `classes`. `reader` takes ascending indices below `length` and
    yields that frame for each; nothing is read before it is iterated over.
    """

    label: int
    name: str
    length: int
    reader: Callable[[Sequence[int]], Iterator[Frame]] = field(repr=False, compare=False)

    def read(self, indices: Sequence[int] | None = None) -> Iterator[Frame]:
        """The frames at `indices` (ascending, no repeats), or all: (size, size, 3) uint8 RGB."""
        if indices is None:
            return self.reader(range(self.length))
        ascending = all(a < b for a, b in zip(indices, indices[1:]))
        if len(indices) and not (ascending and indices[0] >= 0 and indices[-1] < self.length):
            raise InputError(
                f"Expected ascending frame indices below {self.length} for {self.name}, "
                f"got {list(indices[:5])}{'...' if len(indices) > 5 else ''}"
            )
        return self.reader(indices)


Part = tuple[Clip, tuple[int, ...]]
"""Some frames of a clip, by ascending index."""


class FrameSource(Protocol):
    """A data set: class names and clips of frames, (size, size, 3) uint8 RGB each.

    INVARIANT: the same spec, size and seed give the same clips in the same order, and no frame is
    both in a training and in a test clip.
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
    """A source whose authors published which frames come in which batch, as NICv2 does."""

    @property
    def protocol(self) -> str: ...

    def listed_batches(self) -> Sequence[tuple[Part, ...]]: ...


OnFile = Callable[[int, int], None]
"""Called with how many files were looked at, and of how many."""


def open_source(
    spec: str,
    *,
    size: int = 128,
    seed: int = 0,
    skip_unreadable: bool = False,
    on_file: OnFile | None = None,
) -> FrameSource:
    """Open a data set by name.

    - `synthetic`, `synthetic-backbone`: videos that the project draws itself.
      `?frames=50&test_frames=20` sets their length;
    - `folder:PATH`: one folder of images or videos per class. `?test=0.25` holds out a quarter of
      each class in place of a third;
    - `core50:PATH`: CORe50 with the NICv2 lists. `?lists=DIR&protocol=391&run=0&stride=20`: where
      the lists are, which (79, 196, 391, or `nic` for none), which run, every how many test frames.

    All of them take `?classes=a,b,c` or `?classes=20`: these classes, or the first 20, alone; see
    `ClassChoice`.

    `size` is the side of the frames, `seed` decides what is drawn or held out. All files are
    looked at, `on_file` after each; unreadable ones are an error, or left out if
    `skip_unreadable`. `source_notes` says what the reader of a result should know.
    """
    if not isinstance(size, int) or size < 1:
        raise InputError(f"Expected a frame size of at least 1, got {size!r}")
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"Expected a seed of at least 0, got {seed!r}")
    name, settings = split_spec(spec)
    chosen = settings.pop("classes", None)
    choice = None if chosen is None else ClassChoice.parse(chosen)
    kind, _, path = name.partition(":")
    if name in ("synthetic", "synthetic-backbone"):
        from lrtflite.data.synthetic import open_synthetic

        check_settings(name, settings, ["frames", "test_frames"])
        return open_synthetic(
            name,
            size=size,
            seed=seed,
            frames=whole_setting(settings, "frames", None, least=1),
            test_frames=whole_setting(settings, "test_frames", None, least=1),
            choice=choice,
        )
    if kind == "folder" and path:
        from lrtflite.data.folder import open_folder

        return open_folder(
            Path(path).expanduser(),
            settings,
            size=size,
            seed=seed,
            choice=choice,
            skip_unreadable=skip_unreadable,
            on_file=on_file,
        )
    if kind == "core50" and path:
        from lrtflite.data.core50 import open_core50

        return open_core50(
            Path(path).expanduser(),
            settings,
            size=size,
            choice=choice,
            skip_unreadable=skip_unreadable,
            on_file=on_file,
        )
    raise unknown_source(spec)
