"""Numbers with their nouns."""

from __future__ import annotations

from lrtflite.counted import classes_text, counted


def test_only_one_is_singular() -> None:
    assert [counted(n, "frame") for n in (0, 1, 2, 1000)] == [
        "0 frames",
        "1 frame",
        "2 frames",
        "1,000 frames",
    ]
    assert [classes_text(n) for n in (1, 2)] == ["1 class", "2 classes"]
