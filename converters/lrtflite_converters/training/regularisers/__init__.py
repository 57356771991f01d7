"""Regularisers: rules that change the step of a weight, to protect earlier sessions.

To add one, write a subclass of `Regulariser` in its own file and register it in `REGULARISERS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lrtflite.tables.table import Table

if TYPE_CHECKING:
    from lrtflite_converters.training.regularisers.regulariser import Regulariser

REGULARISERS: Table[type[Regulariser]] = Table(
    "regulariser",
    {
        "none": "lrtflite_converters.training.regularisers.regulariser:Regulariser",
        "synaptic": "lrtflite_converters.training.regularisers.synaptic:SynapticIntelligence",
        "ewc": "lrtflite_converters.training.regularisers.ewc:ElasticWeights",
    },
)
