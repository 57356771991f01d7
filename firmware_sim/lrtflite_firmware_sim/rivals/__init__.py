"""Rivals: learners of the paper to compare with, in numpy, which run in the simulator only.

A rival learns from the latents of a bundle and replaces its head. It has no TFLite graph, so no
device can run it.
"""

from __future__ import annotations

from lrtflite.tables.table import Table
from lrtflite_firmware_sim.rivals.rival import Rival

_HERE = "lrtflite_firmware_sim.rivals"
RIVALS: Table[type[Rival]] = Table(
    "rival",
    {"cumulative": f"{_HERE}.cumulative:Cumulative", "icarl": f"{_HERE}.icarl:ICaRL"},
)
