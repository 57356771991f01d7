"""Folders that are not states: the error says what is there instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from lrtflite.bundle.bundle import INITIAL_FILE
from lrtflite.errors import StateError
from lrtflite.state.summary import summarise


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (None, "which does not exist"),
        ([], "which is empty"),
        (["notes.txt"], "with no state-*.safetensors in it"),
        (["manifest.json", INITIAL_FILE], f"which is a bundle: its state is .*{INITIAL_FILE}"),
    ],
)
def test_the_error_says_what_is_there(tmp_path: Path, names: list[str] | None, said: str) -> None:
    folder = tmp_path / "things"
    if names is not None:
        folder.mkdir()
        for name in names:
            (folder / name).touch()
    expected = said.replace("*.s", r"\*\.s") if "no state" in said else said
    with pytest.raises(StateError, match=f"got {folder}, {expected}; check the path$"):
        summarise(folder)
