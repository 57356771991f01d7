"""Heads: models that infer, learn and forget above the replay layer.

To add one, write a subclass of `lrtflite_converters.heads.head.Head` in its own file, register it
in `HEADS`, and give it a strategy in `lrtflite_converters.request.strategies`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lrtflite.tables.table import Table

if TYPE_CHECKING:
    from lrtflite_converters.heads.head import Head

HEADS: Table[type[Head]] = Table(
    "head",
    {
        "cwr": "lrtflite_converters.heads.cwr:CwrHead",
        "plain": "lrtflite_converters.heads.plain:PlainHead",
        "lwf": "lrtflite_converters.heads.lwf:LwfHead",
        "lda": "lrtflite_converters.heads.lda:LdaHead",
        "two_lda": "lrtflite_converters.heads.two_lda:TwoLdaHead",
        "deep_lda": "lrtflite_converters.heads.deep_lda:DeepLdaHead",
        "dslda": "lrtflite_converters.heads.dslda:DsldaHead",
        "ncm": "lrtflite_converters.heads.ncm:NcmHead",
    },
)
