"""The frames a training run reads, and the options that choose them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from coloured_source import COLOURS, ColouredSource
from lrtflite.data import Clip, StreamOptions, make_stream
from lrtflite.errors import InputError
from lrtflite.host.training.data import Frames, TrainData, read_frames, select, split_parts
from lrtflite.host.training.options import BACKBONE, FIRST_BATCH, TrainOptions


def read(source: ColouredSource, options: TrainOptions) -> TrainData:
    return read_frames(select(source, options), size=source.size, on_progress=lambda _: None)


def images(frames: Frames) -> NDArray[Any]:
    """Return frames that are kept in RAM."""
    assert isinstance(frames.images, np.ndarray)
    return frames.images


def test_first_batch_is_the_streams_own() -> None:
    source = ColouredSource()
    options = replace(FIRST_BATCH, first_classes=2, seed=3, patience=None)
    selection = select(source, options)
    first = make_stream(source, StreamOptions(first_classes=2, seed=3))[0]
    assert tuple(selection.train) == first.parts
    assert selection.labels == tuple(source.classes[label] for label in first.classes)
    data = read(source, options)
    np.testing.assert_array_equal(images(data.train), np.stack(list(first.frames())))
    apart = replace(options, split_seed=4)
    first = make_stream(source, StreamOptions(first_classes=2, seed=3, split_seed=4))[0]
    assert tuple(select(source, apart).train) == first.parts


def test_slots_belong_to_their_frames() -> None:
    source = ColouredSource(noise=5)
    options = replace(FIRST_BATCH, first_classes=3, seed=1)
    labels = select(source, options).labels
    data = read(source, options)
    for frames in (data.train, data.held_out):
        for image, slot in zip(images(frames), frames.slots):
            np.testing.assert_allclose(image.mean((0, 1)), COLOURS[labels[slot]], atol=3)


def test_backbone_takes_some_frames_of_every_video() -> None:
    selection = select(ColouredSource(frames=6), replace(BACKBONE, frames_per_video=3))
    assert [(clip.name, indices) for clip, indices in selection.train[:2]] == [
        ("red/0", (0, 2, 4)),
        ("red/1", (0, 2, 4)),
    ]
    assert len(selection.train) == 8
    assert selection.validation == []
    assert [indices for _, indices in selection.held_out] == [(0, 1, 2, 3, 4)[:5]] * 4


def test_progress_counts_every_frame() -> None:
    source = ColouredSource(clips=1, frames=2)
    seen: list[tuple[int, int | None]] = []
    read_frames(
        select(source, BACKBONE), size=32, on_progress=lambda p: seen.append((p.done, p.total))
    )
    assert seen == [(i, 16) for i in range(1, 17)]


def test_digest_sees_frames_and_slots() -> None:
    small = read(ColouredSource(clips=1, frames=2), BACKBONE)
    again = read(ColouredSource(clips=1, frames=2), BACKBONE)
    assert small.digest() == again.digest()
    images(again.train)[0, 0, 0, 0] ^= 1
    assert small.digest() != again.digest()
    images(again.train)[0, 0, 0, 0] ^= 1
    again.train.slots[0] += 1
    assert small.digest() != again.digest()


def clip(label: int, length: int) -> Clip:
    return Clip(label, f"{label}", length, lambda indices: iter(()))


def test_split_sets_whole_clips_aside() -> None:
    parts = [(clip(0, 4), (0, 1, 2, 3)) for _ in range(5)]
    kept, aside = split_parts(parts, 0.3)
    assert (len(kept), len(aside)) == (3, 2)


def test_split_cuts_the_only_clip_of_a_class() -> None:
    kept, aside = split_parts([(clip(0, 9), tuple(range(9))), (clip(1, 1), (0,))], 0.2)
    assert [indices for _, indices in kept] == [(0, 1, 2, 3, 4, 5, 6), (0,)]
    assert [indices for _, indices in aside] == [(7, 8)]


def test_a_few_videos_give_their_ends() -> None:
    videos = [(clip(0, 20), tuple(range(20))), (clip(0, 10), tuple(range(10)))]
    kept, aside = split_parts(videos, 0.1)
    assert [indices for _, indices in kept] == [tuple(range(18)), tuple(range(9))]
    assert [indices for _, indices in aside] == [(18, 19), (9,)]


def test_classes_of_a_few_frames_keep_them_all() -> None:
    three_pictures = [(clip(0, 1), (0,)) for _ in range(3)]
    four_pictures = [(clip(1, 1), (0,)) for _ in range(4)]
    kept, aside = split_parts([*three_pictures, *four_pictures, (clip(2, 3), (0, 1, 2))], 0.1)
    assert [part[0].label for part in kept] == [0, 0, 0, 1, 1, 1, 2]
    assert [part[0].label for part in aside] == [1]
    selection = select(ColouredSource(clips=1, frames=3), replace(BACKBONE, patience=2))
    assert (len(selection.train), selection.validation) == (4, [])


def test_all_classes_bring_all_their_videos() -> None:
    source = ColouredSource(clips=3)
    selection = select(source, replace(FIRST_BATCH, first_classes=None, patience=None))
    assert [part for part, _ in selection.train] == source.train_clips()
    assert selection.labels == source.classes
    # A stream of one visit has one video of each.
    stream = select(source, replace(FIRST_BATCH, first_classes=4, visits=1, patience=None))
    assert len(stream.train) == 4


@pytest.mark.parametrize(
    "change",
    [
        {"schedule": "other"},
        {"schedule": "backbone"},  # with the first classes of FIRST_BATCH
        {"epochs": 0},
        {"batch_size": 1},
        {"lr": -1.0},
        {"lr": float("nan")},
        {"lower_lr": -0.1},
        {"momentum": 1.0},
        {"patience": 0},
        {"frames_per_video": 0},
    ],
)
def test_impossible_options_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"^Expected"):
        replace(FIRST_BATCH, **change)  # type: ignore[arg-type]


def test_first_batch_has_the_papers_optimiser() -> None:
    assert (FIRST_BATCH.momentum, FIRST_BATCH.weight_decay) == (0.9, 5e-4)
    assert FIRST_BATCH.batch_size == 128
    assert not FIRST_BATCH.cosine
    assert not FIRST_BATCH.augment


def test_layers_below_the_last_one_train_up_to_conv6_dw() -> None:
    layers = ("images", "conv6/dw", "conv6/sep", "pool6")
    found = [replace(FIRST_BATCH, freeze_below=layer).trains_lower_layers for layer in layers]
    assert found == [True, True, False, False]


def test_the_last_layer_has_a_rate_of_its_own() -> None:
    assert replace(BACKBONE, lr=0.4).rates == (0.4, 0.4)
    assert replace(BACKBONE, lr=0.4, lower_lr=0.0).rates == (0.4, 0.0)
