"""A bundle is put in place whole, and the leftovers of a killed conversion are removed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from lrtflite.bundle.bundle import FILES, MANIFEST_FILE
from lrtflite.bundle.destination import Destination
from lrtflite.errors import BundleError
from lrtflite.files.scratch import LOCK


def fill(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in (*FILES, MANIFEST_FILE):
        (folder / name).write_text(text)
    return folder


def test_ctrl_c_in_the_middle_of_the_swap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = fill(tmp_path / "out", "old")
    rename = Path.replace

    def rename_and_press_ctrl_c(path: Path, target: Path) -> Path:
        found = rename(path, target)
        signal.raise_signal(signal.SIGINT)
        return found

    def write() -> None:
        with Destination.at(out, replace=True).making_bundle() as made:
            fill(made, "new")
            monkeypatch.setattr(Path, "replace", rename_and_press_ctrl_c)

    with pytest.raises(KeyboardInterrupt):
        write()
    assert {path.read_text() for path in out.iterdir()} == {"new"}
    assert list(tmp_path.iterdir()) == [out]


def test_the_next_conversion_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    killed, foreign = tmp_path / ".bundle-1", tmp_path / ".bundle-2"
    for folder in (killed, foreign):
        fill(folder, "half")
    (killed / LOCK).touch()
    with Destination.at(tmp_path / "out").making_bundle() as made:
        assert not killed.exists()
        fill(made, "new")
    assert {path.name for path in tmp_path.iterdir()} == {"out", foreign.name}


def test_an_empty_folder_is_filled_from_within(tmp_path: Path) -> None:
    """An empty folder may be a mount point, which cannot be replaced by a rename."""
    out = tmp_path / "out"
    out.mkdir()
    with Destination.at(out, replace=True).making_bundle() as made:
        assert out in made.parents
        fill(made, "new")
    assert {path.name for path in out.iterdir()} == {*FILES, MANIFEST_FILE}
    assert list(tmp_path.iterdir()) == [out]


def test_a_link_that_leads_nowhere_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "gone")
    with pytest.raises(BundleError, match="choose another --out"):
        Destination.at(tmp_path / "out", replace=True)


def test_a_folder_that_cannot_be_listed_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "out").mkdir()
    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(BundleError, match="Permission denied"):
        Destination.at(tmp_path / "out", replace=True)


def test_a_check_leaves_nothing(tmp_path: Path) -> None:
    for out in (tmp_path / "out", tmp_path / "new" / "deep" / "out"):
        Destination.at(out)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(BundleError, match=r"Cannot write a bundle to .*: Not a directory"):
        Destination.at(tmp_path / "file" / "out")


def test_writing_makes_the_folders(tmp_path: Path) -> None:
    out = tmp_path / "new" / "deep" / "out"
    with Destination.at(out).making_bundle() as made:
        fill(made, "new")
    assert {path.read_text() for path in out.iterdir()} == {"new"}
    assert list(out.parent.iterdir()) == [out]


def test_it_is_checked_once(tmp_path: Path) -> None:
    out = fill(tmp_path / "out", "old")
    with pytest.raises(BundleError, match="give --replace"):
        Destination.at(out)
    destination = Destination.at(out, replace=True)
    assert destination.replaces
    assert Destination.at(destination) is destination
    assert not Destination.at(str(tmp_path / "other")).replaces


@pytest.mark.parametrize("empty", [True, False])
def test_files_that_came_meanwhile_are_kept(tmp_path: Path, empty: bool) -> None:
    out = tmp_path / "out"
    if empty:
        out.mkdir()

    def write() -> None:
        with Destination.at(out, replace=True).making_bundle() as made:
            fill(made, "new")
            out.mkdir(exist_ok=True)
            (out / "notes.txt").write_text("mine")

    with pytest.raises(BundleError, match="a bundle and nothing else"):
        write()
    assert [path.name for path in out.iterdir()] == ["notes.txt"]
    assert list(tmp_path.iterdir()) == [out]


def test_a_bundle_that_came_meanwhile_is_kept(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def write() -> None:
        with Destination.at(out).making_bundle() as made:
            fill(made, "new")
            fill(out, "another's")

    with pytest.raises(BundleError, match="got the bundle"):
        write()
    assert {path.read_text() for path in out.iterdir()} == {"another's"}


def test_the_disk_has_all_files_before_the_old_bundle_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = fill(tmp_path / "out", "old")
    fsync, flushed = os.fsync, []

    def record(handle: int) -> None:
        flushed.append(Path(os.readlink(f"/proc/self/fd/{handle}")).name)
        if flushed[-1] != tmp_path.name:
            assert (out / MANIFEST_FILE).read_text() == "old"
        fsync(handle)

    monkeypatch.setattr(os, "fsync", record)
    with Destination.at(out, replace=True).making_bundle() as made:
        fill(made, "new")
    assert set(flushed[:-2]) == {*FILES, MANIFEST_FILE}
    assert flushed[-2:] == ["bundle", tmp_path.name]
