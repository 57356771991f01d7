"""The command that adds an extra, for a clone, a wheel and a package index."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lrtflite.system.install_command import install_command

ROOT = Path(__file__).parents[2]


def words(command: str) -> list[str]:
    assert command.startswith("pip install ")
    return shlex.split(command)[2:]


def test_a_clone_is_installed_again(tmp_path: Path) -> None:
    assert words(install_command("video")) == ["-e", f"{ROOT}[video]"]
    spaced = tmp_path / "my clone"
    spaced.mkdir()
    (spaced / "pyproject.toml").touch()
    assert words(install_command("video", clone=spaced)) == ["-e", f"{spaced}[video]"]


def test_a_wheel_is_named_while_it_is_there(tmp_path: Path) -> None:
    wheel = tmp_path / "my files" / "lrtflite-0.1.0-py3-none-any.whl"
    origin = json.dumps({"url": wheel.as_uri(), "archive_info": {}})
    gone = install_command("sign", clone=tmp_path, origin=origin)
    assert gone == 'pip install "$(ls lrtflite-*.whl)[sign]" (in the folder of its wheel)'
    wheel.parent.mkdir()
    wheel.touch()
    assert words(install_command("sign", clone=tmp_path, origin=origin)) == [f"{wheel}[sign]"]


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ({"url": "https://a.example/l.whl"}, "lrtflite[host] @ https://a.example/l.whl"),
        (
            {"url": "https://a.example/l.git", "vcs_info": {"vcs": "git"}},
            "lrtflite[host] @ git+https://a.example/l.git",
        ),
        (None, "lrtflite[host]"),  # from a package index
        ([], "lrtflite[host]"),
        ({"url": 3}, "lrtflite[host] @ 3"),
    ],
)
def test_other_origins(origin: object, expected: str, tmp_path: Path) -> None:
    text = "" if origin is None else json.dumps(origin)
    assert words(install_command("host", clone=tmp_path, origin=text)) == [expected]


def test_an_installed_wheel_names_itself(tmp_path: Path) -> None:
    """Unpack what pip would install, with the file that it writes, and ask there."""
    site = tmp_path / "site"
    for name in ("errors.py", "system/install_command.py", "system/extras.py"):
        copy = site / "lrtflite" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text((ROOT / "lrtflite" / name).read_text())
        (copy.parent / "__init__.py").touch()
    info = site / "lrtflite-9.0.dist-info"
    info.mkdir()
    wheel = tmp_path / "lrtflite-9.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w"):
        pass
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lrtflite\nVersion: 9.0\n")
    (info / "direct_url.json").write_text(json.dumps({"url": wheel.as_uri()}))
    program = "from lrtflite.system.extras import missing; print(missing('av'))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(site)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    command = re.fullmatch(r"PyAV is not installed; run: (.*)\n", done.stdout)
    assert command is not None
    assert words(command[1]) == [f"{wheel}[video]"]
