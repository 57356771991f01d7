"""Cut a source's training clips into batches: NIC, "new instances and classes", and NI.

A device learns one batch in one session. In NIC the first batch has several classes, and each later
batch has a single class, new or seen before (Lomonaco et al., NICv2). In NI, "new instances", every
batch has all classes, each in frames of its own.
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
    """The frames that one session learns: parts of clips, read only during iteration."""

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
        """Yield the frames one by one, (size, size, 3) uint8 RGB."""
        for clip, indices in self.parts:
            yield from clip.read(indices)

    def __len__(self) -> int:
        return sum(len(indices) for _, indices in self.parts)


@dataclass(frozen=True)
class StreamOptions:
    """Settings of a stream.

    - `first_classes`: number of classes in the first batch, or all if the source has fewer.
    - `visits`: number of batches that show each class; fewer for a class with too few clips.
    - `batch_frames`: maximum number of frames per class in a batch, evenly spread; None uses all.
    - `seed`: decides which classes are in the first batch, and the order of the rest.
    - `split_seed`: decides which frames belong to which visit; None uses `seed`. With one
      `split_seed`, streams of several seeds have the same visits in another order.
    """

    first_classes: int = 10
    visits: int = 2
    batch_frames: int | None = None
    seed: int = 0
    split_seed: int | None = None

    def __post_init__(self) -> None:
        least = {"first_classes": 1, "visits": 1, "batch_frames": 1, "seed": 0, "split_seed": 0}
        for key, low in least.items():
            value = getattr(self, key)
            if key in ("batch_frames", "split_seed") and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise InputError(
                    f"Expected {key} as an integer of at least {low}, got {value!r}",
                    f"the default is {getattr(type(self), key)}",
                )

    @property
    def facts(self) -> dict[str, int | None]:
        """Return every setting by its name, `split_seed` only if it was given."""
        facts: dict[str, int | None] = asdict(self)
        if self.split_seed is None:
            del facts["split_seed"]
        return facts


def whole_batch(
    source: FrameSource, batch_frames: int | None = None, *, held_out: bool = False
) -> Batch:
    """Return one batch of all training frames, at most `batch_frames` per class, evenly spread.

    With `held_out`, the test frames follow the training frames of each class.
    """
    clips = list(source.train_clips())
    if held_out:
        clips = sorted([*clips, *source.test_clips()], key=lambda clip: clip.label)
    parts = tuple((clip, tuple(range(clip.length))) for clip in clips)
    return Batch(_cap(parts, batch_frames))


def make_stream(
    source: FrameSource,
    options: StreamOptions | None = None,
    *,
    known: frozenset[int] = frozenset(),
) -> list[Batch]:
    """Return the source's published batches, or a NIC stream if it has none.

    Published batches ignore all options except `batch_frames`; `known` is as in `nic_stream`.
    """
    options = options or StreamOptions()
    if not isinstance(source, ListedSource):
        return nic_stream(source, options, known=known)
    return [Batch(_cap(parts, options.batch_frames)) for parts in source.listed_batches()]


def describe_stream(
    source: FrameSource, options: StreamOptions | None = None
) -> dict[str, str | int | None]:
    """Return a report's facts about a stream: data set, protocol and the options in use."""
    options = options or StreamOptions()
    facts: dict[str, str | int | None] = {"dataset": source.name, "protocol": "nic"}
    if isinstance(source, ListedSource):
        return {**facts, "protocol": source.protocol, "batch_frames": options.batch_frames}
    facts.update(options.facts)
    facts["first_classes"] = min(options.first_classes, len(source.classes))
    return facts


def nic_stream(
    source: FrameSource,
    options: StreamOptions | None = None,
    *,
    known: frozenset[int] = frozenset(),
) -> list[Batch]:
    """Return a first batch of several classes, then batches of one class each, old and new mixed.

    A visit is one batch that shows a class. Labels in `known` have had their first visit before the
    stream begins, so the stream has only their later visits.

    A video is one visit of its class. Still images are shuffled and divided among `visits`. As in
    NICv2, new classes arrive throughout the stream; in a plain shuffle of many visits almost every
    class would arrive near the start.

    INVARIANT: no frame is in two batches, no batch is empty, and a class is in the first batch
    if and only if it is one of the first classes.
    """
    options = options or StreamOptions()
    visits, rng = _all_visits(source, options)
    order = [label for label in rng.permutation(len(visits)).tolist() if label not in known]
    first = set(order[: options.first_classes])
    opening = Batch(tuple(part for label in sorted(first) for part in visits[label][0]))
    rest = [Batch(parts) for parts in _mix(visits, first | known, rng)]
    stream = [opening, *rest] if first else rest
    if not stream:
        raise InputError(
            f"Expected a new class in {source.name}, got only classes that the bundle knows",
            "add others, or show these again with --visits 2",
        )
    return stream


def ni_stream(
    source: FrameSource,
    options: StreamOptions | None = None,
    *,
    known: frozenset[int] = frozenset(),
) -> list[Batch]:
    """Return batches of all classes, as in the paper's OpenLORIS: batch k has visit k of each.

    Visits are those of `nic_stream`. Labels in `known` have had their first visit before the stream
    begins. A class with fewer visits is missing from the last batches.

    INVARIANT: no frame is in two batches, no batch is empty.
    """
    visits, _ = _all_visits(source, options or StreamOptions())
    stream = []
    for number in range(max(map(len, visits))):
        parts = tuple(
            part
            for label, of_class in enumerate(visits)
            if number < len(of_class) and not (number == 0 and label in known)
            for part in of_class[number]
        )
        if parts:
            stream.append(Batch(parts))
    if not stream:
        raise InputError(
            f"Expected new frames in {source.name}, got only classes that the bundle knows",
            "add others, or show these again with --visits 2",
        )
    return stream


def _all_visits(
    source: FrameSource, options: StreamOptions
) -> tuple[list[list[tuple[Part, ...]]], np.random.Generator]:
    """Return the visits of each class, and the generator that decides the order of classes.

    Raise DataError for a class without frames.
    """
    clips: dict[int, list[Clip]] = {label: [] for label in range(len(source.classes))}
    for clip in source.train_clips():
        clips[clip.label].append(clip)
    for label, of_class in clips.items():
        if not of_class:
            raise DataError(
                f"Expected training frames of class {source.classes[label]!r} in {source.name}, "
                "got none",
                "add some or remove the class",
            )
    if not clips:
        raise DataError(f"Expected at least one class in {source.name}, got none", "add one")
    seed = options.seed if options.split_seed is None else options.split_seed
    rng = np.random.default_rng(seed)
    visits = [
        [_cap(parts, options.batch_frames) for parts in _visits(clips[label], options.visits, rng)]
        for label in clips
    ]
    if seed == options.seed:
        return visits, rng
    order = np.random.default_rng(options.seed)
    shuffled = [[of_class[i] for i in order.permutation(len(of_class))] for of_class in visits]
    return shuffled, order


def _mix(
    visits: list[list[tuple[Part, ...]]], first: set[int], rng: np.random.Generator
) -> Iterator[tuple[Part, ...]]:
    """Yield the visits after the first batch: new classes at an even pace, old ones between."""
    new = [label for label in rng.permutation(len(visits)).tolist() if label not in first]
    old = [parts for label in sorted(first) for parts in visits[label][1:]]
    left = sum(map(len, visits)) - len(first)
    # Leave room for the later visits of the last class to arrive.
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
    """Return up to `visits` portions of a class, each one video or some still images."""
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
    """Keep at most `limit` frames of each class, evenly spread over its frames in order."""
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
