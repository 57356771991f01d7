"""The RAM of the machine, and the cores that this process may use."""

from __future__ import annotations

import math
import os


def machine_bytes() -> int | None:
    """Return the machine's RAM; None if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def machine_mb() -> float:
    """Return the machine's RAM in MB of 10^6 bytes; infinity if the system does not report it."""
    found = machine_bytes()
    return math.inf if found is None else found / 1e6


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1
