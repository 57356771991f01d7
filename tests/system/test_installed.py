"""Installed packages by the names of their folders: the same answers as `importlib.metadata`."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from lrtflite.system.extras import installed_version, may_have_entry_points


@pytest.mark.parametrize("name", ["numpy", "click", "Pillow", "ai-edge-litert", "tflite_runtime"])
def test_versions(name: str) -> None:
    try:
        expected = metadata.version(name)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    assert installed_version(name) == expected


def test_a_package_that_is_not_installed() -> None:
    with pytest.raises(metadata.PackageNotFoundError):
        installed_version("no-such-package")


def test_entry_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert may_have_entry_points("console_scripts")
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "missing")])
    assert not may_have_entry_points("some.group")
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    assert not may_have_entry_points("some.group")
    (info / "entry_points.txt").write_text("[some.group]\nmine = module\n")
    assert may_have_entry_points("some.group")
    assert not may_have_entry_points("other.group")


def test_a_zip_of_packages_leaves_a_doubt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "packages.zip", "w") as archive:
        archive.writestr("module.py", "")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "packages.zip")])
    assert may_have_entry_points("some.group")


def test_opening_a_learner_imports_little(demo: Path, tmp_path: Path) -> None:
    program = f"""
import sys, lrtflite
lrtflite.Learner.open({str(demo)!r}, {str(tmp_path / "state")!r}).close()
lrtflite.Learner.open({str(demo)!r}, {str(tmp_path / "state")!r}, read_only=True)
heavy = ("email", "importlib.metadata", "PIL", "rich", "click", "unittest", "asyncio")
print([name for name in heavy if name in sys.modules])
"""
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
