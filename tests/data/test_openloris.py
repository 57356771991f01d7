"""`openloris:PATH` on small trees, by folders and by lists."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from lrtflite.data import ListedSource, describe_stream, make_stream, open_source
from lrtflite.data.openloris.layout import CHALLENGE, FACTORS
from lrtflite.errors import DataError

OBJECTS = ("bowl_02", "cup_10", "zebra_01")  # the last one is not of the competition


def draw(path: Path, factor: int, segment: int, frame: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (24, 16), (10 * factor, segment, 20 * frame)).save(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tree of three objects, two training pictures and one test picture of each."""
    root = tmp_path_factory.mktemp("openloris")
    for number, factor in enumerate(FACTORS):
        for segment in range(1, 10):
            for thing in OBJECTS:
                folder = f"{factor}/segment{segment}/{thing}"
                # Not in the order of their names: 9 comes before 10.
                for frame in (9, 10):
                    draw(root / "train" / folder / f"color_{frame}.jpg", number, segment, frame)
                draw(root / "test" / folder / "1.jpg", number, segment, 0)
    return root


@pytest.fixture
def tree(whole: Path, tmp_path: Path) -> Path:
    """Return links to the pictures, in folders of its own."""
    for file in whole.rglob("*.jpg"):
        link = tmp_path / file.relative_to(whole)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.hardlink_to(file)
    return tmp_path


def test_the_competition_had_69_objects() -> None:
    assert len(set(CHALLENGE)) == 69
    # Typed from the authors' list, which has no cup_09.
    assert CHALLENGE[:5] == ("bottle_01", "bottle_02", "bottle_03", "bottle_04", "bowl_01")
    assert CHALLENGE[19:22] == ("cup_08", "cup_10", "cushion_01")
    assert CHALLENGE[-1] == "toy_05"


def test_folders_become_twelve_batches_of_all_classes(whole: Path) -> None:
    source = open_source(f"openloris:{whole}", size=16)
    assert isinstance(source, ListedSource)
    assert source.classes == OBJECTS
    assert describe_stream(source)["protocol"] == "ni"
    stream = make_stream(source)
    assert len(stream) == 12  # four factors of three levels
    assert {batch.classes for batch in stream} == {(0, 1, 2)}
    # Three segments of three objects, two pictures each.
    assert {len(batch) for batch in stream} == {18}
    # The second level of the third factor, object size in pixels.
    names = {clip.name for clip, _ in stream[7].parts}
    assert names == {f"train/pixel/segment{n}/{thing}" for n in (4, 5, 6) for thing in OBJECTS}
    blue = [int(frame[8, 8, 2]) for frame in stream[7].frames()][:4]
    assert [round(value / 20) for value in blue] == [9, 10, 9, 10]
    assert len(source.test_clips()) == 36 * 3
    assert all(clip.name.startswith("test/") for clip in source.test_clips())


def test_one_factor_and_some_classes(whole: Path) -> None:
    source = open_source(f"openloris:{whole}?factor=clutter&classes=cup_10,bowl_02&stride=4")
    assert source.classes == ("bowl_02", "cup_10")
    stream = make_stream(source)
    assert [len(batch) for batch in stream] == [4] * 9  # one batch per segment
    assert sum(clip.length for clip in source.test_clips()) == 5  # of 18
    assert describe_stream(source)["protocol"] == "ni, clutter"
    assert source.name == "openloris (1 in 4 test frames)"
    with pytest.raises(DataError, match=r"factor=illumination, .* or all, got 'dark'"):
        open_source(f"openloris:{whole}?factor=dark")


def write_lists(tree: Path, where: Path, *, batches: int = 2) -> None:
    where.mkdir(parents=True)
    for number in range(batches):
        names = [f"train/pixel/segment{number + 1}/{t}/color_9.jpg {4 * k}" for k, t in LABELS]
        (where / f"train_batch_{number:02d}.txt").write_text("\n".join(names) + "\n")
    names = [f"test/pixel/segment1/{t}/1.jpg {4 * k}" for k, t in LABELS]
    (where / "test.txt").write_text("\n".join(names))


