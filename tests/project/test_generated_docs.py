"""docs/cli.md and docs/api.md are what `make docs` writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lrtflite
import lrtflite.data
import lrtflite_converters
import lrtflite_firmware_sim
from lrtflite_cli.group import COMMANDS

ROOT = Path(__file__).parents[2]


def test_the_pages_are_made_from_the_sources() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "make_docs.py"), "--check"],
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_on_its_page(command: str) -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert f"\n## lrtflite {command}\n\n```text\nUsage: lrtflite {command} " in page


def test_every_public_name_is_on_its_page() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    packages = (lrtflite, lrtflite.data, lrtflite_converters, lrtflite_firmware_sim)
    names = [name for package in packages for name in package.__all__]
    assert [name for name in names if f"\n### {name}\n" not in page] == []
