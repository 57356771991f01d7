"""The peak RAM of this process."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_ram_mb() -> float:
    """Return the peak resident memory so far, in MB of 10^6 bytes."""
    return peak_ram_bytes() / 1e6


def peak_ram_bytes() -> int:
    # On Linux a process inherits `ru_maxrss` from its parent, so a large parent would be counted
    # too. VmHWM starts at zero in each program.
    try:
        for line in _STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
