"""`tm:PATH`: the pictures of a Teachable Machine project or a zip of folders, and hostile zips."""

from __future__ import annotations

import io
import json
import os
import struct
import tracemalloc
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lrtflite.data import open_source, source_notes
from lrtflite.data.projects import archive as archive_module
from lrtflite.data.source import FrameSource
from lrtflite.errors import DataError

MANIFEST = json.dumps({"type": "image", "version": "2.4.4", "appdata": {"trainEpochs": 50}})


def picture(grey: int, *, kind: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (6, 4), (grey, grey, grey)).save(buffer, kind)
    return buffer.getvalue()


def write_zip(path: Path, members: Mapping[str, bytes | str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def project(path: Path, **counts: int) -> Path:
    """Write an image project as Teachable Machine lays it out: picture i is of grey level i."""
    members: dict[str, bytes | str] = {"manifest.json": MANIFEST}
    for name, count in counts.items():
        members |= {f"{name}-!-{i}.jpg": picture(i) for i in range(count)}
    return write_zip(path, members)


def names(source: FrameSource) -> tuple[list[str], list[str]]:
    return [c.name for c in source.train_clips()], [c.name for c in source.test_clips()]


def every(source: FrameSource) -> list[str]:
    train, test = names(source)
    return sorted(train + test)


def test_classes_and_pictures_of_a_project(tmp_path: Path) -> None:
    source = open_source(f"tm:{project(tmp_path / 'p.tm', stapler=4, Mug=3)}", size=8)
    assert source.classes == ("Mug", "stapler")
    train, test = names(source)
    assert len(train) == 5
    assert len(test) == 2
    assert sorted(train + test) == sorted(
        [f"Mug-!-{i}.jpg" for i in range(3)] + [f"stapler-!-{i}.jpg" for i in range(4)]
    )
    for clip in (*source.train_clips(), *source.test_clips()):
        assert clip.name.startswith(source.classes[clip.label])
        (frame,) = clip.read()
        expected = np.full((8, 8, 3), int(clip.name[-5]), np.uint8)
        np.testing.assert_array_equal(frame, expected)


@pytest.mark.parametrize("seed", [0, 7])
def test_the_split_is_that_of_a_folder_with_the_same_pictures(seed: int, tmp_path: Path) -> None:
    folder = tmp_path / "things" / "mug"
    folder.mkdir(parents=True)
    for i in range(9):
        (folder / f"mug-!-{i}.jpg").write_bytes(picture(i))
    path = project(tmp_path / "p.tm", mug=9)
    ours = names(open_source(f"tm:{path}?test=0.4", seed=seed))
    theirs = names(open_source(f"folder:{folder.parent}?test=0.4", seed=seed))
    assert ours == tuple([name.partition("/")[2] for name in side] for side in theirs)
    assert len(ours[1]) == 4


def test_a_label_with_the_mark_and_a_slash(tmp_path: Path) -> None:
    name = "a/b-!-c"
    path = write_zip(
        tmp_path / "p.tm",
        {"manifest.json": "{}", **{f"{name}-!-{i}.png": picture(i) for i in range(2)}},
    )
    assert open_source(f"tm:{path}").classes == (name,)


@pytest.mark.parametrize("around", ["", "things/"])
def test_a_zip_of_class_folders(around: str, tmp_path: Path) -> None:
    members: dict[str, bytes | str] = {
        f"{around}": "",
        f"{around}mug/": "",
        f"{around}mug/notes.txt": "ignored",
        f"{around}mug/.DS_Store": "ignored",
        f"__MACOSX/{around}mug/._a.png": "ignored",
    }
    members.pop("", None)
    for label in ("mug", "cup"):
        members |= {f"{around}{label}/{i}.png": picture(i) for i in range(3)}
    source = open_source(f"tm:{write_zip(tmp_path / 'things.zip', members)}", size=8)
    assert source.classes == ("cup", "mug")
    assert every(source) == [
        f"{around}{label}/{i}.png" for label in ("cup", "mug") for i in range(3)
    ]


def test_bursts_are_noted_for_a_project_only(tmp_path: Path) -> None:
    assert "bursts" in source_notes(open_source(f"tm:{project(tmp_path / 'p.tm', mug=3)}"))[0]
    plain = write_zip(tmp_path / "z.zip", {f"mug/{i}.png": picture(i) for i in range(3)})
    assert source_notes(open_source(f"tm:{plain}")) == ()


def test_a_damaged_picture_is_named_or_left_out(tmp_path: Path) -> None:
    members: dict[str, bytes | str] = {f"mug-!-{i}.png": picture(i) for i in range(4)}
    members["mug-!-1.png"] = picture(1)[:45]
    members["mug-!-2.png"] = b""
    path = write_zip(tmp_path / "p.tm", members)
    with pytest.raises(
        DataError, match=r"2 of 4 that cannot be read: mug-!-1\.png .*--skip-unread"
    ):
        open_source(f"tm:{path}")
    source = open_source(f"tm:{path}", skip_unreadable=True)
    assert every(source) == ["mug-!-0.png", "mug-!-3.png"]


@pytest.mark.parametrize(
    ("members", "match"),
    [
        ({}, "got none"),
        ({"manifest.json": MANIFEST}, "got none"),
        ({"manifest.json": '{"type": "audio"}', "samples.json": "[]"}, "type 'audio'"),
        ({"manifest.json": MANIFEST, "mug.webm": b"x"}, r"CLASS-!-NUMBER .* got 'mug.webm'"),
        ({"manifest.json": "{", "mug-!-0.png": b""}, "damaged"),
        ({"manifest.json": b"\xff\xfe", "mug-!-0.png": b""}, "damaged"),
        ({"manifest.json": "[" * 100_000, "mug-!-0.png": b""}, "damaged"),
        ({"mug/clip.mp4": b""}, r"got 'mug/clip.mp4'.*folder:PATH for videos"),
        ({"mug/deep/er/0.png": b""}, "one folder of images"),
        ({"0.png": b""}, "one folder of images"),
        ({"mug-!-0.png": picture(0)}, "at least 2 pictures of mug .* got 1"),
        ({"-!-0.png": picture(0)}, "label of one line"),
        ({"unknown-!-0.png": picture(0)}, "other than 'unknown'.*rename"),
        ({"a\x1b[31m-!-0.png": picture(0)}, "label of one line"),
        ({"e\u0301-!-0.png": b"", "\xe9-!-0.png": b""}, "accents are encoded differently"),
        ({"../mug/0.png": picture(0)}, "leads out of it"),
        ({"..\\mug-!-0.png": picture(0)}, "leads out of it"),
        ({"/etc/0.png": picture(0)}, "leads out of it"),
    ],
)
def test_other_archives_are_refused(
    members: dict[str, bytes | str], match: str, tmp_path: Path
) -> None:
    path = write_zip(tmp_path / "p.tm", members)
    with pytest.raises(DataError, match=match) as caught:
        open_source(f"tm:{path}")
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_files_that_are_no_archive(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist; check the path"):
        open_source(f"tm:{tmp_path / 'absent.tm'}")
    with pytest.raises(DataError, match="is a folder; write folder:"):
        open_source(f"tm:{tmp_path}")
    (tmp_path / "text.tm").write_text("not a zip")
    with pytest.raises(DataError, match="save the project again"):
        open_source(f"tm:{tmp_path / 'text.tm'}")
    os.mkfifo(tmp_path / "pipe.tm")
    with pytest.raises(DataError, match="regular file"):
        open_source(f"tm:{tmp_path / 'pipe.tm'}")
    os.truncate(tmp_path / "text.tm", archive_module.MAX_BYTES + 1)
    with pytest.raises(DataError, match="at most 512 MB"):
        open_source(f"tm:{tmp_path / 'text.tm'}")


def test_a_link_and_an_encrypted_member(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("mug-!-0.png")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "link.tm", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(DataError, match=r"got the link 'mug-!-0\.png'"):
        open_source(f"tm:{tmp_path / 'link.tm'}")
    content = bytearray(project(tmp_path / "p.tm", mug=2).read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + place] |= 1
    (tmp_path / "locked.tm").write_bytes(content)
    with pytest.raises(DataError, match="encrypted file"):
        open_source(f"tm:{tmp_path / 'locked.tm'}")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_twice(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "p.tm", "w") as archive:
        for grey in (0, 9):
            archive.writestr("mug-!-0.png", picture(grey))
    with pytest.raises(DataError, match="a member twice"):
        open_source(f"tm:{tmp_path / 'p.tm'}")


def bomb(path: Path, *, members: int, size: int, claimed: int | None = None) -> Path:
    """Write members of zeros that unpack to `size` bytes; the directory says `claimed`."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(members):
            archive.writestr(f"mug-!-{i}.png", bytes(size))
    if claimed is not None:
        content = path.read_bytes()
        content = content.replace(struct.pack("<I", size), struct.pack("<I", claimed))
        path.write_bytes(content)
    return path


def test_bombs_fill_no_memory(tmp_path: Path) -> None:
    size = archive_module.MAX_PICTURE
    honest = bomb(tmp_path / "honest.tm", members=2, size=size + 1)
    lying = bomb(tmp_path / "lying.tm", members=2, size=size, claimed=100)
    tracemalloc.start()
    try:
        for path in (honest, lying):
            with pytest.raises(DataError, match="2 of 2 that cannot be read"):
                open_source(f"tm:{path}")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


def test_all_pictures_together_have_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_module, "MAX_UNPACKED", 1000)
    with pytest.raises(DataError, match="1,100 bytes unpacked, more than 1,000"):
        open_source(f"tm:{bomb(tmp_path / 'p.tm', members=11, size=100)}")


def test_more_entries_than_an_archive_may_have(tmp_path: Path) -> None:
    entry = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", *[0] * 16)
    directory = entry * 70_000
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 65535, 65535, len(directory), 0, 0)
    (tmp_path / "p.tm").write_bytes(directory + end)
    with pytest.raises(DataError, match="more than 65,536 members"):
        open_source(f"tm:{tmp_path / 'p.tm'}")


def test_a_picture_of_too_many_pixels(tmp_path: Path) -> None:
    header = struct.pack(">II", 20_000, 20_000) + b"\x08\x02\0\0\0"
    png = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + header + b"\0" * 4
    png += b"\0\0\0\0IEND\xaeB`\x82"
    path = write_zip(tmp_path / "p.tm", {f"mug-!-{i}.png": png for i in range(2)})
    with pytest.raises(DataError, match="20000 x 20000 pixels"):
        open_source(f"tm:{path}")


def test_an_animation_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    frames = [Image.new("L", (4, 4), grey) for grey in (0, 90)]
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    path = write_zip(tmp_path / "z.zip", {f"mug/{i}.gif": buffer.getvalue() for i in range(2)})
    with pytest.raises(DataError, match=r"mug/0\.gif \(an animation\)"):
        open_source(f"tm:{path}")
