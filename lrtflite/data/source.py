"""What a frame source is, and how a command line names one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lrtflite.errors import DataError, InputError

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

Default = TypeVar("Default", int, None)
KNOWN = ("synthetic", "synthetic-backbone", "folder:PATH", "core50:PATH")


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

    `size` is the side of the frames, `seed` decides what is drawn or held out. All files are
    looked at, `on_file` after each; unreadable ones are an error, or left out if
    `skip_unreadable` (`skipped_note` says which).
    """
    if not isinstance(size, int) or size < 1:
        raise InputError(f"Expected a frame size of at least 1, got {size!r}")
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"Expected a seed of at least 0, got {seed!r}")
    name, settings = _split_settings(spec)
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
        )
    if kind == "folder" and path:
        from lrtflite.data.folder import open_folder

        return open_folder(
            Path(path).expanduser(),
            settings,
            size=size,
            seed=seed,
            skip_unreadable=skip_unreadable,
            on_file=on_file,
        )
    if kind == "core50" and path:
        from lrtflite.data.core50 import open_core50

        return open_core50(
            Path(path).expanduser(),
            settings,
            size=size,
            skip_unreadable=skip_unreadable,
            on_file=on_file,
        )
    raise DataError(f"Expected one of {', '.join(KNOWN)} as data set, got {spec!r}")


def _split_settings(spec: str) -> tuple[str, dict[str, str]]:
    """`NAME?key=value&key=value` in two; a `?` in a folder's own name is left alone."""
    name, mark, query = spec.rpartition("?")
    if not mark or "=" not in query:
        return spec, {}
    settings: dict[str, str] = {}
    for pair in query.split("&"):
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise DataError(f"Expected key=value after the ? of {spec!r}, got {pair!r}")
        settings[key] = value
    return name, settings


def check_settings(kind: str, settings: Mapping[str, str], known: Sequence[str]) -> None:
    """Refuse a setting that the source does not have."""
    for key in settings:
        if key not in known:
            raise DataError(f"Expected one of {', '.join(known)} after {kind}?, got {key!r}")


def whole_setting(
    settings: Mapping[str, str], key: str, default: Default, *, least: int
) -> int | Default:
    """A setting that is a whole number, or `default` where it is not set."""
    if key not in settings:
        return default
    text = settings[key]
    if not (text.isascii() and text.isdecimal()) or int(text) < least:
        raise DataError(f"Expected {key} as a whole number of at least {least}, got {text!r}")
    return int(text)
