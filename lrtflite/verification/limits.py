"""Limits of time and memory for processes that run models from strangers."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from lrtflite.bundle.costs import Costs
from lrtflite.errors import InputError
from lrtflite.system.capacity import machine_mb

# Variables in the environment that replace the limits below.
SECONDS, MEGABYTES = "LRTFLITE_TRIAL_SECONDS", "LRTFLITE_TRIAL_MB"
# Seconds after which a trial counts as endless; a slow board takes a minute.
DEFAULT_SECONDS = 900.0
# Limit of RAM, in MB of 10^6 bytes: FACTOR times the measured peak, and ROOM more. The trial runs
# the same models as the measurement, perhaps on another runtime.
FACTOR, ROOM_MB = 2, 256
# Peak of a bundle that was not measured. The largest bundle of the test suite needs half of it.
UNMEASURED_MB = 1000.0
# RAM of TensorFlow itself, in a child that runs models in it.
TENSORFLOW_MB = 2000.0
# Largest share of the machine's RAM, whatever a manifest says.
SHARE = 0.75
# Largest values of the variables: a year, and 1000 TB.
_MAX_SECONDS, _MAX_MB = 3.2e7, 1e9


@dataclass(frozen=True)
class Limits:
    """The time that a child may take, and the RAM that it may use at any moment."""

    seconds: float
    megabytes: float

    @property
    def bytes(self) -> int:
        return int(1e6 * self.megabytes)


def trial_limits(measured: Costs | None, *, more_mb: float = 0.0) -> Limits:
    """Return the limits for models whose costs are `measured`; `more_mb` is for TensorFlow.

    Raise InputError if a variable of the environment is not a number above zero.
    """
    peak = UNMEASURED_MB if measured is None else measured.ram_mb
    wanted = FACTOR * peak + ROOM_MB + more_mb
    return Limits(
        _variable(SECONDS, DEFAULT_SECONDS, most=_MAX_SECONDS),
        _variable(MEGABYTES, min(wanted, SHARE * machine_mb()), most=_MAX_MB),
    )


def _variable(name: str, default: float, *, most: float) -> float:
    text = os.environ.get(name, "")
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= most:
        raise InputError(
            f"Expected a number above 0 and up to {most:g} in {name}, got {text[:40]!r}",
            "correct it, or unset it",
        )
    return value
