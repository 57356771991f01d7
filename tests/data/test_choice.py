"""`?classes=`: some classes of any data set."""

from __future__ import annotations

import pickle
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lrtflite.data import FrameSource, ListedSource, make_stream, open_source
from lrtflite.data.choice import ClassChoice
from lrtflite.errors import DataError

NAMES = ("ball", "Cup", "mug", "mug big", "stapler")


@pytest.fixture
def things(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name).mkdir()
        for k in range(6):
            Image.new("RGB", (4, 4), (k, len(name), 0)).save(tmp_path / name / f"{k}.png")
    return tmp_path


def sides(source: FrameSource, name: str) -> list[list[str]]:
    """Return the names of a class's clips for training and for testing."""
    label = source.classes.index(name)
    both = (source.train_clips(), source.test_clips())
    return [[clip.name for clip in clips if clip.label == label] for clips in both]


@pytest.mark.parametrize(
    ("text", "picked"),
    [
        ("mug", (2,)),
        ("stapler,Cup", (1, 4)),  # in the data set's order
        (" mug big , ball ", (0, 3)),
        ("3", (0, 1, 2)),
        ("5", (0, 1, 2, 3, 4)),
        ("mug,", (2,)),
    ],
)
def test_classes_are_picked(text: str, picked: tuple[int, ...]) -> None:
    assert ClassChoice.parse(text).pick(NAMES, of="things") == picked


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mgu", "Expected classes of things, got 'mgu'; did you mean 'mug'?"),
        ("cup", "Expected classes of things, got 'cup'; did you mean 'Cup'?"),
        (
            "xylophone",
            "Expected classes of things, got 'xylophone'; "
            "choose from ball, Cup, mug, mug big, stapler",
        ),
        ("mug,mug", "Expected each name once after classes=, got 'mug' twice; remove one"),
        (
            "6",
            "Expected classes=N with N of at most 5, the classes of things, got 6; "
            "give a smaller number",
        ),
        ("0", "Expected classes=N with N of at least 1, got 0; leave it out for all classes"),
        (
            ",",
            "Expected names or a number after classes=, got ','; "
            "write classes=mug,stapler or classes=20",
        ),
        (
            "-3",
            "Expected classes of things, got '-3'; choose from ball, Cup, mug, mug big, stapler",
        ),
    ],
)
def test_a_bad_choice_is_refused(text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        ClassChoice.parse(text).pick(NAMES, of="things")
    assert str(caught.value) == message


def test_a_class_whose_name_is_a_number() -> None:
    names = ("10", "20", "30")
    assert ClassChoice.parse("2").pick(names, of="x") == (0, 1)
    assert ClassChoice.parse("20,").pick(names, of="x") == (1,)
    assert ClassChoice.parse("20,30").pick(names, of="x") == (1, 2)
    with pytest.raises(DataError, match="for the class named 20 write classes=20,"):
        ClassChoice.parse("20").pick(names, of="x")


def test_many_classes_are_not_all_listed() -> None:
    with pytest.raises(DataError, match=r"choose from 0x, 1x, .*, 7x and 92 more$"):
        ClassChoice.parse("nothing").pick([f"{i}x" for i in range(100)], of="x")


def test_a_folder_holds_out_the_same_files(things: Path) -> None:
    whole = open_source(f"folder:{things}", seed=3, size=4)
    some = open_source(f"folder:{things}?classes=stapler,mug&test=0.3333", seed=3, size=4)
    assert some.classes == ("mug", "stapler")
    for name in some.classes:
        assert sides(some, name) == sides(whole, name)
    assert {clip.label for clip in some.train_clips()} == {0, 1}
    for clip in some.test_clips():
        (frame,) = clip.read()
        assert frame[0, 0].tolist() == [int(clip.name[-5]), len(some.classes[clip.label]), 0]
    # Capitals before small letters.
    assert open_source(f"folder:{things}?classes=2").classes == ("Cup", "ball")


def test_files_of_other_classes_are_not_checked(things: Path) -> None:
    (things / "ball" / "0.png").write_bytes(b"")
    (things / "ball" / "notes.heic").write_bytes(b"")
    seen: list[tuple[int, int | None]] = []
    open_source(
        f"folder:{things}?classes=mug", on_progress=lambda p: seen.append((p.done, p.total))
    )
    assert seen == [(n, 6) for n in range(1, 7)]


def test_an_accent_in_either_form(tmp_path: Path) -> None:
    stored, typed = unicodedata.normalize("NFD", "théière"), unicodedata.normalize("NFC", "théière")
    assert stored != typed
    (tmp_path / stored).mkdir()
    for k in range(3):
        Image.new("RGB", (4, 4)).save(tmp_path / stored / f"{k}.png")
    for given in (stored, typed):
        assert open_source(f"folder:{tmp_path}?classes={given}").classes == (typed,)


def test_drawn_objects_do_not_depend_on_the_choice() -> None:
    whole = open_source("synthetic", size=32, seed=5)
    some = open_source("synthetic?classes=cup-2,can-1&frames=25", size=32, seed=5)
    assert set(some.classes) == {"can-1", "cup-2"}
    assert (len(some.train_clips()), len(some.test_clips())) == (2 * 8, 2 * 3)
    for name in some.classes:
        assert sides(some, name) == sides(whole, name)
    by_name = {clip.name: clip for clip in whole.train_clips()}
    again = pickle.loads(pickle.dumps(some))
    for mine, copied in zip(some.train_clips()[::5], again.train_clips()[::5]):
        (expected,) = by_name[mine.name].read([7])
        np.testing.assert_array_equal(next(mine.read([7])), expected)
        np.testing.assert_array_equal(next(copied.read([7])), expected)
    assert open_source("synthetic?classes=7").classes == whole.classes[:7]
    with pytest.raises(DataError, match="Expected classes of synthetic, got 'cup'; did you mean"):
        open_source("synthetic?classes=cup")


@pytest.fixture
def core50(tmp_path: Path) -> Path:
    """Objects 1, 2 and 6 in scenes 1 to 3, one frame each; three published batches."""

    def line(scene: int, thing: int) -> str:
        return f"s{scene}/o{thing}/C_{scene:02d}_{thing:02d}_000.png {thing - 1}\n"

    for scene in (1, 2, 3):
        for thing in (1, 2, 6):
            path = tmp_path / "core50_128x128" / line(scene, thing).split()[0]
            path.parent.mkdir(parents=True)
            Image.new("RGB", (8, 8), (scene, thing, 0)).save(path)
    run = tmp_path / "batches_filelists" / "NIC_v2_391" / "run0"
    run.mkdir(parents=True)
    batches = [[(1, 6), (1, 1)], [(2, 2)], [(2, 1)]]
    for number, batch in enumerate(batches):
        text = "".join(line(*recording) for recording in batch)
        (run / f"train_batch_{number:02d}_filelist.txt").write_text(text)
    (run / "test_filelist.txt").write_text("".join(line(3, thing) for thing in (1, 2, 6)))
    return tmp_path


def test_published_batches_keep_the_chosen_classes(core50: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    spec = f"core50:{core50}?classes=o6 mobile phone,o2 plug adapter"
    source = open_source(spec, size=8, on_progress=lambda p: seen.append((p.done, p.total)))
    assert source.classes == ("o2 plug adapter", "o6 mobile phone")
    assert isinstance(source, ListedSource)
    assert source.protocol == "NICv2-391 run 0, 2 of 50 classes"
    assert len(seen) == 4
    stream = make_stream(source)
    # The third batch had frames of object 1 only.
    assert [batch.labels for batch in stream] == [(1,), (0,)]
    pixels = [frame[0, 0].tolist() for batch in stream for frame in batch.frames()]
    assert pixels == [[1, 6, 0], [2, 2, 0]]
    assert [(clip.label, clip.name) for clip in source.test_clips()] == [(0, "s3/o2"), (1, "s3/o6")]
    free = open_source(f"core50:{core50}?classes=2&protocol=nic", size=8)
    assert free.classes == ("o1 plug adapter", "o2 plug adapter")
    assert [clip.name for clip in free.train_clips()] == ["s1/o1", "s1/o2", "s2/o1", "s2/o2"]


def test_core50_without_frames_of_a_class(core50: Path) -> None:
    with pytest.raises(DataError, match="Expected training frames of o3 plug adapter in"):
        open_source(f"core50:{core50}?classes=o3 plug adapter")
    with pytest.raises(DataError, match="got 'o6'; did you mean 'o6 mobile phone'"):
        open_source(f"core50:{core50}?classes=o6")
