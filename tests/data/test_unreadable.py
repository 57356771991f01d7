"""Every file of a data set is checked before use, and unreadable files can be left out."""

from __future__ import annotations

import io
import os
import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lrtflite.data import open_source, skipped_note
from lrtflite.data.folders.source import FolderSource
from lrtflite.data.media import count_frames, read_frames
from lrtflite.errors import DataError, UnreadableFile

NOISE = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
SUFFIXES = ("png", "jpg", "bmp", "gif", "webp")


def encoded(suffix: str) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(NOISE).save(buffer, format={"jpg": "jpeg"}.get(suffix, suffix))
    return buffer.getvalue()


def fill(folder: Path, count: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"{number}.png").write_bytes(encoded("png"))
    return folder


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_whole_picture_passes(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(encoded(suffix))
    assert count_frames(path) == 1
    # Some cameras append bytes; such a file is accepted if it can be read.
    if suffix != "bmp":
        path.write_bytes(encoded(suffix) + bytes(8))
        assert len(list(read_frames(path, (0,), 8))) == count_frames(path) == 1


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("keep", [0.02, 0.5, 0.97])
def test_a_truncated_picture_does_not(suffix: str, keep: float, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    content = encoded(suffix)
    path.write_bytes(content[: int(keep * len(content))])
    with pytest.raises(UnreadableFile, match=f"Expected a readable image, got {path} \\("):
        count_frames(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "empty"), (b"not a picture", "not an image"), (bytes(500), "not an")],
)
@pytest.mark.parametrize("suffix", ["png", "jpg", "gif"])
def test_the_reason_is_given(content: bytes, reason: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(content)
    with pytest.raises(UnreadableFile) as caught:
        count_frames(path)
    assert caught.value.reason.startswith(reason)
    assert str(path) not in caught.value.reason
    assert "\n" not in str(caught.value)


def test_a_pipe_or_a_dangling_link_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.png")  # opening it would wait forever
    with pytest.raises(UnreadableFile, match="not a file"):
        count_frames(tmp_path / "a.png")
    (tmp_path / "b.jpg").symlink_to(tmp_path / "gone.jpg")
    with pytest.raises(UnreadableFile, match="No such file"):
        count_frames(tmp_path / "b.jpg")


def damage(folder: Path) -> None:
    """Damage four of ten pictures of `mug`, each in a different way."""
    fill(folder / "hat", 6)
    mug = fill(folder / "mug", 10)
    (mug / "1.png").write_bytes(b"")
    (mug / "4.png").write_bytes(encoded("png")[:-700])
    (mug / "5.png").write_bytes(b"<html>404</html>")
    (mug / "8.png").unlink()
    (mug / "8.gif").write_bytes(encoded("gif")[:-700])


def test_one_error_names_them_all(tmp_path: Path) -> None:
    damage(tmp_path)
    with pytest.raises(DataError) as caught:
        open_source(f"folder:{tmp_path}")
    assert re.fullmatch(
        rf"Expected readable files in folder:{tmp_path}, got 4 of 16 that cannot be read: "
        r"mug/1.png \(empty\), mug/4.png \(.*truncated.*\), mug/5.png \(not an image\) and 1 more; "
        "replace or remove them, or add --skip-unreadable",
        str(caught.value),
    )


def huge_png(side: int) -> bytes:
    """Return a PNG of that side whose pixels are missing; its header and end are right."""
    header = b"IHDR" + struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return encoded("png")[:8] + chunk + encoded("png")[-12:]


def test_a_picture_of_400_million_pixels_is_unreadable(tmp_path: Path) -> None:
    fill(tmp_path / "mug", 3)
    fill(tmp_path / "hat", 3)
    (tmp_path / "mug" / "1.png").write_bytes(huge_png(20_000))
    with pytest.raises(
        DataError, match=r"1 of 6 .*mug/1.png \(20000 x 20000 pixels, more than 134"
    ):
        open_source(f"folder:{tmp_path}", size=8)
    source = open_source(f"folder:{tmp_path}", size=8, skip_unreadable=True)
    clips = [*source.train_clips(), *source.test_clips()]
    assert [len(list(clip.read())) for clip in clips] == [1] * 5
    assert "1 unreadable file was left out" in str(skipped_note(source))


def test_files_left_out_are_counted(tmp_path: Path) -> None:
    damage(tmp_path)
    seen: list[tuple[int, int | None]] = []
    source = open_source(
        f"folder:{tmp_path}",
        size=8,
        skip_unreadable=True,
        on_progress=lambda p: seen.append((p.done, p.total)),
    )
    assert seen == [(n, 16) for n in range(1, 17)]
    clips = [*source.train_clips(), *source.test_clips()]
    assert len(clips) == 12
    assert all(len(list(clip.read())) == 1 for clip in clips)
    note = skipped_note(source)
    assert note is not None
    assert note.startswith("4 unreadable files were left out: mug/1.png (empty), mug/4.png (")
    assert note.endswith(" and 1 more.")
    for whole in ("synthetic", f"folder:{fill(tmp_path / 'whole' / 'cup', 3).parent}"):
        assert skipped_note(open_source(whole, skip_unreadable=True)) is None


def sides(folder: Path, seed: int) -> tuple[set[str], set[str]]:
    source = FolderSource(folder, seed=seed, skip_unreadable=True)
    return {c.name for c in source.train_clips()}, {c.name for c in source.test_clips()}


@pytest.mark.parametrize("seed", range(6))
def test_the_others_stay_on_their_side(seed: int, tmp_path: Path) -> None:
    fill(tmp_path / "mug", 12)
    train, test = sides(tmp_path, seed)
    gone = {"mug/2.png", "mug/3.png", "mug/7.png"}
    for name in gone:
        (tmp_path / name).write_bytes(b"")
    assert sides(tmp_path, seed) == (train - gone, test - gone)


@pytest.mark.parametrize("side", [0, 1])
def test_a_side_that_would_be_empty_gets_one_of_the_other(side: int, tmp_path: Path) -> None:
    fill(tmp_path / "mug", 6)
    before = sides(tmp_path, 0)
    for name in before[side]:
        (tmp_path / name).write_bytes(b"")
    after = sides(tmp_path, 0)
    assert len(after[side]) == 1
    assert after[0] | after[1] == before[1 - side]
    assert not after[0] & after[1]


def test_a_class_with_too_few_left_is_named(tmp_path: Path) -> None:
    mug = fill(tmp_path / "mug", 3)
    for name in ("0.png", "2.png"):
        (mug / name).write_bytes(b"")
    with pytest.raises(DataError) as caught:
        FolderSource(tmp_path, skip_unreadable=True)
    assert str(caught.value) == (
        f"Expected at least 2 images or a video in {mug} (one to learn from, one to test with), "
        "got only 1.png, as 2 of 3 cannot be read; add some"
    )
    (mug / "1.png").write_bytes(b"")
    with pytest.raises(DataError, match="got none, as 3 of 3 cannot be read"):
        FolderSource(tmp_path, skip_unreadable=True)


def test_the_only_video_left_is_cut_in_two(tmp_path: Path) -> None:
    mug = fill(tmp_path / "mug", 1)
    (mug / "0.png").write_bytes(b"")
    first, *rest = [Image.new("L", (4, 4), 10 * i) for i in range(6)]
    first.save(mug / "a.gif", save_all=True, append_images=rest, duration=100)
    source = FolderSource(tmp_path, skip_unreadable=True)
    assert [clip.length for clip in (*source.train_clips(), *source.test_clips())] == [2, 2]


def test_a_file_that_is_not_a_video(tmp_path: Path) -> None:
    mug = fill(tmp_path / "mug", 3)
    (mug / "a.mp4").write_bytes(b"not a video")
    with pytest.raises(DataError, match=r"1 of 4 that cannot be read: mug/a.mp4 \("):
        FolderSource(tmp_path)
    assert len(FolderSource(tmp_path, skip_unreadable=True).skipped) == 1


class TestCore50:
    """`core50:PATH`, in a small tree."""

    @pytest.fixture
    def tree(self, tmp_path: Path) -> Path:
        """Two objects in scenes 1 and 3, six frames each; the lists have two batches."""
        for scene in (1, 3):
            for thing in (1, 2):
                folder = tmp_path / f"s{scene}" / f"o{thing}"
                folder.mkdir(parents=True)
                for frame in range(6):
                    colour = (scene, thing, frame)
                    name = f"C_{scene:02d}_{thing:02d}_{frame:03d}.png"
                    Image.new("RGB", (16, 16), colour).save(folder / name)
        run = tmp_path / "batches_filelists" / "NIC_v2_391" / "run0"
        run.mkdir(parents=True)
        for name, scene, thing in (
            ("train_batch_00", 1, 1),
            ("train_batch_01", 1, 2),
            ("test", 3, 1),
        ):
            lines = [
                f"s{scene}/o{thing}/C_{scene:02d}_{thing:02d}_{frame:03d}.png {thing - 1}\n"
                for frame in range(6)
            ]
            (run / f"{name}_filelist.txt").write_text("".join(lines))
        return tmp_path

    def test_missing_and_damaged_frames_are_named(self, tree: Path) -> None:
        (tree / "s1" / "o1" / "C_01_01_002.png").unlink()
        (tree / "s3" / "o1" / "C_03_01_004.png").write_bytes(b"")
        with pytest.raises(DataError) as caught:
            open_source(f"core50:{tree}")
        assert str(caught.value) == (
            "Expected readable files in core50, got 2 of 18 that cannot be read: "
            "s1/o1/C_01_01_002.png (No such file or directory), s3/o1/C_03_01_004.png (empty); "
            "replace or remove them, or add --skip-unreadable"
        )

    @pytest.mark.parametrize("spec", ["core50:{}", "core50:{}?protocol=nic"])
    def test_the_other_frames_keep_their_order(self, tree: Path, spec: str) -> None:
        (tree / "s1" / "o1" / "C_01_01_002.png").write_bytes(b"")
        (tree / "s3" / "o1" / "C_03_01_003.png").write_bytes(b"")
        whole = open_source(
            spec.format(tree) + ("&" if "?" in spec else "?") + "stride=2",
            size=8,
            skip_unreadable=True,
        )
        frames = [f[0, 0].tolist() for clip in whole.test_clips() for f in clip.read()]
        # Every second frame of the list as before; the damaged frame is not among them.
        assert [frame for frame in frames if frame[1] == 1] == [[3, 1, n] for n in (0, 2, 4)]
        train = [f[0, 0].tolist() for clip in whole.train_clips() for f in clip.read()]
        assert [frame for frame in train if frame[1] == 1] == [[1, 1, n] for n in (0, 1, 3, 4, 5)]
        note = skipped_note(whole)
        assert note == "1 unreadable file was left out: s1/o1/C_01_01_002.png (empty)."

    def test_a_batch_without_frames_is_named(self, tree: Path) -> None:
        for path in (tree / "s1" / "o2").iterdir():
            path.write_bytes(b"")
        with pytest.raises(DataError, match=r"Expected readable frames in batch 01 .* got none"):
            open_source(f"core50:{tree}", skip_unreadable=True)


def test_a_folder_that_cannot_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("cup", "hat"):
        (tmp_path / name).mkdir()

    def refused(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(DataError, match=r"got .* \(Permission denied\); check its permissions"):
        open_source(f"folder:{tmp_path}")
