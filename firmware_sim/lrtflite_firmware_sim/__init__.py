"""A simulated device that learns in its own process, where its accuracy and cost are measured.

The entry point is `simulate`. Names are imported on first use, because the device process is part
of this package and must import only what a device needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lrtflite_firmware_sim.plan import SimulateOptions
    from lrtflite_firmware_sim.reporting.results import Simulation, load_simulation
    from lrtflite_firmware_sim.simulation import simulate

__all__ = ["SimulateOptions", "Simulation", "load_simulation", "simulate"]

_HOMES = {
    "SimulateOptions": "plan",
    "Simulation": "reporting.results",
    "load_simulation": "reporting.results",
    "simulate": "simulation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
