"""Files are known to be writable before the work, and written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from lrtflite.errors import LrtfliteError
from lrtflite_firmware_sim.deliver import Delivery
from lrtflite_firmware_sim.output import check_writable, write_whole


def test_a_check_leaves_no_file(tmp_path: Path) -> None:
    check_writable(tmp_path / "new" / "r.json")
    assert list(tmp_path.rglob("*")) == [tmp_path / "new"]


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(LrtfliteError, match="Expected a file to write, got the folder"):
        check_writable(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(LrtfliteError, match="Cannot write"):
        check_writable(tmp_path / "file" / "r.json")
    with pytest.raises(LrtfliteError, match=r"Cannot write /proc/r\.json"):
        check_writable("/proc/r.json")


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")
    link = tmp_path / "link.json"
    link.symlink_to(path)
    write_whole(link, "new")
    assert path.read_text() == "new"
    assert link.is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.json", "r.json"]


def test_a_file_has_the_usual_mode(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    write_whole(tmp_path / "whole", "text")
    assert (tmp_path / "whole").stat().st_mode == plain.stat().st_mode


def test_a_failure_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LrtfliteError, match=r"Cannot write .*: No space left"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


def test_a_device_file_is_never_replaced() -> None:
    check_writable("/dev/null")
    write_whole("/dev/null", "text")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_one_path_for_two_files(tmp_path: Path) -> None:
    same = str(tmp_path / "r")
    with pytest.raises(LrtfliteError, match="Expected two files"):
        Delivery(json_path=same, report_path=same).check()
    with pytest.raises(LrtfliteError, match="Expected a file for the report"):
        Delivery(report_path="-").check()
    Delivery(json_path="-", report_path=same).check()
