"""`core50:PATH` on a small tree, and on the lists that its authors published."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lrtflite.data import ListedSource, StreamOptions, describe_stream, make_stream, open_source
from lrtflite.data.core50 import Core50Lists
from lrtflite.data.core50.lists import read_list
from lrtflite.errors import DataError

FRAMES = 4


def image_name(scene: int, thing: int, frame: int) -> str:
    return f"s{scene}/o{thing}/C_{scene:02d}_{thing:02d}_{frame:03d}.png"


def lines(*recordings: tuple[int, int], order: tuple[int, ...] = tuple(range(FRAMES))) -> str:
    return "".join(f"{image_name(s, o, f)} {o - 1}\n" for s, o in recordings for f in order)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Objects 1, 2 and 6 in scenes 1, 2 and 3; a pixel is (scene, object, frame)."""
    for scene in (1, 2, 3):
        for thing in (1, 2, 6):
            for frame in range(FRAMES):
                path = tmp_path / "core50_128x128" / image_name(scene, thing, frame)
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.new("RGB", (128, 128), (scene, thing, frame)).save(path)
    run = tmp_path / "batches_filelists" / "NIC_v2_391" / "run0"
    run.mkdir(parents=True)
    (run / "train_batch_00_filelist.txt").write_text(lines((1, 6), (1, 1), order=(2, 0, 3, 1)))
    (run / "train_batch_01_filelist.txt").write_text(lines((2, 2), order=(3, 1)))
    (run / "train_batch_02_filelist.txt").write_text(lines((2, 1)))
    (run / "test_filelist.txt").write_text(lines((3, 1), (3, 2), (3, 6)))
    return tmp_path


def pixels(frames: object) -> list[list[int]]:
    return [frame[0, 0].tolist() for frame in frames]  # type: ignore[attr-defined]


def test_the_lists_are_the_stream(tree: Path) -> None:
    source = open_source(f"core50:{tree}")
    assert isinstance(source, ListedSource)
    assert source.classes[:2] == ("o1 plug adapter", "o2 plug adapter")
    assert source.classes[5] == "o6 mobile phone"
    assert source.classes[49] == "o50 remote control"
    stream = make_stream(source)
    assert [batch.classes for batch in stream] == [(0, 5), (1,), (0,)]
    assert stream[0].labels == (5,) * 4 + (0,) * 4
    # Clips are in the order of the list, the frames of a clip in the order of time.
    assert pixels(stream[0].frames()) == [[1, o, f] for o in (6, 1) for f in range(4)]
    assert pixels(stream[1].frames()) == [[2, 2, 1], [2, 2, 3]]
    assert [clip.name for clip in source.train_clips()] == ["s1/o1", "s1/o6", "s2/o1", "s2/o2"]
    assert describe_stream(source)["protocol"] == "NICv2-391 run 0"


def test_the_test_set_and_its_stride(tree: Path) -> None:
    def test_set(spec: str) -> list[list[int]]:
        return [p for clip in open_source(spec, size=16).test_clips() for p in pixels(clip.read())]

    whole = [[3, o, f] for o in (1, 2, 6) for f in range(4)]
    assert test_set(f"core50:{tree}") == whole
    assert test_set(f"core50:{tree}?stride=3") == whole[::3]
    assert open_source(f"core50:{tree}?stride=3").name == "core50 (1 in 3 test frames)"


def test_frames_have_the_size_asked_for(tree: Path) -> None:
    source = open_source(f"core50:{tree}", size=96)
    frame = next(source.train_clips()[0].read())
    assert frame.shape == (96, 96, 3)
    assert frame.dtype == np.uint8


