"""A bundle is put in place whole, and a conversion that was killed leaves nothing for long."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from lrtflite.bundle import FILES, MANIFEST
from lrtflite.destination import making_bundle
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
