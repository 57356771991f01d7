"""The table of extras agrees with pyproject.toml, and no other file names an extra."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from lrtflite.errors import MissingExtra
from lrtflite.system.extras import EXTRAS, missing, pip_command, require

ROOT = Path(__file__).parents[2]
# Distribution -> import name, where underscores are not the only difference.
IMPORTED_AS = {"paho-mqtt": "paho", "pillow": "PIL"}
# `numpy` comes with the base install; an extra only limits its version.
BASE = {"numpy"}


@pytest.fixture
def extras() -> dict[str, list[str]]:
    """Return each extra of pyproject.toml with its requirements."""
    tomllib: Any = pytest.importorskip("tomllib", reason="comes with Python 3.11")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: dict[str, list[str]] = project["optional-dependencies"]
    return found


def packages(requirements: list[str]) -> set[str]:
    """Return the import names of third-party distributions."""
    names = {re.split(r"[^\w-]", requirement)[0].lower() for requirement in requirements}
    return {IMPORTED_AS.get(name, name.replace("-", "_")) for name in names - {"lrtflite"} - BASE}


def test_each_package_is_in_its_extra(extras: dict[str, list[str]]) -> None:
    for package, extra in EXTRAS.items():
        assert package in packages(extras[extra]), package


def test_each_package_of_an_extra_is_in_the_table(extras: dict[str, list[str]]) -> None:
    for extra, requirements in extras.items():
        if extra != "dev":  # tools, which no module imports
            assert packages(requirements) <= set(EXTRAS), extra


def test_the_message_is_the_pip_command() -> None:
    assert str(missing("av")) == (f"PyAV is not installed; run: pip install -e '{ROOT}[video]'")
    assert "[device-tflite]" in pip_command("tflite_runtime")


def test_what_is_required_is_looked_for_and_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "av", raising=False)
    require("PIL", "av")
    assert "av" not in sys.modules
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingExtra, match="PyAV is not installed"):
        require("PIL", "av")


def test_no_other_file_names_an_extra_for_a_package() -> None:
    for folder in ("lrtflite", "converters", "firmware_sim", "cli", "examples"):
        for path in (ROOT / folder).rglob("*.py"):
            if path != ROOT / "lrtflite" / "extras.py":
                text = path.read_text(encoding="utf-8")
                assert not re.search(r"extra=|lrtflite\[|MissingExtra\(.*,", text), path