def test_images_and_lists_are_found(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert len(make_stream(open_source(f"core50:{tree / 'core50_128x128'}"))) == 3
    elsewhere = tmp_path_factory.mktemp("lists")
    (tree / "batches_filelists" / "NIC_v2_391").rename(elsewhere / "NIC_v2_391")
    with pytest.raises(DataError, match=r"Expected a folder NIC_v2_391/run0 in .*lists=DIR"):
        open_source(f"core50:{tree}")
    assert len(make_stream(open_source(f"core50:{tree}?lists={elsewhere}"))) == 3
    with pytest.raises(DataError, match="Expected a folder NIC_v2_391/run4 in"):
        open_source(f"core50:{tree}?lists={elsewhere}&run=4")
    with pytest.raises(DataError, match=r"got NIC_v2_391; give \?protocol=391$"):
        open_source(f"core50:{tree}?lists={elsewhere}&protocol=79")
    (elsewhere / "NIC_v2_391").rename(tree / "NIC_v2_391")
    assert len(make_stream(open_source(f"core50:{tree}"))) == 3


def test_without_lists_the_options_decide(tree: Path) -> None:
    source = open_source(f"core50:{tree}?protocol=nic")
    assert not isinstance(source, ListedSource)
    assert len(source.train_clips()) == 6
    assert [clip.name for clip in source.test_clips()] == ["s3/o1", "s3/o2", "s3/o6"]
    with pytest.raises(DataError, match="Expected training frames of class 'o3 plug adapter'"):
        make_stream(source)


def test_categories_join_five_objects_each(tree: Path) -> None:
    source = open_source(f"core50:{tree}?labels=categories")
    assert len(source.classes) == 10
    assert source.classes[:2] == ("plug adapter", "mobile phone")
    stream = make_stream(source)
    # Objects 1 and 2 are plug adapters, object 6 is a mobile phone.
    assert [batch.classes for batch in stream] == [(0, 1), (0,), (0,)]
    assert [clip.label for clip in source.test_clips()] == [0, 0, 1]
    assert describe_stream(source)["protocol"] == "NICv2-391 run 0, 10 categories"
    some = open_source(f"core50:{tree}?labels=categories&classes=mobile phone")
    assert some.classes == ("mobile phone",)
    assert [len(batch) for batch in make_stream(some)] == [4]
    assert describe_stream(some)["protocol"] == "NICv2-391 run 0, 1 of 10 categories"
    with pytest.raises(DataError, match="Expected labels=objects or categories, got 'kinds'"):
        open_source(f"core50:{tree}?labels=kinds")


def test_every_run_that_is_there_can_be_chosen(tree: Path) -> None:
    lists = tree / "batches_filelists" / "NIC_v2_391"
    (lists / "run3").mkdir()
    (lists / "run3" / "train_batch_00_filelist.txt").write_text(lines((2, 6), (1, 2)))
    (lists / "run3" / "test_filelist.txt").write_text(lines((3, 6)))
    source = open_source(f"core50:{tree}?run=3")
    assert describe_stream(source)["protocol"] == "NICv2-391 run 3"
    assert [batch.classes for batch in make_stream(source)] == [(1, 5)]
    with pytest.raises(DataError, match=r"NIC_v2_391/run4 in .*, got only run 0, 3; unpack"):
        open_source(f"core50:{tree}?run=4")


def test_missing_images_are_named(tree: Path) -> None:
    images = tree / "core50_128x128"
    missing = images / image_name(2, 2, 3)
    missing.unlink()
    with pytest.raises(DataError, match=r"1 of 26 that cannot be read: s2/o2/C_02_02_003.png"):
        open_source(f"core50:{tree}")
    for file in (images / "s2" / "o2").iterdir():
        file.unlink()
    (images / "s2" / "o2").rmdir()
    with pytest.raises(DataError, match=r"Expected CORe50's images in .*s2/o2, got no such folder"):
        open_source(f"core50:{tree}")


def test_a_folder_without_core50_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"Expected .*/core50_128x128/s1/o1/C_01_01_000.png"):
        open_source(f"core50:{tmp_path}")


@pytest.mark.parametrize(
    "line",
    [
        "s1/o1/C_01_01_000.png",
        "s1/o1/C_01_01_000.png 1",
        "s1/o1/C_02_01_000.png 0",
        "s1/o51/C_01_51_000.png 50",
        "",
    ],
)
def test_a_damaged_line_is_named(line: str, tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_text(f"{lines((1, 1))}{line}\n")
    with pytest.raises(DataError, match=f"got {line!r} in line 5 of {file}"):
        read_list(file)


def test_damaged_lists_are_named(tree: Path) -> None:
    run = tree / "batches_filelists" / "NIC_v2_391" / "run0"
    (run / "train_batch_02_filelist.txt").write_text(lines((1, 6)))
    with pytest.raises(DataError, match="got frames of s1/o6 twice"):
        open_source(f"core50:{tree}")
    (run / "train_batch_01_filelist.txt").unlink()
    with pytest.raises(DataError, match="got none for batch 01"):
        open_source(f"core50:{tree}")
    (run / "train_batch_02_filelist.txt").unlink()
    (run / "test_filelist.txt").write_text("")
    with pytest.raises(DataError, match=r"test_filelist.txt, got an empty list"):
        open_source(f"core50:{tree}")
    (run / "test_filelist.txt").unlink()
    with pytest.raises(DataError, match=r"Expected a list of CORe50 frames, got .*test_filelist"):
        open_source(f"core50:{tree}")


@pytest.mark.parametrize("protocol", ["79", "196", "391"])
def test_the_published_lists(protocol: str, shared: Path, tmp_path: Path) -> None:
    run = shared / "data" / "core50_nicv2_filelists" / f"NIC_v2_{protocol}" / "run0"
    files = sorted(run.glob("train_batch_*"), key=lambda file: int(file.name.split("_")[2]))
    # `open_source` would check the images, which are not needed here.
    source = Core50Lists(
        tmp_path,
        [read_list(file) for file in files],
        read_list(run / "test_filelist.txt"),
        protocol=protocol,
        size=128,
    )
    stream = make_stream(source)
    assert len(stream) == len(files) == int(protocol)
    for batch, file in zip(stream, files):
        listed = file.read_text().split()
        assert Counter(batch.labels) == Counter(map(int, listed[1::2]))
        folders = {name.rsplit("/", 1)[0] for name in listed[::2]}
        assert {clip.name for clip, _ in batch.parts} == folders

    objects = Counter(len(batch.classes) for batch in stream[1:])
    assert len(stream[0].classes) == 10
    assert set(objects) == {"79": {2, 3, 4, 5}, "196": {1, 2}, "391": {1}}[protocol]
    assert {label for batch in stream for label in batch.classes} == set(range(50))
    assert sum(map(len, stream)) == sum(clip.length for clip in source.train_clips()) == 119_894
    scenes = {clip.name.split("/")[0] for clip in source.test_clips()}
    assert scenes == {"s3", "s7", "s10"}
    assert sum(clip.length for clip in source.test_clips()) == 44_972
    assert max(map(len, make_stream(source, StreamOptions(batch_frames=30))[1:])) <= 5 * 30
