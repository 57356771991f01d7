"""The guide describes every policy of the table, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from lrtflite.replay.policies import POLICIES

GUIDE = Path(__file__).parents[2] / "docs" / "learning.md"


def test_the_guide_has_a_row_for_each_policy() -> None:
    _, _, table = GUIDE.read_text().partition("| policy | latents that stay | use it |\n")
    rows, _, _ = table.partition("\n\n")
    assert re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE) == list(POLICIES)
