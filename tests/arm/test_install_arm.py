"""The tests and the installation script name everything that is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from emulated import NEEDED, ROOT, missing

SCRIPT = ROOT / "tools" / "install_arm.sh"


def install(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LRTFLITE_ARM": str(folder), **environment}
    return subprocess.run([str(SCRIPT)], env=environment, capture_output=True, text=True)


def test_an_empty_folder_lacks_everything(tmp_path: Path) -> None:
    found = missing(tmp_path)
    assert all(name in found for name in NEEDED)
    assert found.endswith("; run tools/install_arm.sh")


@pytest.mark.parametrize("lost", NEEDED)
def test_only_what_is_missing_is_named(tmp_path: Path, lost: str) -> None:
    for name, path in NEEDED.items():
        if name != lost:
            (tmp_path / path).mkdir(parents=True)
    assert missing(tmp_path) == f"{tmp_path} has no {lost}; run tools/install_arm.sh"


def test_a_full_folder_lacks_nothing(tmp_path: Path) -> None:
    for path in NEEDED.values():
        (tmp_path / path).mkdir(parents=True)
    assert missing(tmp_path) == ""


def test_the_script_leaves_other_folders_alone(tmp_path: Path) -> None:
    (tmp_path / "letters").touch()
    done = install(tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"Expected no folder {tmp_path}, or one that this script made" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["letters"]


def test_without_apt_the_script_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "realpath", "sha256sum"):
        (tools / name).symlink_to(str(shutil.which(name)))
    done = install(tmp_path / "arm", PATH=str(tools))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "Expected the command apt-get" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]
