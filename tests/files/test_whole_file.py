"""Files are checked before the work, and written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lrtflite.errors import LrtfliteError
from lrtflite.files import atomic as whole_file
from lrtflite.files.atomic import check_writable, replacing, write_atomic, writing


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def check(path: str | Path) -> None:
    with writing(path):
        check_writable(path)


@pytest.mark.parametrize("name", ["r.json", "new/r.json", "new/deep/r.json"])
def test_a_check_leaves_nothing(tmp_path: Path, name: str) -> None:
    check(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(LrtfliteError, match="Expected a file to write, got the folder"):
        check(tmp_path)
    (tmp_path / "file").touch()
    for name in ("file/r.json", "file/deep/r.json"):
        with pytest.raises(LrtfliteError, match=r"Cannot write .*: Not a directory; choose"):
            check(tmp_path / name)
    with pytest.raises(LrtfliteError, match=r"Cannot write /proc/r\.json"):
        check("/proc/r.json")


def test_links_in_a_circle_are_one_line(tmp_path: Path) -> None:
    link = tmp_path / "a"
    link.symlink_to(link)
    with pytest.raises(LrtfliteError, match="Cannot write"):
        check(link / "r.json")


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")
    link = tmp_path / "link.json"
    link.symlink_to(path)
    write_atomic(link, "new")
    assert path.read_text() == "new"
    assert link.is_symlink()
    assert names(tmp_path) == ["link.json", "r.json"]


def test_writing_makes_the_folders(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "r.json"
    check(path)
    write_atomic(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    gone = tmp_path / "gone"
    with pytest.raises(FileNotFoundError), replacing(gone / "r.json", make_folder=False):
        pass
    assert not gone.exists()


def test_the_temporary_file_has_the_suffix_and_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    with replacing(path) as temporary:
        assert temporary != path
        assert (temporary.parent, temporary.suffix) == (tmp_path, ".keras")
        # The leftover of a power cut at this moment can be found.
        assert list(tmp_path.glob(".*.part*")) == [temporary]
        temporary.unlink()
        temporary.write_text("made again, as some libraries do")
    assert path.read_text() == "made again, as some libraries do"


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_file_has_the_default_mode(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        plain = tmp_path / "plain"
        plain.touch()
        write_atomic(tmp_path / "whole", "text")
        (tmp_path / "whole").chmod(0o640)
        mode = plain.stat().st_mode
        # An old file's mode is not taken over.
        write_atomic(tmp_path / "whole", "text again")
    finally:
        os.umask(before)
    assert (tmp_path / "whole").stat().st_mode == mode


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LrtfliteError, match=r"Cannot write .*: No space left"), writing(path):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["r.json"]


@pytest.mark.parametrize("error", [OSError, ValueError, KeyboardInterrupt])
def test_a_block_that_fails_keeps_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")

    def fail() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["r.json"]


def test_content_then_name_reach_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")
    flushed: list[tuple[str, str]] = []

    def fsync(handle: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"
        flushed.append((kind, path.read_text()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomic(path, "new")
    # The content before the rename, the folder after it.
    assert flushed == [("file", "old"), ("folder", "new")]


def test_a_folder_that_cannot_be_flushed_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def refuse(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", refuse)
    write_atomic(tmp_path / "r.json", "new")
    assert (tmp_path / "r.json").read_text() == "new"
    monkeypatch.setattr(whole_file, "flush_folder", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(tmp_path / "r.json", "newer")


def test_a_device_file_is_never_replaced() -> None:
    check("/dev/null")
    write_atomic("/dev/null", "text")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_stdout_in_a_pipeline_is_written_to() -> None:
    script = (
        "from lrtflite.files.atomic import check_writable, write_atomic\n"
        "check_writable('/dev/stdout'); write_atomic('/dev/stdout', 'text')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("text", "")
