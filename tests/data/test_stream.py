"""A NIC stream keeps its invariants for any source and any options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrtflite.data import (
    Batch,
    Clip,
    StreamOptions,
    describe_stream,
    make_stream,
    ni_stream,
    nic_stream,
    whole_batch,
)
from lrtflite.errors import DataError, InputError


@dataclass
class Toy:
    """Classes made of clips of the given lengths; a frame is filled with its index."""

    lengths: Sequence[Sequence[int]]
    name: str = "toy"
    size: int = 1

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(f"c{i}" for i in range(len(self.lengths)))

    def train_clips(self) -> list[Clip]:
        return [
            Clip(label, f"c{label}/{k}", length, read)
            for label, of_class in enumerate(self.lengths)
            for k, length in enumerate(of_class)
        ]

    def test_clips(self) -> list[Clip]:
        return []


@dataclass
class ListedToy(Toy):
    protocol: str = "published"

    def listed_batches(self) -> list[tuple[tuple[Clip, tuple[int, ...]], ...]]:
        first, second = self.train_clips()
        return [((second, (1, 2, 3, 7)), (first, (4,))), ((first, (0, 1, 2, 3)),)]


def read(indices: Sequence[int]) -> Iterator[np.ndarray]:
    return (np.full((1, 1, 3), i, np.uint8) for i in indices)


def frames_of(batch: Batch) -> list[tuple[str, int]]:
    return [(clip.name, i) for clip, indices in batch.parts for i in indices]


sources = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=7), min_size=1, max_size=8)
options = st.builds(
    StreamOptions,
    first_classes=st.integers(1, 10),
    visits=st.integers(1, 6),
    batch_frames=st.none() | st.integers(1, 8),
    seed=st.integers(0, 5),
)


@settings(deadline=None)
@given(sources, options)
def test_invariants_of_every_stream(lengths: list[list[int]], options: StreamOptions) -> None:
    source = Toy(lengths)
    stream = nic_stream(source, options)
    assert stream == nic_stream(source, options)

    seen = [frame for batch in stream for frame in frames_of(batch)]
    assert len(seen) == len(set(seen))
    assert set(seen) <= {(c.name, i) for c in source.train_clips() for i in range(c.length)}

    first, *later = stream
    assert len(first.classes) == min(options.first_classes, len(lengths))
    assert all(len(batch.classes) == 1 for batch in later)
    assert {label for batch in stream for label in batch.classes} == set(range(len(lengths)))

    visits = Counter(label for batch in stream for label in batch.classes)
    for label, of_class in enumerate(lengths):
        assert visits[label] == min(options.visits, len(of_class))
    for batch in stream:
        assert len(batch) == len(batch.labels) == len(list(batch.frames())) > 0
        assert batch.classes == tuple(sorted(set(batch.labels)))
        if options.batch_frames:
            assert max(Counter(batch.labels).values()) <= options.batch_frames


@settings(deadline=None)
@given(
    images=st.lists(st.integers(1, 30), min_size=1, max_size=5),
    visits=st.integers(1, 6),
    seed=st.integers(0, 5),
)
def test_every_image_comes_once_in_even_portions(images: list[int], visits: int, seed: int) -> None:
    stream = nic_stream(Toy([[1] * n for n in images]), StreamOptions(visits=visits, seed=seed))
    portions: dict[int, list[int]] = {label: [] for label in range(len(images))}
    for batch in stream:
        for label, count in Counter(batch.labels).items():
            portions[label].append(count)
    for label, n in enumerate(images):
        assert sum(portions[label]) == n
        assert max(portions[label]) - min(portions[label]) <= 1


def test_a_video_is_one_visit() -> None:
    stream = nic_stream(Toy([[5, 6, 7]] * 3), StreamOptions(first_classes=1, visits=2))
    assert len(stream) == 6
    for batch in stream:
        ((clip, indices),) = batch.parts
        assert indices == tuple(range(clip.length))


def test_images_next_to_videos_are_separate_visits() -> None:
    stream = nic_stream(Toy([[1, 4, 1, 1, 1]]), StreamOptions(visits=3))
    assert sorted(len(batch) for batch in stream) == [2, 2, 4]


def test_new_classes_arrive_over_the_whole_stream() -> None:
    """In NICv2-391 the 40 new classes arrive from batch 17 to 340, half of them after 172."""
    arrivals = []
    for seed in range(5):
        stream = nic_stream(Toy([[3] * 8] * 50), StreamOptions(visits=8, seed=seed))
        assert len(stream) == 391
        first: dict[int, int] = {}
        for number, batch in enumerate(stream):
            for label in batch.classes:
                first.setdefault(label, number)
        arrivals.append(sorted(first.values())[10:])
        revisits = [b.classes[0] for n, b in enumerate(stream) if first[b.classes[0]] < n]
        assert len(revisits) == 350
    middles = [np.median(of_seed) for of_seed in arrivals]
    assert 150 < np.mean(middles) < 240
    assert min(of_seed[-1] for of_seed in arrivals) > 300


def test_seed_decides_the_order() -> None:
    source = Toy([[2] * 4] * 12)
    orders = {
        tuple(batch.classes for batch in nic_stream(source, StreamOptions(seed=seed)))
        for seed in range(4)
    }
    assert len(orders) == 4


def test_a_cap_spreads_over_the_video() -> None:
    (batch,) = nic_stream(Toy([[10]]), StreamOptions(visits=1, batch_frames=4))
    assert batch.parts[0][1] == (0, 2, 5, 7)
    assert [int(frame[0, 0, 0]) for frame in batch.frames()] == [0, 2, 5, 7]


def test_published_lists_are_the_stream() -> None:
    source = ListedToy([[5], [8]])
    stream = make_stream(source)
    assert [frames_of(batch) for batch in stream] == [
        [("c1/0", 1), ("c1/0", 2), ("c1/0", 3), ("c1/0", 7), ("c0/0", 4)],
        [("c0/0", 0), ("c0/0", 1), ("c0/0", 2), ("c0/0", 3)],
    ]
    assert stream[0].labels == (1, 1, 1, 1, 0)
    assert stream[0].classes == (0, 1)
    capped = make_stream(source, StreamOptions(batch_frames=2))
    assert frames_of(capped[0]) == [("c1/0", 1), ("c1/0", 3), ("c0/0", 4)]
    facts = describe_stream(source, StreamOptions(batch_frames=2))
    assert facts == {"dataset": "toy", "protocol": "published", "batch_frames": 2}


def test_other_sources_get_a_nic_stream_and_say_so() -> None:
    source = Toy([[2, 2]] * 4)
    wanted = StreamOptions(first_classes=9, seed=3)
    assert make_stream(source, wanted) == nic_stream(source, wanted)
    assert describe_stream(source, wanted) == {
        "dataset": "toy",
        "protocol": "nic",
        "first_classes": 4,
        "visits": 2,
        "batch_frames": None,
        "seed": 3,
    }


def visits_of(stream: Sequence[Batch]) -> list[list[tuple[str, int]]]:
    """Return the frames of each class in each batch, in no order."""
    return sorted(
        sorted(
            (clip.name, i) for clip, indices in batch.parts if clip.label == label for i in indices
        )
        for batch in stream
        for label in batch.classes
    )


def test_a_stream_of_one_seed_stays_as_it_was() -> None:
    """The expected streams were recorded before the split had a seed of its own."""
    source = Toy([[1] * 4, [1] * 4, [3, 3, 3]])
    for split_seed in (None, 5):
        wanted = StreamOptions(first_classes=1, seed=5, split_seed=split_seed)
        assert [[clip.name for clip, _ in batch.parts] for batch in nic_stream(source, wanted)] == [
            ["c1/1", "c1/3"],
            ["c1/2", "c1/0"],
            ["c0/3", "c0/1"],
            ["c0/2", "c0/0"],
            ["c2/2"],
            ["c2/0"],
        ]
        assert [[clip.name for clip, _ in batch.parts] for batch in ni_stream(source, wanted)] == [
            ["c0/3", "c0/1", "c1/1", "c1/3", "c2/2"],
            ["c0/2", "c0/0", "c1/2", "c1/0", "c2/0"],
        ]


@pytest.mark.parametrize("make", [nic_stream, ni_stream])
def test_streams_of_one_split_differ_in_order_only(make: Callable[..., list[Batch]]) -> None:
    # Four visits of two pictures each; two of the three videos are drawn.
    source = Toy([[1] * 8, [1] * 8, [1] * 8, [4, 5, 6]])
    streams = [
        make(source, StreamOptions(first_classes=1, visits=2, seed=seed, split_seed=7))
        for seed in range(7)
    ]
    assert len({str(visits_of(stream)) for stream in streams}) == 1
    assert len({str([frames_of(batch) for batch in stream]) for stream in streams}) > 3
    others = [make(source, StreamOptions(visits=2, seed=seed)) for seed in range(7)]
    assert len({str(visits_of(stream)) for stream in others}) > 3


def test_the_split_is_a_fact_only_where_it_was_given() -> None:
    source = Toy([[2, 2]])
    assert "split_seed" not in describe_stream(source, StreamOptions(seed=3))
    assert describe_stream(source, StreamOptions(split_seed=4))["split_seed"] == 4


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("first_classes", 0),
        ("split_seed", -1),
        ("first_classes", 2.5),
        ("visits", 0),
        ("visits", None),
        ("visits", True),
        ("batch_frames", 0),
        ("seed", -1),
    ],
)
def test_options_out_of_range_are_refused(key: str, value: object) -> None:
    with pytest.raises(InputError, match=f"Expected {key} as an integer of at least .*, got"):
        StreamOptions(**{key: value})  # type: ignore[arg-type]


def test_a_class_without_training_frames_is_refused() -> None:
    with pytest.raises(DataError, match="Expected training frames of class 'c1' in toy, got none"):
        nic_stream(Toy([[3], []]))
    with pytest.raises(DataError, match="Expected at least one class in toy, got none; add one"):
        nic_stream(Toy([]))


def test_known_classes_have_only_later_visits() -> None:
    source = Toy([[3] * 4] * 6)
    options = StreamOptions(first_classes=1, visits=3, seed=5)
    stream = nic_stream(source, options, known=frozenset({0, 2, 5}))
    visits = [label for batch in stream for label in batch.classes]
    assert [visits.count(label) for label in range(6)] == [2, 3, 2, 3, 3, 2]
    # The first batch has a new class.
    assert stream[0].classes[0] in (1, 3, 4)
    # Without known classes the stream stays as it was.
    assert nic_stream(source, options, known=frozenset()) == nic_stream(source, options)


def test_a_stream_of_known_classes_alone() -> None:
    source = Toy([[3] * 4] * 3)
    everything = frozenset(range(3))
    stream = nic_stream(source, StreamOptions(visits=2), known=everything)
    assert sorted(batch.classes for batch in stream) == [(0,), (1,), (2,)]
    with pytest.raises(InputError, match=r"classes that the bundle knows; .*--visits 2"):
        nic_stream(source, StreamOptions(visits=1), known=everything)


def test_a_whole_batch_has_every_training_frame() -> None:
    source = Toy([[3, 2], [4]])
    assert len(whole_batch(source)) == 9
    # The first class keeps four of its five frames, the second all four.
    capped = whole_batch(source, 4)
    assert [len(indices) for _, indices in capped.parts] == [3, 1, 4]


@settings(deadline=None)
@given(sources, options)
def test_new_instances_show_every_class_from_the_start(
    lengths: list[list[int]], options: StreamOptions
) -> None:
    source = Toy(lengths)
    stream = ni_stream(source, options)
    seen = [frame for batch in stream for frame in frames_of(batch)]
    assert len(seen) == len(set(seen))
    assert stream[0].classes == tuple(range(len(lengths)))
    assert all(len(batch) for batch in stream)
    # A class visits one batch after the other, with the frames that `nic_stream` would show it.
    nic = nic_stream(source, options)
    for label in range(len(lengths)):
        visits = [label in batch.classes for batch in stream]
        assert visits == sorted(visits, reverse=True)
        assert sum(visits) == sum(label in batch.classes for batch in nic)


def test_new_instances_skip_the_first_visit_of_known_classes() -> None:
    source = Toy([[3, 3], [3, 3]])
    stream = ni_stream(source, StreamOptions(visits=2), known=frozenset({1}))
    assert [batch.classes for batch in stream] == [(0,), (0, 1)]
    with pytest.raises(InputError, match="only classes that the bundle knows"):
        ni_stream(source, StreamOptions(visits=1), known=frozenset({0, 1}))
