"""A drawn world: its classes and scenes, smooth videos, and the same pixels for the same seed."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np
import pytest

from lrtflite.data import Clip, open_source
from lrtflite.data.synthetic import SyntheticSource, draw_world
from lrtflite.errors import DataError, InputError

ALPHA = 3  # the plane of an object's sheet with its opacity


def world(seed: int = 1, *, size: int = 128, frames: int | None = None) -> SyntheticSource:
    return draw_world("synthetic", size=size, seed=seed, frames=frames)


def difference(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a.astype(float) - b.astype(float)).mean())


def scenes(clips: Sequence[Clip]) -> list[int]:
    return sorted({int(clip.name.split("/")[0][1:]) for clip in clips})


def test_fifty_objects_in_eleven_scenes_of_which_three_are_for_testing() -> None:
    source = open_source("synthetic", seed=4)

    assert len(source.classes) == len(set(source.classes)) == 50
    assert len({name.split("-")[0] for name in source.classes}) == 10
    assert scenes(source.test_clips()) == [3, 7, 10]  # CORe50's
    assert scenes(source.train_clips()) == [1, 2, 4, 5, 6, 8, 9, 11]
    for clips, videos in ((source.train_clips(), 8), (source.test_clips(), 3)):
        assert np.bincount([clip.label for clip in clips]).tolist() == [videos] * 50
        assert len({clip.name for clip in clips}) == len(clips)


def test_frames_fit_the_size_asked_for() -> None:
    for size in (32, 96, 128, 224):
        (frame,) = world(size=size).test_clips()[0].read([5])
        assert frame.shape == (size, size, 3)
        assert frame.dtype == np.uint8
        assert frame.flags["C_CONTIGUOUS"]
        assert frame.std() > 10


def test_a_smaller_frame_shows_the_same_scene() -> None:
    for number in (10, 60, 110):
        (fine,), (coarse,) = (world(size=n).test_clips()[number].read([5]) for n in (128, 64))
        (other,) = world(size=64).test_clips()[number - 1].read([5])

        halved = fine.reshape(64, 2, 64, 2, 3).mean((1, 3))

        # The rest is sensor noise and sharper edges; another object in the same place is far off.
        assert difference(halved, coarse) < 6
        assert difference(halved, other) > 12


def test_the_seed_decides_everything() -> None:
    for clip, again in list(zip(world(3).train_clips(), world(3).train_clips()))[::97]:
        assert clip == again
        np.testing.assert_array_equal(list(clip.read([0, 7])), list(again.read([0, 7])))

    ours, theirs = world(3), world(4)
    for label in (0, 21, 49):
        assert difference(ours.object(label).sheet, theirs.object(label).sheet) > 5
    assert difference(ours.scene(1).place, theirs.scene(1).place) > 5


def test_any_frame_can_be_drawn_without_the_frames_before_it() -> None:
    clip = world().train_clips()[123]

    in_order = list(clip.read())

    assert len(in_order) == clip.length == 25
    np.testing.assert_array_equal(list(clip.read([4, 24])), [in_order[4], in_order[24]])
    np.testing.assert_array_equal(list(world().train_clips()[123].read([17])), [in_order[17]])


def test_a_longer_video_begins_like_the_shorter_one() -> None:
    short, long = (world(frames=n).train_clips()[40] for n in (5, 60))

    assert (short.length, long.length) == (5, 60)
    np.testing.assert_array_equal(list(short.read()), list(long.read(range(5))))


def test_videos_move_smoothly() -> None:
    near, far = [], []
    for clip in world().train_clips()[::67]:
        video = np.array(list(clip.read()), np.float32)
        # Averaging blocks of pixels removes the sensor noise, which is never smooth.
        video = video.reshape(25, 32, 4, 32, 4, 3).mean((2, 4))
        near.append(difference(video[1:], video[:-1]))
        far.append(difference(video[12:], video[:-12]))

    assert min(near) > 0.3  # every video moves
    assert np.mean(near) < 0.4 * np.mean(far)
    assert max(near) < 10


def test_every_scene_has_its_own_background() -> None:
    source = world()
    places = [source.scene(number).place for number in range(1, 12)]
    lights = [source.scene(number).light for number in range(1, 12)]

    for i, place in enumerate(places):
        assert min(difference(place, other) for other in places[:i] + places[i + 1 :]) > 8
    assert np.std(lights, axis=0).min() > 0.02


def test_objects_of_a_category_share_their_shape_and_differ_in_look() -> None:
    source = world()
    masks = [source.object(label).sheet[ALPHA] > 128 for label in range(50)]
    same = [overlap(masks[a], masks[b]) for a in range(50) for b in range(a) if a // 5 == b // 5]
    unlike = [overlap(masks[a], masks[b]) for a in range(50) for b in range(a) if a // 5 != b // 5]

    assert np.mean(same) > 0.75
    assert np.mean(unlike) < 0.55
    for category in range(10):
        looks = [source.object(5 * category + n).texture for n in range(5)]
        assert min(difference(looks[a], looks[b]) for a in range(5) for b in range(a)) > 15


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    return float((a & b).sum() / (a | b).sum())


def test_clips_travel_to_another_process() -> None:
    clip = world().test_clips()[7]

    again = pickle.loads(pickle.dumps(clip))

    np.testing.assert_array_equal(list(again.read([1])), list(clip.read([1])))


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(DataError, match="got 'synthetik'; use synthetic or synthetic-backbone"):
        draw_world("synthetik")
    with pytest.raises(InputError, match="at least 1 frame per video, got 0"):
        draw_world("synthetic", frames=0)
