"""Cut a source's training clips into batches: NIC, "new instances and classes".

A batch is what one learning session sees. The first has several classes, each later one a single
object, and old classes and new ones come mixed (Lomonaco et al., NICv2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np

from lrtflite.data.source import Clip, Frame, FrameSource, ListedSource, Part
from lrtflite.errors import DataError, InputError
from lrtflite.evenly import evenly


@dataclass(frozen=True)
class Batch:
    """What one learning session sees: some frames of some clips, read when iterated over."""

    parts: tuple[Part, ...]

    @cached_property
    def labels(self) -> tuple[int, ...]:
        """The label of each frame, in the order of `frames()`."""
        return tuple(clip.label for clip, indices in self.parts for _ in indices)

    @property
    def classes(self) -> tuple[int, ...]:
        """The distinct labels, ascending."""
        return tuple(sorted({clip.label for clip, _ in self.parts}))

    def frames(self) -> Iterator[Frame]:
        """The frames, one by one: (size, size, 3) uint8 RGB."""
        for clip, indices in self.parts:
            yield from clip.read(indices)

    def __len__(self) -> int:
        return sum(len(indices) for _, indices in self.parts)


@dataclass(frozen=True)
class StreamOptions:
    """How a stream is cut.

    `first_classes`: classes in the first batch (all, where the source has fewer). `visits`: in how
    many batches each class comes; a class with less material comes less often. `batch_frames`: at
    most so many frames of each class in a batch, evenly spread; None takes all. `seed`: which
    classes come first, and in which order the rest.
    """

    first_classes: int = 10
    visits: int = 2
    batch_frames: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"first_classes": 1, "visits": 1, "batch_frames": 1, "seed": 0}
        for key, low in least.items():
            value = getattr(self, key)
            if key == "batch_frames" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise InputError(f"Expected {key} as an integer of at least {low}, got {value!r}")


def whole_batch(source: FrameSource, batch_frames: int | None = None) -> Batch:
    """All training frames in one batch, at most `batch_frames` of each class, evenly spread."""
    parts = tuple((clip, tuple(range(clip.length))) for clip in source.train_clips())
    return Batch(_cap(parts, batch_frames))


def make_stream(
    source: FrameSource,
    options: StreamOptions | None = None,
    *,
    known: frozenset[int] = frozenset(),
) -> list[Batch]:
    """The source's own batches where its authors published lists, else a NIC stream.

    Published lists decide everything but `batch_frames`; `known` is as in `nic_stream`.
    """
    options = options or StreamOptions()
    if not isinstance(source, ListedSource):
        return nic_stream(source, options, known=known)
    return [Batch(_cap(parts, options.batch_frames)) for parts in source.listed_batches()]


def describe_stream(
    source: FrameSource, options: StreamOptions | None = None
) -> dict[str, str | int | None]:
    """What a report prints about a stream: the data set, the protocol and the options it heeds."""
    options = options or StreamOptions()
    facts: dict[str, str | int | None] = {"dataset": source.name, "protocol": "nic"}
    if isinstance(source, ListedSource):
        return {**facts, "protocol": source.protocol, "batch_frames": options.batch_frames}
    facts.update(asdict(options))
    facts["first_classes"] = min(options.first_classes, len(source.classes))
    return facts


def nic_stream(
    source: FrameSource,
    options: StreamOptions | None = None,
    *,
    known: frozenset[int] = frozenset(),
) -> list[Batch]:
    """A first batch of several classes, then batches of one class each, old and new mixed.

    Classes that are `known` already have had their first visit: only later ones come.

    A video is one visit of its class; still images are shuffled and cut into as many visits as
    asked for. As in NICv2, new classes arrive over the whole stream; in a plain shuffle of many
    visits almost every class would arrive near the start.

    INVARIANT: no frame is in two batches, no batch is empty, and a class is in the first batch
    if and only if it is one of the first classes.
    """
    options = options or StreamOptions()
    rng = np.random.default_rng(options.seed)
    clips: dict[int, list[Clip]] = {label: [] for label in range(len(source.classes))}
    for clip in source.train_clips():
        clips[clip.label].append(clip)
    for label, of_class in clips.items():
        if not of_class:
            raise DataError(
                f"Expected training frames of class {source.classes[label]!r} in {source.name}, "
                "got none; add some or remove the class"
            )
    if not clips:
        raise DataError(f"Expected at least one class in {source.name}, got none")

    visits = [
        [_cap(parts, options.batch_frames) for parts in _visits(clips[label], options.visits, rng)]
        for label in clips
    ]
    order = [label for label in rng.permutation(len(visits)).tolist() if label not in known]
    first = set(order[: options.first_classes])
    opening = Batch(tuple(part for label in sorted(first) for part in visits[label][0]))
    rest = [Batch(parts) for parts in _mix(visits, first | known, rng)]
    stream = [opening, *rest] if first else rest
    if not stream:
        raise InputError(
            f"Expected a class of {source.name} to teach, got only classes that the bundle knows; "
            "add others, or let them come again with --visits 2"
        )
    return stream


def _mix(
    visits: list[list[tuple[Part, ...]]], first: set[int], rng: np.random.Generator
) -> Iterator[tuple[Part, ...]]:
    """The visits after the first batch: new classes at an even pace, old ones between them."""
    new = [label for label in rng.permutation(len(visits)).tolist() if label not in first]
    old = [parts for label in sorted(first) for parts in visits[label][1:]]
    left = sum(map(len, visits)) - len(first)
    # The last class to arrive still needs room for its later visits.
    tail = max(map(len, visits)) - 1
    while left:
        if new and (not old or rng.uniform() * max(left - tail, 1) < len(new)):
            arrived = visits[new.pop()]
            old += arrived[1:]
            yield arrived[0]
        else:
            yield old.pop(int(rng.integers(len(old))))
        left -= 1


def _visits(clips: list[Clip], visits: int, rng: np.random.Generator) -> list[tuple[Part, ...]]:
    """Up to `visits` portions of a class, each of one video or of some still images."""
    shuffled = [clips[i] for i in rng.permutation(len(clips))]
    videos = [clip for clip in shuffled if clip.length > 1]
    stills = [clip for clip in shuffled if clip.length == 1]
    cuts = min(len(stills), max(1, visits - len(videos)))
    edges = [len(stills) * k // cuts for k in range(cuts + 1)] if cuts else [0]
    portions: list[tuple[Part, ...]] = [((v, tuple(range(v.length))),) for v in videos]
    for start, stop in zip(edges, edges[1:]):
        portions.append(tuple((clip, (0,)) for clip in stills[start:stop]))
    return [portions[i] for i in rng.permutation(len(portions))[:visits]]


def _cap(parts: tuple[Part, ...], limit: int | None) -> tuple[Part, ...]:
    """At most `limit` frames of each class, evenly spread over its frames in order."""
    if limit is None:
        return parts
    total: dict[int, int] = {}
    for clip, indices in parts:
        total[clip.label] = total.get(clip.label, 0) + len(indices)
    keep = {label: set(evenly(n, limit)) for label, n in total.items()}
    seen = dict.fromkeys(total, 0)
    kept: list[Part] = []
    for clip, indices in parts:
        start = seen[clip.label]
        chosen = tuple(i for k, i in enumerate(indices, start) if k in keep[clip.label])
        seen[clip.label] = start + len(indices)
        if chosen:
            kept.append((clip, chosen))
    return tuple(kept)
