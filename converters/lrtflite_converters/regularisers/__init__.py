"""Regularisers: what stands between the gradient of a weight and the weight itself.

To add one, write a class in a file of its own on `Regulariser` and register it in `REGULARISERS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lrtflite.table import Table

if TYPE_CHECKING:
    from lrtflite_converters.regularisers.regulariser import Regulariser

REGULARISERS: Table[type[Regulariser]] = Table(
    "regulariser", {"none": "lrtflite_converters.regularisers.regulariser:Regulariser"}
)
