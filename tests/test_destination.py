"""A bundle is put in place whole, and a conversion that was killed leaves nothing for long."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from lrtflite.bundle import FILES, MANIFEST
from lrtflite.destination import check_out, making_bundle
from lrtflite.errors import BundleError
from lrtflite.scratch import LOCK


def fill(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in (*FILES, MANIFEST):
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
        with making_bundle(out) as made:
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
    with making_bundle(tmp_path / "out") as made:
        assert not killed.exists()
        fill(made, "new")
    assert {path.name for path in tmp_path.iterdir()} == {"out", foreign.name}


def test_an_empty_folder_is_filled_from_within(tmp_path: Path) -> None:
    """It may be a mount point, which nothing outside can be renamed into."""
    out = tmp_path / "out"
    out.mkdir()
    with making_bundle(out) as made:
        assert out in made.parents
        fill(made, "new")
    assert {path.name for path in out.iterdir()} == {*FILES, MANIFEST}
    assert list(tmp_path.iterdir()) == [out]


def test_a_link_that_leads_nowhere_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "gone")
    with pytest.raises(BundleError, match="choose another --out"):
        check_out(tmp_path / "out", replace=True)


def test_a_folder_that_cannot_be_listed_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "out").mkdir()
    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(BundleError, match="Permission denied"):
        check_out(tmp_path / "out", replace=True)
