"""The files of a simulation are checked before the run, and named as the user typed them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lrtflite.errors import LrtfliteError
from lrtflite_firmware_sim.reporting.deliver import Delivery
from lrtflite_firmware_sim.reporting.results import Simulation


def test_one_path_for_two_files(tmp_path: Path) -> None:
    same = str(tmp_path / "r")
    with pytest.raises(LrtfliteError, match="Expected two files"):
        Delivery(json_path=same, report_path=same).check()
    with pytest.raises(LrtfliteError, match="Expected a file for the report"):
        Delivery(report_path="-").check()
    Delivery(json_path="-", report_path=same).check()


def test_a_check_leaves_nothing(tmp_path: Path) -> None:
    Delivery(json_path=str(tmp_path / "new" / "r.json")).check()
    assert list(tmp_path.iterdir()) == []


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(LrtfliteError, match="Expected a file to write, got the folder"):
        Delivery(json_path=str(tmp_path)).check()
    (tmp_path / "file").touch()
    with pytest.raises(LrtfliteError, match=r"Cannot write .*file/r\.json: Not a directory"):
        Delivery(report_path=str(tmp_path / "file" / "r.json")).check()


def test_one_file_that_fails_does_not_stop_the_other(
    simulated: Simulation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "file").touch()
    delivery = Delivery(json_path=str(tmp_path / "file" / "r.json"), report_path="~/new/r.html")
    delivered = delivery.write(simulated)
    assert delivered.files == ("~/new/r.html",)
    [error] = delivered.errors
    assert "Cannot write" in error
    assert (tmp_path / "new" / "r.html").read_text().startswith("<!")