# Labels of the lists decide the order of the classes.
LABELS = [(0, "zebra_01"), (1, "bowl_02")]


def test_the_authors_lists_come_first(tree: Path, tmp_path: Path) -> None:
    write_lists(tree, tree / "batches_filelists/domain/iros")
    source = open_source(f"openloris:{tree}", size=16)
    assert source.classes == ("zebra_01", "bowl_02")
    stream = make_stream(source)
    assert [batch.labels for batch in stream] == [(0, 1), (0, 1)]
    assert [clip.label for clip in source.test_clips()] == [0, 1]
    write_lists(tree, tmp_path / "elsewhere/domain/pixel", batches=3)
    given = f"openloris:{tree}?factor=pixel&lists={tmp_path / 'elsewhere'}"
    assert len(make_stream(open_source(given))) == 3
    (tmp_path / "elsewhere/domain/pixel/train_batch_01.txt").unlink()
    with pytest.raises(DataError, match=r"got none for batch 01"):
        open_source(given)
    with pytest.raises(DataError, match=r"Expected train_batch_00.txt and so on in .*clutter"):
        open_source(f"openloris:{tree}?factor=clutter&lists={tmp_path / 'elsewhere'}")


@pytest.mark.parametrize("line", ["a.jpg 1", "x/a.jpg", "x/zebra_01/a.jpg 4", "x/y/a.jpg one", ""])
def test_a_damaged_line_is_named(tree: Path, line: str) -> None:
    where = tree / "batches_filelists/domain/iros"
    write_lists(tree, where)
    with (where / "train_batch_01.txt").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(DataError, match=r"in line 3 of .*train_batch_01.txt"):
        open_source(f"openloris:{tree}")


def test_missing_files_are_named_and_counted(tree: Path) -> None:
    for name in ("train/pixel/segment4/cup_10", "test/clutter/segment9/cup_10"):
        for file in (tree / name).iterdir():
            file.unlink()
        (tree / name).rmdir()
    said = r"Expected 216 recordings .*got 2 missing: train/pixel/segment4/cup_10, test/clutter"
    with pytest.raises(DataError, match=said) as caught:
        open_source(f"openloris:{tree}")
    assert "\n" not in str(caught.value)
    assert open_source(f"openloris:{tree}?classes=bowl_02").classes == ("bowl_02",)
    source = open_source(f"openloris:{tree}", skip_unreadable=True)
    assert source.skipped[0] == "train/pixel/segment4/cup_10 (missing)"  # type: ignore[attr-defined]
    assert [len(batch) for batch in make_stream(source)] == [18] * 7 + [16] + [18] * 4
    write_lists(tree, tree / "batches_filelists/domain/iros")
    (tree / "train/pixel/segment2/bowl_02/color_9.jpg").unlink()
    with pytest.raises(DataError, match=r"got 1 of 6 that cannot be read: train/pixel/segment2"):
        open_source(f"openloris:{tree}")


def test_a_tree_without_segments_is_one_line(tree: Path, tmp_path: Path) -> None:
    for file in (tree / "test/pixel/segment5").rglob("*.jpg"):
        file.unlink()
    for folder in sorted((tree / "test/pixel/segment5").rglob("*"), reverse=True):
        folder.rmdir()
    (tree / "test/pixel/segment5").rmdir()
    with pytest.raises(DataError, match=r"72 segments .*got 1 missing: test/pixel/segment5"):
        open_source(f"openloris:{tree}")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"Expected .*/train/illumination/segment1/OBJECT"):
        open_source(f"openloris:{tmp_path / 'empty'}")
    with pytest.raises(DataError, match="which does not exist; check the path"):
        open_source(f"openloris:{tmp_path / 'nowhere'}")
