"""Kept pictures: the layout on disk, safe names, and attacks on the folder."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lrtflite.errors import InputError, LrtfliteError, UnreadableFile
from lrtflite.pictures import KeptPicture, KeptPictures
from lrtflite.pictures import kept as module


def picture(seed: int, size: int = 16) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (size, size, 3), dtype=np.uint8)


def jpeg(seed: int) -> bytes:
    out = io.BytesIO()
    Image.fromarray(picture(seed)).save(out, "JPEG")
    return out.getvalue()


@pytest.fixture
def kept(tmp_path: Path) -> KeptPictures:
    return KeptPictures.beside(tmp_path / "mug.state")


def test_pictures_are_beside_the_state(tmp_path: Path, kept: KeptPictures) -> None:
    assert kept.folder == tmp_path / "mug.state.pictures"
    assert kept.all() == ()
    assert not kept.folder.exists()


def test_the_current_folder_may_be_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").mkdir()
    monkeypatch.chdir(tmp_path / "state")
    assert KeptPictures.beside(".").folder == tmp_path / "state.pictures"


def test_a_picture_is_read_back_to_the_last_bit(kept: KeptPictures) -> None:
    added = kept.add(3, picture(1))
    assert added.path.parent == kept.folder / "slot-03"
    assert kept.of(3) == (added,)
    np.testing.assert_array_equal(added.read(16), picture(1))


def test_names_count_and_end_in_a_digest_of_the_content(kept: KeptPictures) -> None:
    content = b"\xff\xd8\xff" + b"not much of a picture"
    names = [kept.add(0, content).path.name, kept.add(0, jpeg(1)).path.name]
    assert names[0] == f"00000001-{hashlib.sha256(content).hexdigest()[:12]}.jpg"
    assert names[1].startswith("00000002-")


def test_the_same_content_is_kept_once_in_a_slot(kept: KeptPictures) -> None:
    assert kept.add(0, picture(1)) == kept.add(0, picture(1))
    kept.add(1, picture(1))
    assert [each.slot for each in kept.all()] == [0, 1]


def test_a_number_is_not_given_twice_after_a_delete(kept: KeptPictures) -> None:
    first, second = kept.add(0, picture(1)), kept.add(0, picture(2))
    kept.delete(first)
    third = kept.add(0, picture(3))
    assert [each.path.name[:8] for each in kept.of(0)] == ["00000002", "00000003"]
    assert kept.of(0) == (second, third)


def test_a_picture_moves_to_another_slot(kept: KeptPictures) -> None:
    kept.add(7, picture(9))
    moved = kept.move(kept.add(0, picture(1)), 7)
    assert kept.of(0) == ()
    assert kept.of(7)[1] == moved
    np.testing.assert_array_equal(moved.read(16), picture(1))


def test_a_picture_that_is_there_already_moves_onto_itself(kept: KeptPictures) -> None:
    here, there = kept.add(0, picture(1)), kept.add(1, picture(1))
    assert kept.move(here, 0) == here
    assert kept.move(here, 1) == there
    assert kept.all() == (there,)


def test_forgetting_a_class_leaves_the_others(kept: KeptPictures) -> None:
    kept.add(0, picture(1))
    other = kept.add(100, picture(2))
    assert other.path.parent.name == "slot-100"
    kept.forget(0)
    assert kept.slots == (100,)
    kept.forget(100)
    assert not kept.folder.exists()
    kept.forget(5)  # has none


def test_pictures_are_found_by_their_id(kept: KeptPictures) -> None:
    added = kept.add(3, picture(1))
    assert kept.find(added.id) == added


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "slot-03",
        "slot-03/",
        "slot-03/..",
        "../mug.state/MANIFEST",
        "slot-03/../slot-03/00000001-000000000000.png",
        "slot-03/00000001-000000000000.png",
        "/etc/passwd",
        "slot-3/00000001-000000000000.png",
        "slot-03/00000001-000000000000.png\n",
        "slot-٠٣/00000001-000000000000.png",
        "slot-03\x00/x",
        None,
        3,
    ],
)
def test_an_id_reaches_nothing_else(kept: KeptPictures, bad: object) -> None:
    kept.add(3, picture(1))
    with pytest.raises(InputError, match=r"^Expected the id of a kept picture, got [^\n]*$"):
        kept.find(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("slot", [-1, 1 << 40, True, "3", 1.5])
def test_slots_are_numbers(kept: KeptPictures, slot: object) -> None:
    with pytest.raises(InputError, match=r"^Expected slot"):
        kept.add(slot, picture(1))  # type: ignore[arg-type]


def test_a_made_up_picture_cannot_delete_another_file(tmp_path: Path, kept: KeptPictures) -> None:
    victim = tmp_path / "mug.state" / "MANIFEST"
    victim.parent.mkdir()
    victim.write_text("x")
    with pytest.raises(InputError):
        kept.delete(KeptPicture(0, victim))
    with pytest.raises(InputError):
        kept.move(KeptPicture(0, victim), 1)
    assert victim.exists()


def test_links_are_not_followed(tmp_path: Path, kept: KeptPictures) -> None:
    outside = tmp_path / "private"
    outside.mkdir()
    (outside / "00000001-000000000000.png").write_bytes(jpeg(1))
    kept.folder.mkdir()
    (kept.folder / "slot-01").symlink_to(outside)
    assert kept.slots == ()
    assert kept.of(1) == ()
    kept.forget(1)
    assert list(outside.iterdir())
    with pytest.raises(InputError, match="is a link"):
        kept.add(1, picture(1))


@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "large"])
def test_only_regular_files_within_limits_are_read(
    tmp_path: Path, kept: KeptPictures, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path = kept.add(0, picture(1)).path
    if kind == "large":
        monkeypatch.setattr(module, "MAX_BYTES", 10)
    else:
        path.unlink()
        (tmp_path / "secret.png").write_bytes(jpeg(1))
        make = {
            "link": lambda: path.symlink_to(tmp_path / "secret.png"),
            "fifo": lambda: os.mkfifo(path),
            "folder": lambda: path.mkdir(),
        }
        make[kind]()
    with pytest.raises(UnreadableFile, match=r"^Expected a readable picture"):
        kept.of(0)[0].read(16)


def test_a_damaged_picture_is_named(kept: KeptPictures) -> None:
    added = kept.add(0, b"\xff\xd8\xff but no picture")
    with pytest.raises(UnreadableFile, match=added.path.name):
        added.read(16)


def test_other_files_are_left_alone(kept: KeptPictures) -> None:
    added = kept.add(0, picture(1))
    for name in ("notes.txt", ".00000002-aaaaaaaaaaaa.12345678.part.png", "1-a.png"):
        (added.path.parent / name).write_text("x")
    (kept.folder / "slot-1").mkdir()
    (kept.folder / "more").mkdir()
    assert kept.all() == (added,)


@pytest.mark.parametrize("bad", [b"GIF89a", b"", b"<svg>", np.zeros((4, 4)), np.zeros((4, 4, 3))])
def test_other_content_is_refused(kept: KeptPictures, bad: object) -> None:
    with pytest.raises(InputError, match=r"^Expected a"):
        kept.add(0, bad)  # type: ignore[arg-type]
    assert not kept.folder.exists()


def test_a_full_slot_refuses_more(kept: KeptPictures, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.add(0, picture(1))
    monkeypatch.setattr(module, "MAX_PICTURES", 1)
    with pytest.raises(InputError, match="has 1 pictures"):
        kept.add(0, picture(2))


def test_a_full_disk_is_one_line_and_leaves_nothing(
    kept: KeptPictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write_atomic", full)
    with pytest.raises(LrtfliteError, match=r"^Cannot change .*: No space left on device; [^\n]*$"):
        kept.add(0, picture(1))
    assert kept.all() == ()
