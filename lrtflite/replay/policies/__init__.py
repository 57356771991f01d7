"""Policies: rules that decide which patterns the replay memory keeps, and which they replace.

A policy is a function that returns a `Placement` and changes nothing itself. To add one, write a
function with the same parameters and register it in `POLICIES`. The first line of its docstring is
its help text on the command line.
"""

from __future__ import annotations

from lrtflite.replay.policies.algorithm1 import algorithm1
from lrtflite.replay.policies.balanced import balanced, balanced_choice
from lrtflite.replay.policies.fresh import fresh
from lrtflite.replay.policies.herding import herding
from lrtflite.replay.policies.policy import (
    Incoming,
    Indices,
    Latents,
    Marks,
    Placement,
    Policy,
    SlotArray,
    Stored,
)
from lrtflite.replay.policies.reservoir import reservoir
from lrtflite.tables.table import Table

POLICIES: Table[Policy] = Table(
    "policy",
    {
        "algorithm1": algorithm1,
        "balanced": balanced,
        "reservoir": reservoir,
        "herding": herding,
        "fresh": fresh,
    },
)

__all__ = [
    "POLICIES",
    "Incoming",
    "Indices",
    "Latents",
    "Marks",
    "Placement",
    "Policy",
    "SlotArray",
    "Stored",
    "algorithm1",
    "balanced",
    "balanced_choice",
    "fresh",
    "herding",
    "reservoir",
]
