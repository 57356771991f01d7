"""Heads: models that infer, learn and forget above the replay layer.

To add one, write a subclass of `lrtflite_converters.heads.head.Head` in its own file, register it
in `HEADS`, and give it a strategy in `lrtflite_converters.strategies`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lrtflite.table import Table

if TYPE_CHECKING:
    from lrtflite_converters.heads.head import Head

HEADS: Table[type[Head]] = Table(
    "head",
    {
        "cwr": "lrtflite_converters.heads.cwr:CwrHead",
        "lda": "lrtflite_converters.heads.lda:LdaHead",
        "ncm": "lrtflite_converters.heads.ncm:NcmHead",
    },
)
